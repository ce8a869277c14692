"""The rules of a history, each broken by itself: events in any order that a journal could hold."""

from collections.abc import Sequence

import pytest

from gatepost.archive import Archive
from gatepost.errors import IntegrityError
from gatepost.history import verify_events, verify_receipts
from gatepost.journal import Event
from tests.approvals import freeze, make_keys
from tests.archives import create_project

AT = "2026-01-02T12:00:00Z"
Told = tuple[str, str | None, int | None, str]
"""What an event says: kind, step, attempt, detail."""

BEGIN: Told = ("frozen", None, None, "")


def started(attempt: int, step: str = "design") -> Told:
    return ("started", step, attempt, "")


def ended(attempt: int, step: str = "design", how: str = "finished") -> Told:
    return (how, step, attempt, "pass")


SELECTED: Told = ("selected", None, None, "32")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return create_project(tmp_path_factory.mktemp("history")).freeze()


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Two reviewers have to approve the selection, one the confirmation."""
    folder = tmp_path_factory.mktemp("approved")
    return freeze(create_project(folder / "project"), make_keys(folder / "keys"))


def events_of(archive: Archive, told: Sequence[Told]) -> list[Event]:
    """Numbered events; one that begins a history and says nothing else names the protocol."""
    return [
        Event(number, AT, kind, step, attempt, detail or (archive.protocol.digest if attempt is None else ""))
        for number, (kind, step, attempt, detail) in enumerate(told, start=1)
    ]


@pytest.mark.parametrize(
    "told",
    [
        [BEGIN],
        [("imported", None, None, "")],
        [BEGIN, started(1)],
        [BEGIN, started(1), ended(1)],
        [BEGIN, started(1), ended(1, how="failed"), started(2), ended(2)],
        [BEGIN, started(1), ended(1), started(2, "selection"), ended(2, "selection", "refused")],
        [BEGIN, started(1), ended(1), started(2, "selection"), ended(2, "selection"), SELECTED],
        [BEGIN, started(1, "confirmation@32"), ended(1, "confirmation@32", "preflight"), started(2, "confirmation@64")],
    ],
)
def test_a_history_that_fits_itself(archive: Archive, told: list[Told]) -> None:
    verify_events(archive, events_of(archive, told))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([started(1)], "0001.json: field event is 'started'; frozen or imported comes first"),
        ([SELECTED], "0001.json: field event is 'selected'; frozen or imported comes first"),
        ([BEGIN, BEGIN], "0002.json: field event is 'frozen'; frozen or imported comes first, and once"),
        ([BEGIN, ("imported", None, None, "")], "0002.json: field event is 'imported'"),
        ([("frozen", None, None, "sha256:other")], "0001.json: field detail is 'sha256:other', expected sha256:"),
        ([("imported", None, None, "x")], "0001.json: field detail is 'x', expected sha256:"),
        ([("frozen", "design", None, "")], "0001.json: names design and attempt None, expected neither"),
        ([BEGIN, started(2)], "0002.json: starts attempt 2 at design, expected attempt 1 at one of "),
        ([BEGIN, started(0)], "0002.json: starts attempt 0 at design, expected attempt 1"),
        ([BEGIN, started(1), started(2)], "0003.json: starts attempt 2 at design, expected attempt 2 at one of "),
        ([BEGIN, started(1, "other")], "0002.json: starts attempt 1 at other, expected attempt 1"),
        ([BEGIN, started(1, "selection@8")], "0002.json: starts attempt 1 at selection@8"),
        ([BEGIN, started(1, "confirmation@16")], "0002.json: starts attempt 1 at confirmation@16"),
        (
            [BEGIN, started(1), ended(1), started(2)],
            "0004.json: starts attempt 2 at design, expected attempt 2 at one of "
            "confirmation@32, confirmation@64, confirmation@8, selection, when no other is open",
        ),
        ([BEGIN, started(1), ended(1, how="failed"), started(1)], "0004.json: starts attempt 1 at design"),
        ([BEGIN, ended(1)], "0002.json: is the end of attempt 1 at design, expected that of nothing: none is open"),
        ([BEGIN, started(1), ended(2)], "0003.json: is the end of attempt 2 at design, expected that of attempt 1"),
        ([BEGIN, started(1), ended(1, "selection")], "0003.json: is the end of attempt 1 at selection, expected that"),
        ([BEGIN, started(1), ended(1), ended(1)], "0004.json: is the end of attempt 1 at design, expected that of no"),
        ([BEGIN, started(1), ended(1, how="refused"), ended(1)], "0004.json: is the end of attempt 1 at design"),
        ([BEGIN, ("selected", "selection", None, "32")], "0002.json: names selection and attempt None, expected"),
        ([BEGIN, ("selected", None, 1, "32")], "0002.json: names None and attempt 1, expected neither"),
        ([BEGIN, ("approved", "selection", None, "a b")], "0002.json: approves selection, attempt None; expected a"),
    ],
)  # fmt: skip
def test_a_history_that_does_not(archive: Archive, told: list[Told], said: str) -> None:
    with pytest.raises(IntegrityError) as refused:
        verify_events(archive, events_of(archive, told))
    assert str(refused.value).startswith(f"{archive.root}/log/{said}")


def test_a_step_that_finished_has_a_receipt(archive: Archive) -> None:
    verify_receipts(archive, events_of(archive, [BEGIN, started(1), ended(1, how="failed")]))
    with pytest.raises(IntegrityError) as refused:
        verify_receipts(archive, events_of(archive, [BEGIN, started(1), ended(1)]))
    assert str(refused.value) == f"{archive.root}/log/0003.json: design finished, but has no receipt"


def test_an_empty_history_is_none(archive: Archive) -> None:
    with pytest.raises(IntegrityError) as refused:
        verify_events(archive, [])
    assert str(refused.value) == f"{archive.root}/log: holds no event, expected one that says frozen or imported"


@pytest.mark.parametrize("at", ["2026-01-02T12:00:00", "2026-02-30T12:00:00Z", "2026-01-02 12:00:00Z", "", "now"])
def test_a_time_is_one_in_utc(archive: Archive, at: str) -> None:
    event = Event(1, at, "frozen", None, None, archive.protocol.digest)
    with pytest.raises(IntegrityError) as refused:
        verify_events(archive, [event])
    assert str(refused.value) == f"{archive.root}/log/0001.json: field at is {at!r}, expected a time in UTC"


def approved(step: str, attempt: int | None = None) -> Told:
    return ("approved", step, attempt, "alice sha256:0")


DESIGNED = [BEGIN, started(1), ended(1)]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([*DESIGNED, approved("selection"), approved("selection"), started(2, "selection")], None),
        ([BEGIN, approved("selection"), approved("selection"), approved("selection"), started(1)], None),
        ([BEGIN, approved("confirmation@32"), started(1, "confirmation@32")], None),
        ([*DESIGNED, started(2, "selection")], "0004.json: starts attempt 2 at selection with 0 of 2 approvals"),
        (
            [*DESIGNED, approved("selection"), started(2, "selection")],
            "0005.json: starts attempt 2 at selection with 1 of 2 approvals",
        ),
        (
            [BEGIN, approved("confirmation@64"), started(1, "confirmation@32")],
            "0003.json: starts attempt 1 at confirmation@32 with 0 of 1 approvals",
        ),
        ([BEGIN, approved("design")], "0002.json: approves design, attempt None; expected a step that needs it"),
        ([BEGIN, approved("other")], "0002.json: approves other, attempt None; expected a step that needs it"),
        ([BEGIN, approved("confirmation")], "0002.json: approves confirmation, attempt None; expected a step"),
        ([BEGIN, approved("selection", 1)], "0002.json: approves selection, attempt 1; expected a step that needs it"),
        (
            [BEGIN, approved("confirmation@32"), started(1, "confirmation@32"), approved("confirmation@32")],
            "0004.json: approves confirmation@32, attempt None; expected a step that needs it and was not attempted",
        ),
    ],
)
def test_approvals_come_first_and_are_enough(asking: Archive, told: list[Told], said: str | None) -> None:
    if said is None:
        verify_events(asking, events_of(asking, told))
        return
    with pytest.raises(IntegrityError) as refused:
        verify_events(asking, events_of(asking, told))
    assert str(refused.value).startswith(f"{asking.root}/log/{said}")
