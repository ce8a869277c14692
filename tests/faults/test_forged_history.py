"""A history that was written anew, chain and catalog included, has to fit itself and what lies in the archive."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.engine import Engine, EngineSpec
from gatepost.ladder import Step
from gatepost.preflight import PreflightRefusedError
from gatepost.status import status_text
from tests.archives import Project, create_project, reseal, rewrite
from tests.faults.conftest import Event, problem, replayed, rewrite_history

SELECTION = Step("selection")


def edited(kind: str, /, **fields: object) -> Callable[[list[Event]], list[Event]]:
    """Change the first event of a kind."""

    def change(events: list[Event]) -> list[Event]:
        next(other for other in events if other["event"] == kind).update(fields)
        return events

    return change


def without(*kinds: str) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [event for event in events if event["event"] not in kinds]


def appended(**fields: object) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [*events, {**events[-1], "step": None, "attempt": None, **fields}]


FORGED: dict[str, tuple[Callable[[list[Event]], list[Event]], str]] = {
    "of another protocol": (edited("frozen", detail="sha256:other"), "0001.json: field detail"),
    "at an impossible time": (edited("frozen", at="2199-99-99T99:99:99Z"), "0001.json: field at"),
    "without a beginning": (without("frozen"), "frozen or imported comes first"),
    "with two beginnings": (lambda events: [events[0], *events], "0002.json: field event"),
    "without an end": (without("finished"), "when no other is open"),
    "reduced to its beginning": (lambda events: events[:1], "the history has 0 selections"),
    "without attempts": (without("started", "finished"), "no attempt finished in the history"),
    "without the selection": (without("selected"), "the history has 0 selections"),
    "with two selections": (
        lambda events: [*events, *without("frozen", "started", "finished")(events)],
        "2 selections",
    ),
    "with another outcome": (edited("finished", detail="FAILED"), "field detail is 'FAILED', the receipt says"),
    "of a finish elsewhere": (edited("finished", step="confirmation@32"), "is the end of attempt 1 at confirmation@32"),
    "with a number left out": (edited("started", attempt=7), "starts attempt 7 at design, expected attempt 1"),
    "of a step that is not": (appended(event="started", step="bogus", attempt=4), "starts attempt 4 at bogus"),
    "of no step": (appended(event="started", attempt=4), "starts attempt 4 at None"),
    "of an attempt at a path": (appended(event="started", step="../../x", attempt=4), "attempt 4 at ../../x"),
    "of a second try": (appended(event="started", step="selection", attempt=4), "starts attempt 4 at selection"),
    "of an end of nothing": (appended(event="failed", step="selection", attempt=2), "none is open"),
    "of a selection at a step": (appended(event="selected", step="selection"), "expected neither"),
    "of an import": (edited("frozen", event="imported"), "field origin is live, the history says imported"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_history_that_was_written_anew_is_caught(copied: tuple[Project, Archive], name: str) -> None:
    project, archive = copied
    change, said = FORGED[name]
    rewrite_history(archive, change)
    assert said in problem(project, archive.root)
    status_text(archive, log=True)


def test_a_clock_may_go_backwards(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    rewrite_history(archive, edited("finished", at="1970-01-01T00:00:00Z"))
    assert problem(project, archive.root) == ""


def test_a_receipt_of_another_attempt_is_caught(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    rewrite(archive.step_folder(SELECTION) / "receipt.json", lambda receipt: receipt.update(attempt=77))
    reseal(archive)
    assert "selection/receipt.json: field attempt is 77, but attempt 2 finished" in problem(project, archive.root)


def test_an_origin_is_what_the_history_says(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    for folder in (archive.root / "steps").iterdir():
        rewrite(folder / "receipt.json", lambda receipt: receipt.update(origin="imported"))
    for path in (archive.root / "steps").glob("*/preflight.json"):
        path.unlink()
    reseal(archive)
    assert "field origin is imported, the history says live" in problem(project, archive.root)
    rewrite_history(archive, edited("frozen", event="imported"))
    assert "field limits is empty, expected what an import cannot show" in problem(project, archive.root)


@pytest.fixture
def troubled(tmp_path: Path) -> tuple[Project, Archive]:
    """An archive with an attempt that was refused and one that failed."""
    project = create_project(tmp_path)
    archive = project.freeze(engine_model_len=8192)
    project.step(archive)
    with pytest.raises(PreflightRefusedError):
        project.step(archive)

    def broken(spec: EngineSpec) -> Engine:
        raise RuntimeError(spec.kind)

    with pytest.raises(RuntimeError):
        project.step(archive, broken)
    assert problem(project, archive.root) == ""
    return project, archive


def test_an_attempt_cannot_be_hidden(troubled: tuple[Project, Archive]) -> None:
    project, archive = troubled
    refused, _ = archive.attempt_folders()
    shutil.rmtree(refused)
    archive.write_catalog()
    assert f"attempts/{refused.name}/parents.parquet: is missing" in problem(project, archive.root)
    rewrite_history(archive, lambda events: [event for event in events if event["attempt"] != 2])
    assert "starts attempt 3 at selection, expected attempt 2" in problem(project, archive.root)


def test_an_attempt_cannot_be_invented(troubled: tuple[Project, Archive]) -> None:
    project, archive = troubled
    shutil.copytree(archive.attempt_folders()[0], archive.root / "attempts" / "0009-selection")
    archive.write_catalog()
    assert "attempts/0009-selection: is a folder that an archive does not have" in problem(project, archive.root)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document["judgement"]["verdicts"][0]["checks"][0].update(observed=1), "0002-selection: pref"),
        (lambda document: document["judgement"].update(outcome="pass"), "outcome is pass, but the attempt was refused"),
        (lambda document: document.update(attempt=1), "attempt 1; expected"),
        (lambda document: document.update(protocol=f"sha256:{'1' * 64}"), "preflight.json: is of protocol"),
    ],
)
def test_what_was_refused_is_judged_again(
    troubled: tuple[Project, Archive], change: Callable[[Event], None], said: str
) -> None:
    project, archive = troubled
    rewrite(archive.attempt_folders()[0] / "preflight.json", change)
    archive.write_catalog()
    assert said in problem(project, archive.root)


def test_a_root_noted_elsewhere_pins_what_lies_outside_the_catalog(tmp_path: Path) -> None:
    """Without it, what is newer than the catalog may be what a run has left that was cut off."""
    project = create_project(tmp_path)
    archive = project.freeze()
    noted, catalog = archive.catalog()["root"], (archive.root / "catalog.json").read_bytes()
    project.run(archive)
    jsonfile.replace(archive.root / "catalog.json", catalog)
    assert replayed(project, archive.root).notes
    assert "is not in catalog.json" in problem(project, archive.root, expected_root=noted)
