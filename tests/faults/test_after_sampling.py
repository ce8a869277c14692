"""Once the last sample is on disk, nothing costs the run: not a failing engine, not a mistake, not a second death."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engine import Chunk, Completion, EngineFacts, Request
from gatepost.engines.child import ChildSession
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import DataError, EngineError
from gatepost.evidence import Tasks
from gatepost.ladder import Step
from gatepost.replay import replay
from gatepost.stepfiles import facts_of
from tests.archives import Project, create_project
from tests.faults.test_interruption import never, project_before_selection


@pytest.mark.parametrize("after", ["session.json", "rows.parquet", "prompts.parquet"])
def test_a_run_that_dies_while_it_takes_over_evidence_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """Half of a copy is never taken for a whole one, and what was derived before is derived anew."""
    project, archive = project_before_selection(tmp_path)
    break_judging_once(project, archive, monkeypatch)
    write_new = jsonfile.write_new

    def dying(path: Path, data: bytes) -> None:
        write_new(path, data)
        if path.name == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(jsonfile, "write_new", dying)
        with pytest.raises(KeyboardInterrupt):
            project.step(archive, never)
    assert str(project.step(archive, never)) == "open: confirmation@32"
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful


def test_only_what_the_engine_gave_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the task domain is made good by the next attempt, instead of being copied into it."""
    project, archive = project_before_selection(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr("gatepost.probe.analyse_tasks", lambda *_: Tasks((), ()))
        break_judging_once(project, archive, monkeypatch)
    project.step(archive, never)
    assert len(tables.read_tasks(archive.step_folder(Step("selection"))).tasks) == 4
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful


def break_judging_once(project: Project, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt whose evidence is whole and that was not judged."""
    with monkeypatch.context() as broken:
        broken.setattr("gatepost.probe.write_receipt", raising(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            project.step(archive)


def raising(error: Exception) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> Any:
        raise error

    return call


class LateFailure(ScriptedEngine):
    """Fails at one call once everything is sampled."""

    at = "close"
    sampled = False

    def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
        yield from super().generate(requests)
        self.sampled = True
        if self.at == "generate":
            raise EngineError("lost on the way home\n  | a log line", kind="crash")

    def facts(self) -> EngineFacts:
        if self.sampled and self.at == "facts":
            raise EngineError("lost on the way home\n  | a log line", kind="crash")
        odd = self.sampled and self.at == "odd facts"
        return replace(super().facts(), **({"device": 3} if odd else {"scheduler": {"max_num_seqs": 4}}))  # type: ignore[arg-type]

    def close(self) -> None:
        if self.at == "close":
            raise EngineError("lost on the way home\n  | a log line", kind="crash")


@pytest.mark.parametrize(
    ("at", "limit", "scheduler"),
    [
        ("generate", "the engine failed after the last sample: EngineError: lost on the way home", True),
        ("facts", "facts after generation are unknown: EngineError: lost on the way home", False),
        ("odd facts", "facts after generation are unknown: ", False),
        ("close", "the engine failed at closing: EngineError: lost on the way home", True),
    ],
)
def test_a_failure_after_the_last_sample_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, limit: str, scheduler: bool
) -> None:
    project, archive = project_before_selection(tmp_path)
    monkeypatch.setattr(LateFailure, "at", at)
    assert str(project.step(archive, LateFailure)) == "open: confirmation@32"
    (said,) = archive.receipt(Step("selection"))["limits"]
    assert said.startswith(limit)
    assert "log line" not in said
    facts = facts_of(archive.step_folder(Step("selection")))
    assert facts is not None
    assert (facts.scheduler is not None) is scheduler
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful


def test_a_child_that_fails_at_closing_costs_no_run(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze(edit=lambda text: text.replace("rules = [", 'close_fault = "crash"\nrules = ['))
    project.step(archive)
    assert str(project.step(archive, ChildSession)) == "open: confirmation@32"
    (said,) = archive.receipt(Step("selection"))["limits"]
    assert said.startswith("the engine failed at closing: EngineError: engine 'scripted' crashed")


def test_facts_that_no_record_can_hold_are_refused_before_sampling(tmp_path: Path) -> None:
    project, archive = project_before_selection(tmp_path)

    class Odd(ScriptedEngine):
        def facts(self) -> EngineFacts:
            return replace(super().facts(), device=3)  # type: ignore[arg-type]

    with pytest.raises(DataError, match=r"engine facts: field .*engine"):
        project.step(archive, Odd)
    assert not (archive.attempt_folders()[0] / "stream.jsonl").exists()
