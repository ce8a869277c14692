"""An attempt that did not finish is what its preflight, the history and the task domain say of it, or is caught."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engines.scripted import ScriptedEngine
from gatepost.evidence import Tasks
from gatepost.ladder import Step
from gatepost.preflight import PreflightRefusedError
from gatepost.probe import Probe
from tests.archives import Project, create_project, rewrite
from tests.faults.conftest import Event, problem, rewrite_history
from tests.faults.test_after_sampling import break_judging_once
from tests.faults.test_interruption import never, project_before_selection

SELECTION = Step("selection")
FOLDER = "attempts/0002-selection"
Made = tuple[Project, Archive]


def made(folder: Path, end: str) -> Made:
    """An archive whose second attempt ended before generation."""
    project = create_project(folder)
    archive = project.freeze(engine_model_len=8192 if end == "refused" else 4096)
    project.step(archive)
    if end == "refused":
        with pytest.raises(PreflightRefusedError):
            project.step(archive)
    else:
        Probe(archive, project.gates, project.studies, ScriptedEngine, preflight_only=True).run()
    assert archive.journal.read()[-1].event == end
    assert problem(project, archive.root) == ""
    return project, archive


@pytest.fixture
def refused(tmp_path: Path) -> Made:
    return made(tmp_path, "refused")


@pytest.fixture(params=["refused", "preflight"])
def looked_at(tmp_path: Path, request: pytest.FixtureRequest) -> Made:
    return made(tmp_path, request.param)


def closed_as(event: str, detail: str) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [*events[:-1], {**events[-1], "event": event, "detail": detail}]


@pytest.mark.parametrize("gone", [(), ("prompts.parquet",), ("tasks.parquet", "parents.parquet", "prompts.parquet")])
def test_a_refusal_is_not_a_failure(refused: Made, gone: tuple[str, ...]) -> None:
    project, archive = refused
    rewrite_history(archive, closed_as("failed", "interrupted: the run ended without a word"))
    for name in gone:
        (archive.root / FOLDER / name).unlink()
    archive.write_catalog()
    assert "field judgement.outcome is fail, but the attempt failed" in problem(project, archive.root)


def test_an_open_attempt_may_have_been_refused(refused: Made) -> None:
    project, archive = refused
    rewrite_history(archive, lambda events: events[:-1])
    assert problem(project, archive.root) == "", "it was killed before it could say so"


@pytest.mark.parametrize("detail", ["", "selection: refused before generation", "selection: refused; toy_engine: lies"])
def test_the_history_says_of_a_refusal_what_was_refused(refused: Made, detail: str) -> None:
    project, archive = refused
    rewrite_history(archive, closed_as("refused", detail))
    found = problem(project, archive.root)
    assert f"0002-selection: preflight: judgement: recorded in log/0005.json as {detail!r}, recomputed" in found
    assert "toy_engine: max_model_len_tokens 4096 == 8192" in found


def test_a_preflight_is_of_its_own_attempt(looked_at: Made) -> None:
    """Its copy in a folder of its own is not a second attempt."""
    project, archive = looked_at
    shutil.copytree(archive.root / FOLDER, archive.root / "attempts" / "0003-selection")
    rewrite_history(archive, lambda events: [*events, *({**event, "attempt": 3} for event in events[-2:])])
    assert "0003-selection/preflight.json: field attempt is 2, expected 3" in problem(project, archive.root)
    rewrite(
        archive.root / "attempts" / "0003-selection" / "preflight.json", lambda document: document.update(attempt=3)
    )
    archive.write_catalog()
    assert problem(project, archive.root) == ""


def no_tasks(folder: Path) -> None:
    (folder / "tasks.parquet").unlink()
    (folder / "parents.parquet").unlink()
    tables.write_tasks(folder, Tasks((), ()))


def other_answers(folder: Path) -> None:
    tasks = tables.read_tasks(folder)
    (folder / "tasks.parquet").unlink()
    (folder / "parents.parquet").unlink()
    tables.write_tasks(folder, replace(tasks, tasks=tuple(replace(task, answers=("cat",)) for task in tasks.tasks)))


def fewer_prompts(folder: Path) -> None:
    change_prompts(folder, slice(1, None))


def prompts_twice(folder: Path) -> None:
    change_prompts(folder, slice(None), times=2)


def change_prompts(folder: Path, kept: slice, *, times: int = 1) -> None:
    prompts = list(tables.read_prompts(folder / "prompts.parquet"))
    (folder / "prompts.parquet").unlink()
    tables.write_prompts(folder / "prompts.parquet", prompts[kept] * times)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (no_tasks, "tasks.parquet: differs from what the task domain derives"),
        (other_answers, "tasks.parquet: differs from what the task domain derives"),
        (fewer_prompts, "prompts.parquet: prompts of tasks"),
        (prompts_twice, "prompts.parquet: prompts of tasks"),
    ],
)
def test_what_an_attempt_was_judged_by_is_derived_again(
    looked_at: Made, change: Callable[[Path], None], said: str
) -> None:
    project, archive = looked_at
    change(archive.root / FOLDER)
    archive.write_catalog()
    assert f"{FOLDER}/{said}" in problem(project, archive.root)


@pytest.mark.parametrize("name", ["stream.jsonl", "rows.parquet", "session.json", "text.parquet", "rows.json"])
def test_nothing_was_sampled_before_generation(looked_at: Made, name: str) -> None:
    project, archive = looked_at
    (archive.root / FOLDER / name).write_bytes(b'{"request_id":"a","token_ids":[1,2]}\n')
    archive.write_catalog()
    assert f"{FOLDER}/{name}: is not part of an archive" in problem(project, archive.root)


@pytest.fixture
def taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Attempt 2 sampled; 3 took its samples over; 4 took those over and became the step. None but 4 was judged."""
    project, archive = project_before_selection(tmp_path)
    break_judging_once(project, archive, monkeypatch)
    break_judging_once(project, archive, monkeypatch)
    project.step(archive, never)
    assert archive.receipt(SELECTION)["attempt"] == 4
    assert problem(project, archive.root) == ""
    return project, archive


@pytest.mark.parametrize("folder", ["attempts/0003-selection", "steps/selection"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda archive, folder: claim(folder, 1), "field attempt is 1, expected"),
        (lambda archive, folder: claim(folder, 9), "field attempt is 9, expected"),
        (lambda archive, folder: (archive.root / FOLDER / "session.json").unlink(), "field attempt is 2, expected"),
        (lambda archive, folder: (archive.root / FOLDER / "prompts.parquet").unlink(), "field attempt is 2, expected"),
        (lambda archive, folder: grow(archive.root / FOLDER / "rows.parquet"), "field attempt is 2, expected"),
    ],
)
def test_samples_are_taken_over_whole_from_an_earlier_attempt(
    taken_over: Made, folder: str, change: Callable[[Archive, Path], None], said: str
) -> None:
    project, archive = taken_over
    change(archive, archive.root / folder)
    archive.write_catalog()
    found = problem(project, archive.root)
    assert said in found
    assert "whose samples it took over" in found


def claim(folder: Path, attempt: int) -> None:
    rewrite(folder / "preflight.json", lambda document: document.update(attempt=attempt))


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("disk full"), SystemExit(1)])
def test_a_run_that_ends_after_a_refusal_was_written_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    project = create_project(tmp_path)
    archive = project.freeze(engine_model_len=8192)
    project.step(archive)
    write_new = jsonfile.write_new

    def dying(path: Path, data: bytes) -> None:
        write_new(path, data)
        if path.name == "preflight.json":
            raise error

    with monkeypatch.context() as broken:
        broken.setattr(jsonfile, "write_new", dying)
        with pytest.raises(type(error)):
            project.step(archive)
    assert_refused(project, archive)


def test_a_run_that_was_killed_after_a_refusal_was_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = create_project(tmp_path)
    archive = project.freeze(engine_model_len=8192)
    project.step(archive)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Archive, "close", killed)
        with pytest.raises(KeyboardInterrupt):
            project.step(archive)
    assert archive.open_attempts()
    with pytest.raises(PreflightRefusedError):
        project.step(archive)
    assert_refused(project, archive)


def assert_refused(project: Project, archive: Archive) -> None:
    event = next(event for event in archive.journal.read() if event.attempt == 2 and event.event != "started")
    assert (event.event, "max_model_len_tokens 4096 == 8192" in event.detail) == ("refused", True)
    assert problem(project, archive.root) == ""
