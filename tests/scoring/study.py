"""Study A in small: four tasks of the shipped domain, two rungs, and a scripted engine that says what a test wants.

The draft registers everything but the script, so that a table of scripts leads one protocol to each of its ends::

    study = create_study(tmp_path)
    archive = study.freeze()
    study.run(archive, probe={"16": OPEN, "32": CLOSED}, designed=MACROS)     # what is not said is closed and right
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gatepost import bundled
from gatepost.archive import Archive
from gatepost.engine import Engine, EngineSpec
from gatepost.engines import scripted_text
from gatepost.engines.scripted import ScriptedEngine
from gatepost.freeze import plan
from gatepost.gatefiles import Gates
from gatepost.ladder import Decision, Step, audit
from gatepost.probe import Probe
from gatepost.replay import Replay, replay

SHIPPED = bundled.folder("studies") / "verified_macro"

DRAFT = """
id = "small"
splits = {{ probe = "probe.jsonl" }}

[study]
name = "verified_macro"
domain_version = 1

[preregistration]
question = "Which budget is enough, and do macros help?"
hypothesis = "32 ids are, and they do."
falsified_by = "Both rungs are rejected, or the scores are."
closest_earlier_study = "none"
why_separate = "It is a test."
controls = ["none needed"]
forbidden_inputs = []
forbidden_roots = []
stopping_rule = "The ladder ends."

[model]
repository = "script"
revision = "{zeros}"
tokenizer_revision = "{zeros}"
think_open = {{ token = "<think>", id = {open_id} }}
think_close = {{ token = "</think>", id = {close_id} }}
model_eos_id = {eos_id}
tokenizer_eos_id = {turn_end_id}

[engine]
kind = "scripted"
packages = {{}}
start_timeout_seconds = 60
idle_timeout_seconds = 60
options = {{ max_model_len = 4096 }}

[sampling]
temperature = 0.6
top_p = 0.95
top_k = 20
min_p = 0.0
repetition_penalty = 1.0
greedy = false
stop_ids = [{eos_id}]
max_answer_tokens = 64
thinking = "force_close"
force_close_ids = [{close_id}]
seed_rule = "blake2b64_two_stage"

[[rungs]]
max_think_tokens = 16

[[rungs]]
max_think_tokens = 32

[[stages]]
name = "checks"
scope = "once"
splits = ["probe"]
samples_per_task = 0
text = "withheld"
gates.reachability = {{ version = 1 }}

[[stages]]
name = "probe"
scope = "rung"
arm = "base"
splits = ["probe"]
samples_per_task = 2
base_seed = 1
text = "withheld"
{gates}

[[stages]]
name = "base"
scope = "rung"
arm = "base"
splits = ["probe"]
samples_per_task = 3
base_seed = 2
text = "sealed"
{gates}

[[stages]]
name = "designed"
scope = "rung"
arm = "designed"
splits = ["probe"]
samples_per_task = 3
base_seed = 3
text = "sealed"
{gates}

[[stages]]
name = "scoring"
scope = "selected"
scores = ["base", "designed"]
splits = ["probe"]
samples_per_task = 0
text = "graded"
gates.parse_rate = {{ version = 1, min_parse_rate = 0.5 }}
gates.macro_use = {{ version = 1, arm = "designed", reuse_tasks = 2, min_reuse_tasks = 2 }}
gates.oracle_not_below = {{ version = 1, arm = "designed", baseline_arm = "base" }}

[labels]
exhausted = {{ name = "NO_RUNG", licenses = "saying so", does_not_license = "more" }}
not_replicated = {{ name = "MACROS_REFUTED", licenses = "saying so", does_not_license = "more" }}
replicated = {{ name = "MACROS_VERIFIED", licenses = "saying so", does_not_license = "more" }}
"""

GATES = """
gates.seed_binding = { version = 1 }
gates.token_accounting = { version = 1 }
gates.forced_close = { version = 1 }
[stages.gates.termination]
version = 1
tail_tokens = 8
max_period_tokens = 4
min_match_rate = 1.0
contact_margin_tokens = 1
answer_limit_tokens = 64
max_unresolved_share = 0.3
max_answer_limit_share = 0.3
max_loop_share = 0.5
"""

Rule = Mapping[str, Any]
Script = Callable[[Mapping[str, Any]], Rule]
"""What is sampled for one task, as a rule of the scripted engine without its ``match``."""


def says(answer: Callable[[Mapping[str, Any]], str], *, closes: bool = True) -> Script:
    """Think, in time or not, and answer."""
    return lambda task: {"think_tokens": [4, 8] if closes else None, "answers": [answer(task)]}


def program(task: Mapping[str, Any]) -> str:
    """The right answer, in primitives."""
    return f"PROGRAM: {' | '.join(task['program'])}"


def macro(task: Mapping[str, Any]) -> str:
    """The right answer, by the one macro that it was built from where there is one."""
    return f"PROGRAM: {task['motifs'][0]}" if task["motifs"] else program(task)


PRIMITIVES, MACROS = says(program), says(macro)
OPEN = says(program, closes=False)
WRONG = says(lambda task: "PROGRAM: ADD1 | ADD1 | ADD1 | ADD1")
MUTE = says(lambda task: "I do not know.")


@dataclass(frozen=True)
class Study:
    """A folder with the draft, four shipped tasks, and receipts."""

    root: Path

    @property
    def gates(self) -> Gates:
        """The shipped gates."""
        return Gates()

    @property
    def studies(self) -> tuple[Path, ...]:
        """None of its own: the shipped domain is used."""
        return (self.root / "studies",)

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks: two are reuse tasks."""
        return [json.loads(line) for line in (self.root / "probe.jsonl").read_text().splitlines()]

    def freeze(self, edit: Callable[[str], str] = lambda text: text) -> Archive:
        """Freeze the draft after a last change to its text."""
        text = DRAFT.format(
            zeros="0" * 40,
            open_id=scripted_text.IDS["<think>"],
            close_id=scripted_text.IDS["</think>"],
            eos_id=scripted_text.IDS[scripted_text.MODEL_EOS],
            turn_end_id=scripted_text.IDS[scripted_text.TURN_END],
            gates=GATES,
        )
        draft = self.root / "draft.toml"
        draft.write_text(edit(text))
        return Archive.create(self.root / "receipts", plan(draft, gates=self.gates, studies=self.studies))

    def step(self, archive: Archive, script: Script = PRIMITIVES) -> Decision:
        """Run the open step with an engine that follows the script."""
        rules = [{"match": f"{task['task_id']}/*", **script(task)} for task in self.tasks]

        def open_engine(spec: EngineSpec) -> Engine:
            return ScriptedEngine(replace(spec, options={**spec.options, "rules": rules}))

        return Probe(archive, self.gates, self.studies, open_engine).run()

    def run(self, archive: Archive, until: str | None = None, **scripts: Script | Mapping[str, Script]) -> Decision:
        """Run steps until the ladder is terminal, or ``until`` that stage is open.

        Args:
            scripts: stage -> script, or rung -> script.
        """
        while True:
            decision = audit(archive.protocol, archive.judgements())
            if decision.terminal or decision.step is None or decision.step.stage == until:
                return decision
            self.step(archive, _script(scripts.get(decision.step.stage, PRIMITIVES), decision.step))

    def replay(self, archive: Archive) -> Replay:
        """Replay the archive."""
        return replay(archive.root, gates=self.gates, studies=self.studies)


def _script(of_stage: Script | Mapping[str, Script], step: Step) -> Script:
    return of_stage.get(step.rung or "", PRIMITIVES) if isinstance(of_stage, Mapping) else of_stage


def create_study(root: Path) -> Study:
    """Write the study's tasks into a folder."""
    (root / "receipts").mkdir()
    lines = (SHIPPED / "tasks" / "probe.jsonl").read_text().splitlines(keepends=True)
    (root / "probe.jsonl").write_text("".join(lines[:4]))
    return Study(root)
