"""A run that dies at any point leaves a record that says so, loses no sampled id, and can go on."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import integrity
from gatepost.archive import Archive
from gatepost.engine import EngineSpec
from gatepost.engines.child import ChildSession
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import EngineError, OrderError, UserCodeError
from gatepost.ladder import Step
from gatepost.preflight import PreflightRefusedError
from gatepost.probe import Probe
from gatepost.replay import replay
from gatepost.status import status_text
from tests.archives import Project, create_project


def project_before_selection(folder: Path) -> tuple[Project, Archive]:
    project = create_project(folder)
    archive = project.freeze()
    project.step(archive)
    return project, archive


def faulty(fault: str, after: int) -> Callable[[str], str]:
    """A draft whose engine does something to the sixth sample of the selection, after so many ids."""
    rule = f'{{ match = "first-1/2", think_tokens = [40, 40], fault = "{fault}", fault_after_tokens = {after} }}'
    return lambda text: text.replace("rules = [", f"rules = [{rule}, ").replace(
        "idle_timeout_seconds = 60", "idle_timeout_seconds = 2"
    )


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("crash", "crash"),
        ("kill", "crash"),
        ("exit", "crash"),
        ("out_of_memory", "out_of_memory"),
        ("hang", "timeout"),
        ("garbage", "garbage"),
        ("partial_line", "garbage"),
    ],
)
def test_an_engine_that_fails_leaves_every_id(tmp_path: Path, fault: str, kind: str) -> None:
    project = create_project(tmp_path)
    archive = project.freeze(edit=faulty(fault, 33))
    project.step(archive)
    with pytest.raises(EngineError) as caught:
        project.step(archive, open_engine=ChildSession)
    assert caught.value.kind == kind or (fault, caught.value.kind) == ("partial_line", "crash")
    integrity.verify(archive)
    (folder,) = archive.attempt_folders()
    assert not (folder / "rows.parquet").exists(), "an attempt can never be taken for a row set"
    assert archive.finished_steps() == [Step("design")]
    said = status_text(archive, log=True)
    assert "ids of 6 samples; an attempt, never a row set" in said
    assert "failed" in said
    assert "EngineError" in said
    stream = (folder / "stream.jsonl").read_bytes()
    assert stream.count(b'"request_id": "first-1/2", "token_ids"') == 2, "two chunks of 16 ids came before the fault"
    # The step stays open; the failed attempt stays on record beside the one that succeeds.
    assert project.next_step(archive) == Step("selection")


def never(spec: EngineSpec) -> ScriptedEngine:
    raise AssertionError("an engine was started, but everything was sampled already")


def test_a_mistake_in_judging_never_costs_a_run(tmp_path: Path) -> None:
    """The rows are whole on disk; the next invocation judges them and samples nothing."""
    project, archive = project_before_selection(tmp_path)
    gates = project.root / "gates" / "toy.py"
    right = gates.read_text()
    gates.write_text(right.replace("closed = sum(", "closed = 1 / 0 + sum("))
    with pytest.raises(UserCodeError, match=r"gate toy_closes \(version 1, .*toy.py\) raised ZeroDivisionError"):
        fresh(project, archive).run()
    assert "ZeroDivisionError" in status_text(archive, log=True)
    gates.write_text(right)
    decision = fresh(project, archive, never).run()
    assert str(decision) == "open: confirmation@32"
    integrity.verify(archive)


def forget_gates(project: Project) -> None:
    """Have the project's gates read anew, as another process would."""
    for name in [name for name in sys.modules if name.startswith("gatepost_gate_") and str(project.root) in name]:
        del sys.modules[name]


def fresh(
    project: Project, archive: Archive, open_engine: Callable[[EngineSpec], ScriptedEngine] = ScriptedEngine
) -> Probe:
    """A probe with the gates read anew."""
    forget_gates(project)
    return Probe(archive, project.gates, project.studies, open_engine)


def test_a_changed_comment_in_gate_code_voids_no_receipt(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.run(archive)
    gates = project.root / "gates" / "toy.py"
    gates.write_text("# A remark.\n" + gates.read_text().replace('"""Gates of the toy study."""', '"""Toy gates."""'))
    forget_gates(project)
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful
    gates.write_text(gates.read_text().replace('">="', '"<="'))
    forget_gates(project)
    assert not replay(archive.root, gates=project.gates, studies=project.studies).faithful, "a changed meaning does"


def test_a_refusal_before_generation_samples_nothing_and_stays_open(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze(engine_model_len=8192)
    project.step(archive)
    with pytest.raises(PreflightRefusedError, match=r"toy_engine: max_model_len_tokens 4096 == 8192"):
        project.step(archive)
    (folder,) = archive.attempt_folders()
    assert sorted(path.name for path in folder.iterdir()) == [
        "parents.parquet", "preflight.json", "prompts.parquet", "tasks.parquet",
    ]  # fmt: skip
    assert project.next_step(archive) == Step("selection")
    integrity.verify(archive)


def test_one_live_run_at_a_time(tmp_path: Path) -> None:
    project, archive = project_before_selection(tmp_path)
    with archive.lock(), pytest.raises(OrderError, match="another live run holds this archive"):
        project.step(archive)
    project.step(archive)


def test_nothing_runs_after_the_end(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze(think_tokens=(100, 120))
    assert str(project.run(archive)) == "decision: NO_CAP selected=none"
    with pytest.raises(OrderError, match="no step is open"):
        project.step(archive)
