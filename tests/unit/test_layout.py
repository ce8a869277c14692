"""Which evidence a stage leaves, by what it samples and what becomes of its text."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gatepost import tree
from gatepost.archive import Archive
from gatepost.errors import IntegrityError
from gatepost.journal import Event
from gatepost.layout import evidence_of, is_leftover, verify
from gatepost.tree import Tree
from tests.archives import create_project
from tests.gates.builders import plan

TASKS = {"tasks.parquet", "parents.parquet"}
SAMPLED = TASKS | {"prompts.parquet", "rows.parquet", "session.json"}
SCORED = TASKS | {"choices.parquet", "scores.parquet"}


@pytest.mark.parametrize(
    ("samples", "text", "scores", "expected"),
    [
        (0, "withheld", (), TASKS),
        (0, "graded", (), TASKS),  # there is nothing to grade
        (1, "withheld", (), SAMPLED),
        (1, "sealed", (), SAMPLED | {"text.parquet"}),
        (1, "graded", (), SAMPLED | {"text.parquet", "grades.parquet"}),
        (0, "graded", ("selection",), SCORED),
    ],
)
def test_the_evidence_of_a_stage(samples: int, text: str, scores: tuple[str, ...], expected: set[str]) -> None:
    assert evidence_of(replace(plan().stage, samples_per_task=samples, text=text, scores=scores)) == expected


@pytest.mark.parametrize(
    ("name", "left"),
    [
        (".writing-a.json", True),
        ("steps/s@16/.writing-rows.parquet", True),
        (".writing-steps/rows.parquet", False),
        ("steps/writing-rows.parquet", False),
        ("log/0001.json", False),
        (".hidden", False),
    ],
)
def test_what_an_interrupted_write_leaves(name: str, left: bool) -> None:
    assert is_leftover(name) is left


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Its first step, which samples nothing, has finished."""
    project = create_project(tmp_path_factory.mktemp("layout"))
    made = project.freeze()
    project.step(made)
    return made


SECOND = "attempts/0002-selection"
BEFORE = ("tasks.parquet", "parents.parquet", "prompts.parquet", "preflight.json")
CONFIRMED = "attempts/0002-confirmation@32"


def event(kind: str, step: str = "selection") -> Event:
    return Event(4, "2026-01-02T12:00:00Z", kind, step, 2, "")


def laid_out(archive: Archive, *, add: Sequence[str], remove: Sequence[str], events: Sequence[Event]) -> None:
    """Verify the archive's own files and history, but for some files more or less, and events more."""
    found = tree.read(archive.root)
    files = {**found.files, **dict.fromkeys(add, 1)}
    for name in remove:
        del files[name]
    numbered = [replace(one, sequence=4 + place) for place, one in enumerate(events)]
    files.update({one.path: 1 for one in numbered})
    folders = found.folders | {name.rpartition("/")[0] for name in files} - {""}
    verify(archive, [*archive.journal.read(), *numbered], Tree(files, frozenset(folders)))


@pytest.mark.parametrize(
    ("add", "events"),
    [
        ((), ()),
        (("selection.json", ".writing-a", "log/.writing-b", "steps/design/.writing-c"), ()),
        ([f"{SECOND}/{name}" for name in (*BEFORE, "stream.jsonl", "rows.parquet")], [event("started")]),
        ([f"{SECOND}/session.json"], [event("started")]),
        ((f"{SECOND}/rows.json", f"{SECOND}/receipt.json"), [event("started")]),
        ((f"{CONFIRMED}/grades.parquet", f"{CONFIRMED}/text.parquet"), [event("started", "confirmation@32")]),
        ([f"{SECOND}/{name}" for name in BEFORE], [event("started"), event("refused")]),
        ([f"{SECOND}/{name}" for name in BEFORE], [event("started"), event("preflight")]),
        ((f"{SECOND}/stream.jsonl",), [event("started"), event("failed")]),
    ],
)
def test_what_an_archive_may_have(archive: Archive, add: Sequence[str], events: Sequence[Event]) -> None:
    laid_out(archive, add=add, remove=(), events=events)


STRANGE = "is not part of an archive, or not of this stage"
NO_FOLDER = "is a folder that an archive does not have"
MISSING = "is missing; this stage leaves it"


@pytest.mark.parametrize(
    ("add", "remove", "events", "said"),
    [
        (["stranger"], [], [], f"stranger: {STRANGE}"),
        (["log/0009.json"], [], [], f"log/0009.json: {STRANGE}"),
        (["bound/other.jsonl"], [], [], f"bound/other.jsonl: {STRANGE}"),
        (["other/a"], [], [], f"other: {NO_FOLDER}"),
        (["other/.writing-a"], [], [], f"other: {NO_FOLDER}"),
        (["approvals/0002-selection.json"], [], [], f"approvals: {NO_FOLDER}"),
        (["steps/design/preflight.json"], [], [], f"steps/design/preflight.json: {STRANGE}"),
        (["steps/design/rows.parquet"], [], [], f"steps/design/rows.parquet: {STRANGE}"),
        (["steps/design/absent_rows.json"], [], [], f"steps/design/absent_rows.json: {STRANGE}"),
        (["steps/selection/rows.json"], [], [], f"steps/selection: {NO_FOLDER}"),
        ([], ["steps/design/tasks.parquet"], [], f"steps/design/tasks.parquet: {MISSING}"),
        ([], ["steps/design/parents.parquet"], [], f"steps/design/parents.parquet: {MISSING}"),
        ([], ["steps/design/rows.json"], [], f"steps/design/rows.json: {MISSING}"),
        (["attempts/0001-design/tasks.parquet"], [], [], f"attempts/0001-design: {NO_FOLDER}"),  # it became a step
        ([f"{SECOND}/stream.jsonl"], [], [], f"{SECOND}: {NO_FOLDER}"),
        ([f"{SECOND}/text.parquet"], [], [event("started")], f"{SECOND}/text.parquet: {STRANGE}"),
        ([f"{SECOND}/choices.parquet"], [], [event("started")], f"{SECOND}/choices.parquet: {STRANGE}"),
        *(
            (
                [f"{SECOND}/{name}" for name in BEFORE if name != absent],
                [],
                [event("started"), event(end)],
                f"{SECOND}/{absent}: {MISSING}",
            )
            for absent in BEFORE
            for end in ("refused", "preflight")
        ),
        (
            [f"{SECOND}/{name}" for name in (*BEFORE, "stream.jsonl")],
            [],
            [event("started"), event("refused")],
            f"{SECOND}/stream.jsonl: {STRANGE}",
        ),
    ],
)
def test_what_it_has_not(
    archive: Archive, add: Sequence[str], remove: Sequence[str], events: Sequence[Event], said: str
) -> None:
    with pytest.raises(IntegrityError) as refused:
        laid_out(archive, add=add, remove=remove, events=events)
    assert str(refused.value) == f"{archive.root}/{said}"
