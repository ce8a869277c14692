"""The history of an archive as files: what an event stores, and what breaks the chain."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.errors import DataError, IntegrityError
from gatepost.journal import Event, Journal

PROTOCOL = "sha256:" + "0" * 64
NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    (tmp_path / "log").mkdir()
    journal = Journal(tmp_path / "log", PROTOCOL)
    journal.append("frozen", at=NOON, detail=PROTOCOL)
    journal.append("started", at=NOON.astimezone(timezone(timedelta(hours=5))), step="s@16", attempt=1)
    journal.append("finished", at=NOON, step="s@16", attempt=1, detail="pass")
    return journal


def stored(journal: Journal, number: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((journal.folder / f"{number:04}.json").read_bytes())
    return document


def test_what_is_appended_is_read_back(journal: Journal) -> None:
    events = journal.read()
    assert events == [
        Event(1, "2026-01-02T12:00:00Z", "frozen", None, None, PROTOCOL),
        Event(2, "2026-01-02T12:00:00Z", "started", "s@16", 1, ""),  # whatever the clock's zone
        Event(3, "2026-01-02T12:00:00Z", "finished", "s@16", 1, "pass"),
    ]
    appended = journal.append("selected", at=NOON, detail="32")
    assert appended == Event(4, "2026-01-02T12:00:00Z", "selected", None, None, "32")
    assert journal.read() == [*events, appended]


def test_each_event_names_the_bytes_of_the_one_before(journal: Journal) -> None:
    assert stored(journal, 1)["previous"] is None
    for number in (2, 3):
        before = (journal.folder / f"{number - 1:04}.json").read_bytes()
        assert stored(journal, number)["previous"] == jsonfile.digest(before)
    assert {stored(journal, number)["schema"] for number in (1, 2, 3)} == {"gatepost/event/1"}
    assert {stored(journal, number)["protocol"] for number in (1, 2, 3)} == {PROTOCOL}


@pytest.mark.parametrize(
    ("number", "field", "value", "said"),
    [
        (1, "sequence", 2, "0001.json: field sequence is 2, expected 1"),
        (2, "sequence", 3, "0002.json: field sequence is 3, expected 2"),
        (1, "previous", PROTOCOL, "0001.json: field previous is 'sha256:0"),
        (3, "previous", None, "0003.json: field previous is None, expected 'sha256:"),
        (2, "protocol", "sha256:" + "1" * 64, "0002.json: field protocol is 'sha256:1"),
        (2, "detail", "edited", "0003.json: field previous is 'sha256:"),  # the next one shows it
    ],
)
def test_an_edited_event_is_refused(journal: Journal, number: int, field: str, value: Any, said: str) -> None:
    path = journal.folder / f"{number:04}.json"
    path.write_bytes(jsonfile.canonical({**stored(journal, number), field: value}))
    with pytest.raises(IntegrityError) as refused:
        journal.read()
    assert str(refused.value).startswith(f"{journal.folder}/{said}")
    with pytest.raises(IntegrityError):
        journal.append("selected", at=NOON)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0002.json", None, "0003.json: expected 0002.json"),
        ("0001.json", None, "0002.json: expected 0001.json"),
        ("0003.json", "0004.json", "0004.json: expected 0003.json"),
        ("0003.json", "3.json", "3.json: expected 0003.json"),
        ("0003.json", "0003.txt", "0003.txt: expected 0003.json"),
    ],
)
def test_a_gap_or_a_stranger_is_refused(journal: Journal, old: str, new: str | None, said: str) -> None:
    path = journal.folder / old
    path.unlink() if new is None else path.rename(path.with_name(new))
    with pytest.raises(IntegrityError) as refused:
        journal.read()
    assert str(refused.value).startswith(f"{journal.folder}/{said}")


def test_what_a_write_left_is_no_event(journal: Journal) -> None:
    (journal.folder / ".writing-0004.json").write_bytes(b"{")
    assert len(journal.read()) == 3


def test_an_event_that_is_none_is_refused(journal: Journal) -> None:
    (journal.folder / "0003.json").write_bytes(jsonfile.canonical({**stored(journal, 3), "event": "invented"}))
    with pytest.raises(DataError, match=r"0003\.json"):
        journal.read()


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (Event(1, "T", "frozen", None, None, "d"), "T  frozen     d"),
        (Event(2, "T", "started", "s@16", 7, ""), "T  started   s@16 (attempt 7)"),
        (Event(3, "T", "finished", "s", 0, "pass"), "T  finished  s (attempt 0) pass"),
    ],
)
def test_how_an_event_is_shown(event: Event, shown: str) -> None:
    assert str(event) == shown


def test_where_things_of_an_event_are_stored() -> None:
    started, approved = Event(2, "T", "started", "s@16", 7, ""), Event(12345, "T", "approved", "s", None, "")
    assert (started.path, approved.path) == ("log/0002.json", "log/12345.json")
    assert (started.attempt_folder, approved.attempt_folder) == ("attempts/0007-s@16", None)
    assert (started.approval_path, approved.approval_path) == (None, "approvals/12345-s.json")
