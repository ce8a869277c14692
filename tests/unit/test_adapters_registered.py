"""A LoRA adapter, from the draft to the receipt: what freezing refuses, what is frozen, and what a contrast shows."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.adapters import check
from gatepost.archive import Archive
from gatepost.audit.rows import read_rows
from gatepost.engine import EngineFacts
from gatepost.engines.adapter import FILES, digests
from gatepost.engines.options import refuse_impossible
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import EngineError, GatepostError, RegistrationError
from gatepost.fingerprint import tree_root
from gatepost.ladder import Decision
from gatepost.replay import replay
from gatepost.seeds import child_seed
from gatepost.stepfiles import facts_of
from tests.adapters import CONTRAST, weights_of, with_adapter, write_adapter
from tests.archives import Project, create_project
from tests.engines.vllm_engines import OPTIONS as VLLM
from tests.protocols import protocol, stage
from tests.unit.test_engine_registered import TRANSFORMERS

README = Path(__file__).resolve().parents[2] / "README.md"
APPLIED = "gates.adapter_applied = { version = 1, min_changed_task_share = 0.5, max_repeat_changed_share = 0.25 }"
CLOSES = "gates.toy_closes = { version = 1, min_close_share = 0.75 }"
OFF, ON, TABLE = 'adapter = "off"', 'adapter = "on"', r"(?s)\[adapter\].*?\n\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return write_adapter(tmp_path / "adapters" / "tuned")


def freeze(project: Project, adapter: Path, edit: Callable[[str], str] = lambda text: text) -> Archive:
    return project.freeze(edit=lambda draft: edit(with_adapter(adapter)(draft)))


def contrast(project: Project, archive: Archive) -> Decision:
    """Run the design stage, and the contrast after it."""
    project.step(archive)
    return project.step(archive)


def verdicts(archive: Archive) -> dict[str, Any]:
    (judgement,) = archive.receipt(archive.finished_steps()[-1])["judgements"]
    return {verdict["gate"]: verdict for verdict in judgement["verdicts"]}


REFUSALS: dict[str, tuple[str, str, str]] = {
    "a stage that does not say": (OFF, "", r"stage selection: adapter is missing, expected one of on, off, contrast"),
    "a stage that says something else": (OFF, 'adapter = "perhaps"', r"stages\[2\]\.adapter.*'perhaps'"),
    "a stage without samples": (
        'samples_per_task = 0\ntext = "graded"',
        f'samples_per_task = 0\ntext = "graded"\n{OFF}',
        r"stage design: adapter is 'off', but the stage samples nothing",
    ),
    "no adapter": (TABLE, "", r"stage contrast: adapter is 'contrast', but there is no table \[adapter\]"),
    "an adapter that nothing uses": (re.escape(CONTRAST), "", r"adapter: no stage uses it"),
    "an adapter without its files pinned": (
        r"\nrevision = \"sha256:.*?\"",
        "",
        r"adapter\.revision is None, but the f",
    ),
    "an adapter with other files": (r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, r"adapter\.revision is .*the pin is"),
    "an adapter that is not there": (r"adapters/tuned", "adapters/none", r"adapter\.path '.*none': no such folder"),
    "an adapter that is none": (r"adapters/tuned", "gates", r"adapter\.path: .*gates holds no adapter_config\.json"),
    "an adapter without a folder": (r"\npath = .*?\n", "\n", r"adapter\.path is missing, expected a string"),
    "an adapter without a name": (r"name = \"tuned\"\n", "", r"\$\.adapter: 'name' is a required property"),
    "an adapter with something else": (
        r"name = \"tuned\"",
        'name = "tuned"\nrank = 4',
        r"\$\.adapter: .*'rank' was un",
    ),
    "an adapter under a forbidden root": (
        r"forbidden_roots = \[\]",
        'forbidden_roots = ["adapters"]',
        r"adapters/tuned: lies under the forbidden root 'adapters'",
    ),
    "a contrast of two samples": (
        "samples_per_task = 3\nmax_think_tokens",
        "samples_per_task = 2\nmax_think_tokens",
        r"stage contrast: adapter is 'contrast' with samples_per_task 2, expected 3",
    ),
    "a contrast that nothing compares": (
        re.escape(APPLIED),
        "",
        r"its gates are seed_binding, seeds; expected adapter_a",
    ),
    "a contrast whose rates are judged": (
        re.escape(APPLIED),
        f"{APPLIED}\n{CLOSES}",
        r"stage contrast: adapter is 'contrast', but the gate toy_closes judges all samples as if of one model",
    ),
    "a comparison without a contrast": (
        f'{OFF}\ntext = "withheld"',
        f'{OFF}\ntext = "withheld"\n{APPLIED}',
        r"stage selection: adapter is 'off', and its gates are .*; expected adapter_applied listed by every contrast",
    ),
    "a stage whose adapter nothing compares": (
        OFF,
        ON,
        r"stage selection: adapter is 'on', .*; expected model_pin among",
    ),
    "a change that cannot be missed": (
        "min_changed_task_share = 0.5",
        "min_changed_task_share = 0.0",
        r"stage contrast: gate adapter_applied: min_changed_task_share: no sample could miss it",
    ),
    "noise that cannot be missed": (
        "max_repeat_changed_share = 0.25",
        "max_repeat_changed_share = 1.0",
        r"stage contrast: gate adapter_applied: max_repeat_changed_share: no sample could miss it",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refuses(project: Project, adapter: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)
    old, new, message = REFUSALS[name]

    def edit(draft: str) -> str:
        draft, count = re.subn(old, new, draft, count=1)
        assert count, old
        return draft

    with pytest.raises(GatepostError, match=message) as refused:
        freeze(project, adapter, edit)
    assert "toy.toml" in str(refused.value) or name == "an adapter that is not there"
    assert list((project.root / "receipts").iterdir()) == []


@pytest.mark.parametrize("name", FILES)
def test_refuses_a_folder_without_one_of_the_files(project: Project, adapter: Path, name: str) -> None:
    edit = with_adapter(adapter)
    (adapter / name).unlink()
    (adapter / "adapter_model.bin").write_bytes(b"a pickle")
    with pytest.raises(GatepostError, match=rf"adapter\.path: .*tuned holds no {name}"):
        project.freeze(edit=edit)


def test_a_stage_that_scores_does_not_score_a_contrast(project: Project, adapter: Path) -> None:
    gates = {"adapter_applied": {"version": 1, "thresholds": {}}}
    plan = protocol(
        stage("both", "rung", adapter="contrast", gates=gates),
        stage("scoring", "selected", samples_per_task=0, scores=["both"]),
        adapter={"name": "tuned", "path": "tuned", "revision": tree_root(digests(adapter)), "files": digests(adapter)},
    )
    with pytest.raises(RegistrationError, match="stage scoring: scores both, a contrast of two models"):
        check(plan, lambda entry: project.gates.get("adapter_applied", 1, where="test"))


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        ("scripted", {}, None),
        ("vllm", {**VLLM, "enable_lora": True}, None),
        ("my.engines:Fast", {}, None),  # its facts will tell
        ("vllm", VLLM, "options: enable_lora is None, expected true for an adapter"),
        ("vllm", {**VLLM, "enable_lora": False}, "options: enable_lora is False, expected true for an adapter"),
        ("vllm", {**VLLM, "enable_lora": 1}, "options: enable_lora is 1, expected true for an adapter"),
        (
            "transformers",
            TRANSFORMERS,
            "engine transformers takes no adapter; merge it into the model, or register vllm",
        ),
    ],
)
def test_an_engine_that_could_not_apply_it_is_refused(kind: str, options: dict[str, Any], problem: str | None) -> None:
    refuse_impossible(kind, options)
    if problem is None:
        return refuse_impossible(kind, options, adapter=True)
    with pytest.raises(EngineError, match=problem) as refused:
        refuse_impossible(kind, options, adapter=True)
    assert refused.value.kind == "refused"
    return None


def test_a_draft_for_such_an_engine_is_refused(project: Project, adapter: Path) -> None:
    options = "\n".join(f"{name} = {jsonfile.canonical(value).decode()}" for name, value in TRANSFORMERS.items())

    def edit(draft: str) -> str:
        return re.sub(r"(?s)max_model_len = 4096\nrules.*?\n\n", f"{options}\n\n", draft)

    with pytest.raises(GatepostError, match="engine, at rung 8: engine transformers takes no adapter"):
        project.freeze(kind="transformers", edit=lambda draft: edit(with_adapter(adapter)(draft)))
    assert project.freeze(kind="transformers", edit=edit).protocol.adapter is None


def test_without_an_adapter_nothing_of_it_is_frozen(project: Project) -> None:
    archive = project.freeze()
    assert b"adapter" not in (archive.root / "protocol.json").read_bytes()
    assert archive.protocol.adapter is None
    assert {stage.adapter for stage in archive.protocol.stages} == {None}


def test_a_frozen_adapter(project: Project, adapter: Path) -> None:
    protocol = freeze(project, adapter).protocol
    assert protocol.adapter is not None
    assert (protocol.adapter.name, protocol.adapter.path) == ("tuned", "adapters/tuned")
    assert protocol.adapter.files == digests(adapter)
    assert [stage.adapter for stage in protocol.stages] == [None, "contrast", "off", "off"]
    uses = {stage.name: [stage.uses_adapter(index) for index in range(3)] for stage in protocol.stages}
    assert uses == {
        "design": [False] * 3,
        "contrast": [False, True, True],
        "selection": [False] * 3,
        "confirmation": [False] * 3,
    }


def test_a_contrast_of_an_adapter_that_works_opens_the_ladder(project: Project, adapter: Path) -> None:
    archive = freeze(project, adapter)
    assert str(contrast(project, archive).step) == "selection"
    assert {name: verdict["outcome"] for name, verdict in verdicts(archive).items()} == dict.fromkeys(
        ("adapter_applied", "seed_binding", "seeds"), "pass"
    )
    folder = archive.step_folder(archive.finished_steps()[-1])
    facts = facts_of(folder)
    assert facts is not None
    assert facts.adapter_files == digests(adapter)
    assert project.run(archive).state == "replicated"
    assert replay(archive.root, gates=project.gates, studies=project.studies).differences == ()


def test_the_samples_of_a_task_share_its_first_seed(project: Project, adapter: Path) -> None:
    archive = freeze(project, adapter)
    contrast(project, archive)
    rows = read_rows(archive.step_folder(archive.finished_steps()[-1]) / "rows.parquet")
    assert [row.seed for row in rows] == [child_seed(10, f"first-{task}", 0) for task in range(4) for _ in range(3)]
    off, on, again = (rows[index].token_ids for index in range(3))
    assert off != on == again


RULES = r"rules = .*"
FAULTS = {
    "ignored": (
        r"(max_model_len = 4096)",
        r"\1\nignores_adapter = true",
        {"changed_task_share", "changed_beyond_repeats"},
    ),
    "repeats differ": (
        RULES,
        'rules = [{ match = "*/2", think_text = " wait" }, { match = "*" }]',
        {"repeat_changed_share", "changed_beyond_repeats"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_adapter_that_is_not_applied_halts_the_ladder(project: Project, adapter: Path, name: str) -> None:
    old, new, failed = FAULTS[name]
    archive = freeze(project, adapter, lambda draft: re.sub(old, new, draft, count=1))
    assert contrast(project, archive).state == "halted"
    checks = verdicts(archive)["adapter_applied"]["checks"]
    assert {check["name"] for check in checks if check["outcome"] == "fail"} == failed
    assert replay(archive.root, gates=project.gates, studies=project.studies).differences == ()


def test_an_adapter_that_was_changed_since_is_not_the_registered_one(project: Project, adapter: Path) -> None:
    archive = freeze(project, adapter)
    (adapter / "adapter_model.safetensors").write_bytes(weights_of(b"trained further"))
    assert contrast(project, archive).state == "halted"
    checks = {check["name"]: check["outcome"] for check in verdicts(archive)["adapter_applied"]["checks"]}
    assert [name for name, outcome in checks.items() if outcome == "fail"] == ["adapter_files"]


def test_an_adapter_that_is_gone_starts_nothing(project: Project, adapter: Path) -> None:
    archive = freeze(project, adapter)
    adapter.rename(adapter.with_name("moved"))
    project.step(archive)
    with pytest.raises(GatepostError, match=r"adapter\.path 'adapters/tuned': no such folder"):
        project.step(archive)
    assert str(project.next_step(archive)) == "contrast"


def test_the_contrast_of_the_readme_can_be_copied(project: Project, adapter: Path) -> None:
    (block,) = re.findall(r"```toml\n(\[adapter\].*?)```", README.read_text(), re.DOTALL)
    stage = block[block.index("[[stages]]") :].replace('splits = ["smoke"]', 'splits = ["first"]')
    archive = project.freeze(edit=with_adapter(adapter, contrast=f"{stage}\n"))
    assert str(contrast(project, archive).step) == "selection"


class Silent(ScriptedEngine):
    """An engine that was written before there were adapters: it tells nothing of any."""

    def facts(self) -> EngineFacts:
        return replace(super().facts(), adapter_files=None)


def test_an_engine_that_tells_of_no_adapter_is_inconclusive(project: Project, adapter: Path) -> None:
    archive = freeze(project, adapter)
    project.step(archive)
    assert project.step(archive, Silent).reason == "contrast is inconclusive: adapter_applied"
