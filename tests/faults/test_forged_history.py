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
    "reduced to its beginning": (lambda events: events[:1], "but no attempt finished in the history"),
    "without attempts": (without("started", "finished"), "no attempt finished in the history"),
    "without the selection": (without("selected"), "0006.json: field event is 'started', but a selection is due here"),
    "with two selections": (
        lambda events: [*events, *without("frozen", "started", "finished")(events)],
        "0009.json: field event is 'selected', but a selection was decided before",
    ),
    "with a selection before its time": (
        lambda events: [*events[:3], events[5], *events[3:5], *events[6:]],
        "0004.json: field event is 'selected', but a selection was decided before, or not yet",
    ),
    "with a selection after its time": (
        lambda events: [*events[:5], *events[6:], events[5]],
        "0006.json: field event is 'started', but a selection is due here",
    ),
    "with a selection at the end of nothing": (
        lambda events: [*events[:4], events[5], events[4], *events[6:]],
        "0005.json: field event is 'selected', but a selection was decided before, or not yet",
    ),
    "of another rung": (edited("selected", detail="SELECTED 64"), "0006.json: field detail is 'SELECTED 64'"),
    "of another label": (edited("selected", detail="NO_CAP None"), "0006.json: field detail is 'NO_CAP None'"),
    "of an attempt after the end": (
        appended(event="started", step="confirmation@64", attempt=4, detail=""),
        "0009.json: starts attempt 4 at confirmation@64, but the ladder was decision: REPLICATED selected=32",
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


def swapped(archive: Archive, *order: int) -> None:
    """Tell that the attempts were made in another order, numbered anew, the selection still after its step."""
    numbers = {old: new for new, old in enumerate(order, start=1)}

    def change(events: list[Event]) -> list[Event]:
        blocks = {old: [event for event in events if event["attempt"] == old] for old in order}
        blocks[2] += [event for event in events if event["event"] == "selected"]
        for old, block in blocks.items():
            for event in block:
                event["attempt"] = event["attempt"] and numbers[old]
        return [events[0], *(event for old in order for event in blocks[old])]

    rewrite_history(archive, change)
    for path in (archive.root / "steps").glob("*/[pr]*.json"):
        if path.name in ("receipt.json", "preflight.json"):
            rewrite(path, lambda document: document.update(attempt=numbers[document["attempt"]]))
    reseal(archive)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ((1, 2, 3), ""),
        ((2, 1, 3), "0002.json: starts attempt 1 at selection, but the ladder was open: design"),
        ((1, 3, 2), "0004.json: starts attempt 2 at confirmation@32, but the ladder was open: selection"),
        ((3, 1, 2), "0002.json: starts attempt 1 at confirmation@32, but the ladder was open: design"),
    ],
)
def test_steps_are_attempted_when_the_ladder_opens_them(
    copied: tuple[Project, Archive], order: tuple[int, ...], said: str
) -> None:
    project, archive = copied
    swapped(archive, *order)
    found = problem(project, archive.root)
    assert said in found
    assert bool(found) is bool(said)


@pytest.mark.parametrize("event", ["failed", "refused", "preflight"])
def test_an_attempt_at_a_step_that_was_not_open_is_caught_however_it_ended(
    copied: tuple[Project, Archive], event: str
) -> None:
    """A look at what only a selection opens, before anything was selected."""
    project, archive = copied
    for path in (archive.root / "steps").glob("*/[pr]*.json"):
        if path.name in ("receipt.json", "preflight.json"):
            rewrite(path, lambda document: document.update(attempt=document["attempt"] + 1))
    folder = archive.root / "attempts" / "0001-confirmation@32"
    shutil.copytree(archive.step_folder(SELECTION), folder)
    for path in folder.iterdir():
        if path.name not in ("tasks.parquet", "parents.parquet", "prompts.parquet", "preflight.json"):
            path.unlink()

    def change(events: list[Event]) -> list[Event]:
        for other in events:
            other["attempt"] = other["attempt"] and other["attempt"] + 1
        added = {**events[1], "step": "confirmation@32", "attempt": 1, "detail": ""}
        return [events[0], {**added, "event": "started"}, {**added, "event": event}, *events[1:]]

    rewrite_history(archive, change)
    reseal(archive)
    assert "0002.json: starts attempt 1 at confirmation@32, but the ladder was open: design" in problem(
        project, archive.root
    )


def test_a_selection_that_the_history_tells_of_is_there(troubled_after: tuple[Project, Archive]) -> None:
    """A run that is under way excuses a selection that it has not come to, not one that was written before it."""
    project, archive = troubled_after
    assert problem(project, archive.root) == ""
    (archive.root / "selection.json").unlink()
    archive.write_catalog()
    assert "selection.json: is missing, but 0006.json says it was written" in problem(project, archive.root)


@pytest.fixture
def troubled_after(tmp_path: Path) -> tuple[Project, Archive]:
    """An archive with a selection and an attempt that is under way."""
    project = create_project(tmp_path)
    archive = project.freeze()
    for _ in range(2):
        project.step(archive)
    archive.begin(project.next_step(archive))
    return project, archive


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
        (lambda document: document.update(attempt=1), "field attempt is 1, expected 2"),
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
