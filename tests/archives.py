"""A small project with gates, a study and archives of its own, for tests that need real receipts.

Everything goes the way of a user: a draft is frozen, the probe runs its steps with the scripted engine, in this
process unless a test says otherwise. Which cap passes is decided by ``think_tokens`` alone::

    project = create_project(tmp_path)
    archive = project.freeze(think_tokens=(10, 20))   # closes by itself after 10 to 20 ids: 8 is too few, 32 enough
    project.run(archive)                              # design, selection, confirmation@32
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.engine import Engine, EngineSpec
from gatepost.engines import scripted_text
from gatepost.engines.scripted import ScriptedEngine
from gatepost.freeze import plan
from gatepost.gatefiles import Gates
from gatepost.ladder import Decision, Step, audit
from gatepost.probe import Probe

GATES = '''
"""Gates of the toy study."""

from gatepost.gate import Check, Checks, Evidence, Reach, gate, minimum_count, share


def reach_closes(size, *, min_close_share):
    yield minimum_count("min_close_share", size.rows, lambda count: count / size.rows >= min_close_share)


@gate(version=1, reads=["tasks"], role="validity")
def toy_sizes(evidence: Evidence, *, min_tasks: int) -> Checks:
    yield Check("tasks", len(evidence.tasks.tasks), ">=", min_tasks)


@gate(version=1, reads=["engine"], role="validity")
def toy_engine(evidence: Evidence, *, max_model_len: int) -> Checks:
    yield Check("max_model_len_tokens", evidence.engine.max_model_len, "==", max_model_len)


@gate(version=1, reads=["completions"], reach=reach_closes)
def toy_closes(evidence: Evidence, *, min_close_share: float) -> Checks:
    cap = evidence.plan.max_think_tokens
    closed = sum(sample.continuation.closed_at(cap) for sample in evidence.completions)
    yield share("close_share", closed, len(evidence.plan.keys), ">=", min_close_share)
'''

DOMAIN = '''
"""The toy task domain: say the animal that the task names."""

NAME, VERSION, ANSWER_TEXTS = "toy", 1, (" cat", " dog")


def answers(task):
    return (task["animal"],)


def family(task):
    return task["animal"]


def record_fingerprint(task):
    return f"record {task['task_id']}"


def content_fingerprint(task):
    return f"content {task['task_id']}"


def program_fingerprint(task):
    return f"program {task['task_id']}"


def messages(task, arm):
    return [{"role": "user", "content": f"Say {task['animal']}."}]


def parse(text):
    return text.strip().removeprefix("First: ") or None


def grade(task, parsed):
    return parsed == task["animal"]
'''

DRAFT = """
id = "{name}"
splits = {{ first = "first.jsonl", second = "second.jsonl" }}

[study]
name = "toy"
domain_version = 1

[preregistration]
question = "Which cap is enough?"
hypothesis = "32 ids are."
falsified_by = "No cap passes."
closest_earlier_study = "none"
why_separate = "It is a test."
controls = ["none needed"]
forbidden_inputs = []
forbidden_roots = []
stopping_rule = "The ladder ends."

[model]
repository = "toy"
revision = "{zeros}"
tokenizer_revision = "{zeros}"
think_open = {{ token = "<think>", id = {open_id} }}
think_close = {{ token = "</think>", id = {close_id} }}
model_eos_id = {model_eos_id}
tokenizer_eos_id = {tokenizer_eos_id}

[engine]
kind = "{kind}"
packages = {{}}
start_timeout_seconds = 60
idle_timeout_seconds = 60

[engine.options]
max_model_len = 4096
rules = [{{ think_tokens = [{think_tokens[0]}, {think_tokens[1]}], answers = ["First: cat", "First: dog"] }}]
{device}

[sampling]
temperature = 0.6
top_p = 0.95
top_k = 20
min_p = 0.0
repetition_penalty = 1.0
greedy = false
stop_ids = [{model_eos_id}]
max_answer_tokens = 16
thinking = "natural"
force_close_ids = []
seed_rule = "blake2b64"

[[rungs]]
max_think_tokens = 8

[[rungs]]
max_think_tokens = 32

[[rungs]]
max_think_tokens = 64

[[stages]]
name = "design"
scope = "once"
splits = ["first", "second"]
samples_per_task = 0
text = "graded"
gates.toy_sizes = {{ version = 1, min_tasks = {min_tasks} }}

[[stages]]
name = "selection"
scope = "nested"
splits = ["first"]
samples_per_task = 3
base_seed = 11
text = "withheld"
gates.toy_engine = {{ version = 1, max_model_len = {engine_model_len} }}
gates.toy_closes = {{ version = 1, min_close_share = 0.75 }}

[[stages]]
name = "confirmation"
scope = "selected"
splits = ["second"]
samples_per_task = 2
base_seed = 12
text = "graded"
gates.toy_closes = {{ version = 1, min_close_share = 0.75 }}

[labels]
exhausted = {{ name = "NO_CAP", licenses = "saying so", does_not_license = "more" }}
not_replicated = {{ name = "NOT_REPLICATED", licenses = "saying so", does_not_license = "more" }}
replicated = {{ name = "REPLICATED", licenses = "saying so", does_not_license = "more" }}
"""


@dataclass(frozen=True)
class Project:
    """A project's root directory, with ``gates/``, ``studies/toy/`` and ``receipts/`` in it."""

    root: Path

    @property
    def gates(self) -> Gates:
        """The shipped gates and the project's."""
        return Gates([self.root / "gates"])

    @property
    def studies(self) -> tuple[Path, ...]:
        """Where the toy study is."""
        return (self.root / "studies",)

    def freeze(
        self,
        name: str = "toy",
        *,
        think_tokens: tuple[int, int] = (10, 20),
        kind: str = "scripted",
        device: str | None = None,
        min_tasks: int = 8,
        engine_model_len: int = 4096,
        edit: Callable[[str], str] = lambda text: text,
    ) -> Archive:
        """Freeze the toy study into ``receipts/<name>``.

        Args:
            think_tokens: after how many ids, at least and at most, thinking closes by itself; above 64 never in time.
            kind, device: of the engine; one with a device is none that gatepost knows, and takes what it likes.
            min_tasks: of the design stage, which halts for more than 8.
            engine_model_len: what the gate before generation wants; any but 4096 refuses the selection.
            edit: last change to the draft's text.
        """
        draft = self.root / "studies" / "toy" / f"{name}.toml"
        text = DRAFT.format(
            name=name,
            zeros="0" * 40,
            open_id=scripted_text.IDS["<think>"],
            close_id=scripted_text.IDS["</think>"],
            model_eos_id=scripted_text.IDS[scripted_text.MODEL_EOS],
            tokenizer_eos_id=scripted_text.IDS[scripted_text.TURN_END],
            think_tokens=think_tokens,
            kind="gatepost.engines.scripted:ScriptedEngine" if device and kind == "scripted" else kind,
            device="" if device is None else f'device = "{device}"',
            min_tasks=min_tasks,
            engine_model_len=engine_model_len,
        )
        draft.write_text(edit(text))
        return Archive.create(self.root / "receipts", plan(draft, gates=self.gates, studies=self.studies))

    def step(self, archive: Archive, open_engine: Callable[[EngineSpec], Engine] = ScriptedEngine) -> Decision:
        """Run the open step."""
        return Probe(archive, self.gates, self.studies, open_engine).run()

    def next_step(self, archive: Archive) -> Step:
        """The open step, not run."""
        step = audit(archive.protocol, archive.judgements()).step
        assert step is not None
        return step

    def run(self, archive: Archive) -> Decision:
        """Run steps until the ladder is terminal."""
        while not (decision := self.step(archive)).terminal:
            pass
        return decision


def create_project(root: Path) -> Project:
    """Write the project's files into a folder."""
    for folder in ("gates", "studies/toy", "receipts"):
        (root / folder).mkdir(parents=True)
    (root / "gates" / "toy.py").write_text(GATES)
    study = root / "studies" / "toy"
    (study / "domain.py").write_text(DOMAIN)
    for split in ("first", "second"):
        animals = ("cat", "dog", "cat", "dog")
        for index, animal in enumerate(animals):
            with (study / f"{split}.jsonl").open("a") as file:
                file.write(f'{{"task_id":"{split}-{index}","animal":"{animal}","place":"{split} {index}"}}\n')
    return Project(root)


def reseal(archive: Archive) -> None:
    """Make selection and catalog fit an archive again that was changed, as somebody would who wants it unnoticed."""
    selection = archive.root / "selection.json"
    if selection.exists():
        jsonfile.replace(selection, jsonfile.canonical(archive.expected_selection()))
    archive.write_catalog()


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a canonical JSON file in place."""
    document = jsonfile.read(path)
    change(document)
    jsonfile.replace(path, jsonfile.canonical(document))
