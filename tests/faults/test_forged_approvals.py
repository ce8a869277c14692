"""Approvals that were forged: every digest, number and link was made anew, as somebody would who knows how."""

import base64
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gatepost import dsse, jsonfile
from gatepost.approval import PAYLOAD_TYPE
from gatepost.archive import Archive
from gatepost.status import status_text
from tests.faults.conftest import Approved, Event, problem, rewrite_history


class Entry(NamedTuple):
    """An event, and the envelope that belongs to it where it is an approval."""

    event: Event
    envelope: Any


def reviewer_in(event: Event) -> str:
    return str(event["detail"]).partition(" ")[0]


def forge(archive: Archive, change: Callable[[list[Entry]], list[Entry]]) -> None:
    """Tell another history, its envelopes stored and named as it says."""
    paths = sorted((archive.root / "log").iterdir())
    events = [jsonfile.read(path) for path in paths]
    stored = [archive.root / "approvals" / f"{event['sequence']:04}-{event['step']}.json" for event in events]
    entries = change(
        [
            Entry(event, jsonfile.read(path) if path.exists() else None)
            for event, path in zip(events, stored, strict=True)
        ]
    )
    shutil.rmtree(archive.root / "approvals")
    (archive.root / "approvals").mkdir()
    for number, (event, envelope) in enumerate(entries, start=1):
        if envelope is not None:
            data = jsonfile.canonical(envelope)
            (archive.root / "approvals" / f"{number:04}-{event['step']}.json").write_bytes(data)
            event["detail"] = f"{reviewer_in(event)} {jsonfile.digest(data)}"
    rewrite_history(archive, lambda _: [entry.event for entry in entries])


def signed(key: Path, **fields: str) -> Any:
    """An envelope as ``gatepost approve`` makes one, with these fields."""
    kind, raw = fields.pop("payload_type", PAYLOAD_TYPE), fields.pop("raw", None)
    payload = jsonfile.canonical({"schema": "gatepost/approval/1", **fields})
    return jsonfile.loads(dsse.sign(raw.encode() if raw else payload, kind, dsse.load_key(key)), source="envelope")


def payload_of(envelope: Any) -> dict[str, str]:
    return dict(jsonfile.loads(base64.b64decode(envelope["payload"]), source="payload"))


def with_payload(envelope: Any, **fields: str) -> Any:
    """The same signature over another payload."""
    payload = jsonfile.canonical({**payload_of(envelope), **fields})
    return {**envelope, "payload": base64.b64encode(payload).decode()}


Change = Callable[[list[Entry], Approved], list[Entry]]


def replaced(envelope: Callable[[Any, Approved], Any], *, step: str = "selection", reviewer: str = "bob") -> Change:
    """Put another envelope in the place of one."""

    def change(entries: list[Entry], made: Approved) -> list[Entry]:
        return [
            Entry(event, envelope(old, made))
            if (event["event"], event["step"], reviewer_in(event)) == ("approved", step, reviewer)
            else Entry(event, old)
            for event, old in entries
        ]

    return change


def added(name: str, *, step: str, envelope: bool = True, late: bool = False, attempt: int | None = None) -> Change:
    """Put one more approval, truly signed, behind the first event or at the end."""

    def change(entries: list[Entry], made: Approved) -> list[Entry]:
        at = len(entries) if late else 1
        event = {**entries[0].event, "event": "approved", "step": step, "attempt": attempt, "detail": name}
        given = signed(made.keys[name], **fields_of(made, step=step)) if envelope else None
        return [*entries[:at], Entry(event, given), *entries[at:]]

    return change


def without(step: str, reviewer: str) -> Change:
    return lambda entries, made: [
        entry
        for entry in entries
        if (entry.event["step"], reviewer_in(entry.event)) != (step, reviewer) or entry.envelope is None
    ]


def moved_to_the_end(entries: list[Entry], made: Approved) -> list[Entry]:
    return [*(one for one in entries if one.envelope is None), *(one for one in entries if one.envelope is not None)]


def swapped(entries: list[Entry], made: Approved) -> list[Entry]:
    """Alice's approvals of two steps, each in the place of the other."""
    mine = {entry.event["step"]: entry.envelope for entry in entries if entry.event["detail"].startswith("alice ")}
    other = {"selection": mine["confirmation@32"], "confirmation@32": mine["selection"]}
    return [
        Entry(event, other[event["step"]] if event["detail"].startswith("alice ") else envelope)
        for event, envelope in entries
    ]


def fields_of(made: Approved, **fields: str) -> dict[str, str]:
    return {"protocol": made.archive.protocol.digest, "step": "selection", "statement": "GO", **fields}


def of_the_other(made: Approved) -> Any:
    return jsonfile.read(sorted((made.other.root / "approvals").glob("*-selection.json"))[-1])


def signature(envelope: Any, **fields: Any) -> Any:
    return {**envelope, "signatures": [{**envelope["signatures"][0], **fields}]}


def by_name(name: str, **fields: str) -> Callable[[Any, Approved], Any]:
    return lambda old, made: signed(made.keys[name], **fields_of(made, **fields))


def posing(name: str, as_name: str) -> Callable[[Any, Approved], Any]:
    """Signed by one with the key id of another."""
    return lambda old, made: signature(
        signed(made.keys[name], **fields_of(made)),
        keyid=signed(made.keys[as_name], **fields_of(made))["signatures"][0]["keyid"],
    )


FORGED: dict[str, tuple[Change, str]] = {
    "removed": (without("selection", "alice"), "starts attempt 2 at selection with 1 of 2 approvals"),
    "removed, the only one": (without("confirmation@32", "alice"), "attempt 3 at confirmation@32 with 0 of 1 approval"),
    "given after the fact": (moved_to_the_end, "starts attempt 2 at selection with 0 of 2 approvals"),
    "swapped between steps": (swapped, "payload: field step is 'confirmation@32', expected 'selection'"),
    "from another archive": (replaced(lambda old, made: of_the_other(made)), "payload: field protocol is 'sha256:"),
    "by the author": (replaced(by_name("author")), "is the key of the author, who cannot approve"),
    "by somebody unknown": (replaced(by_name("eve")), "is the key of no reviewer"),
    "twice by the same": (
        replaced(by_name("alice", statement="again")),
        "field detail is 'bob sha256:",
    ),
    "twice by the same, told so": (
        lambda entries, made: [
            Entry({**event, "detail": "alice"}, signed(made.keys["alice"], **fields_of(made, statement="again")))
            if event["detail"].startswith("bob ")
            else Entry(event, envelope)
            for event, envelope in entries
        ],
        "is signed by alice, who approved selection before",
    ),
    "told of another": (replaced(by_name("bob"), reviewer="alice"), "field detail is 'alice sha256:"),
    "of another type": (
        replaced(by_name("bob", payload_type="application/vnd.in-toto+json")),
        "field payloadType is 'application/vnd.in-toto+json', expected application/vnd.gatepost.approval+json",
    ),
    "of an unknown version": (
        replaced(lambda old, made: signed(made.keys["bob"], **{**fields_of(made), "schema": "gatepost/approval/2"})),
        "is not known to this version",
    ),
    "of a record that is no approval": (
        replaced(lambda old, made: signed(made.keys["bob"], **{**fields_of(made), "schema": "gatepost/receipt/1"})),
        "expected 'gatepost/approval/1'",
    ),
    "with a field more": (replaced(by_name("bob", valid_for="every step")), "'valid_for' was unexpected"),
    "of loose bytes": (
        replaced(lambda old, made: signed(made.keys["bob"], raw=base64.b64decode(old["payload"]).decode() + " ")),
        "payload: bytes are not the RFC 8785 form",
    ),
    "of no JSON": (replaced(lambda old, made: signed(made.keys["bob"], raw="GO")), "payload: not JSON"),
    "with two signatures": (
        replaced(lambda old, made: {**old, "signatures": old["signatures"] * 2}),
        "field signatures holds 2 of them, expected exactly one",
    ),
    "with no signature": (replaced(lambda old, made: {**old, "signatures": []}), "holds 0 of them"),
    "with a key of no kind": (replaced(lambda old, made: signature(old, keyid="bob")), "keyid is 'bob', expected ed25"),
    "with a key in upper case": (
        replaced(lambda old, made: signature(old, keyid="ed25519:" + old["signatures"][0]["keyid"][8:].upper())),
        "64 hex digits in lower case",
    ),
    "with something beside the signature": (replaced(lambda old, made: signature(old, cert="x")), "expected keyid and"),
    "with something beside the envelope": (replaced(lambda old, made: {**old, "x": 1}), "holds payload, payloadType,"),
    "that is a list": (replaced(lambda old, made: [old]), "holds list, expected an envelope"),
    "with spare bits": (
        replaced(lambda old, made: signature(old, sig=old["signatures"][0]["sig"][:-3] + "B==")),
        "expected base64 in its one form",
    ),
    "with a line end": (replaced(lambda old, made: {**old, "payload": old["payload"] + "\n"}), "base64 in its one"),
    "for a step that needs none": (
        added("alice", step="design"),
        "approves design, attempt None; expected a step that needs it",
    ),
    "for a step that is none": (
        added("alice", step="bogus"),
        "approves bogus, attempt None; expected a step that needs it",
    ),
    "at a path": (
        added("alice", step="../../x", envelope=False),
        "approves ../../x, attempt None; expected a step that needs it",
    ),
    "for an attempt": (
        added("alice", step="confirmation@8", attempt=9),
        "approves confirmation@8, attempt 9; expected",
    ),
    "added when it had run": (
        added("bob", step="confirmation@32", late=True),
        "approves confirmation@32, attempt None; expected a step that needs it and was not attempted",
    ),
    "added without an envelope": (
        added("alice", step="confirmation@8", envelope=False),
        "0002-confirmation@8.json: does not exist",
    ),
}  # fmt: skip

FORGED_SIGNATURES: dict[str, Change] = {
    "under the name of a reviewer": replaced(posing("eve", "bob")),
    "by the author under the name of a reviewer": replaced(posing("author", "bob")),
    "by another reviewer under that name": replaced(posing("alice", "bob")),
    "edited in its words": replaced(lambda old, made: with_payload(old, statement="so did I, gladly")),
    "made out to another step": replaced(
        lambda old, made: with_payload(
            signed(made.keys["bob"], **fields_of(made, step="confirmation@8")), step="selection"
        )
    ),
    "made out to another protocol": replaced(
        lambda old, made: with_payload(of_the_other(made), protocol=made.archive.protocol.digest)
    ),
    "of another type under the right name": replaced(
        lambda old, made: {
            **signed(made.keys["bob"], **fields_of(made), payload_type="text/plain"), "payloadType": PAYLOAD_TYPE
        }
    ),
    "without bytes in its signature": replaced(lambda old, made: signature(old, sig="")),
    "with too short a signature": replaced(lambda old, made: signature(old, sig="AAAA")),
    "with a signature of zeros": replaced(lambda old, made: signature(old, sig="A" * 86 + "==")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("library", ["with", "without"])
def test_an_approval_that_is_none_is_caught(
    approved: Approved, name: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a forger makes anew, and whether or not there is a crypto library."""
    change, said = FORGED[name]
    forge(approved.archive, lambda entries: change(entries, approved))
    if library == "without":
        monkeypatch.setitem(sys.modules, "securesystemslib", None)
    assert said in problem(approved.project, approved.archive.root)
    status_text(approved.archive, log=True)


@pytest.mark.parametrize("name", FORGED_SIGNATURES)
def test_a_signature_that_does_not_hold_is_caught(
    approved: Approved, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a crypto library nobody can say so; then nothing that rests on it is green."""
    change = FORGED_SIGNATURES[name]
    forge(approved.archive, lambda entries: change(entries, approved))
    said = problem(approved.project, approved.archive.root)
    assert "-selection.json: the signature does not hold under the key of bob: edited, or never signed" in said
    monkeypatch.setitem(sys.modules, "securesystemslib", None)
    unchecked = "approvals: inconclusive: their signatures cannot be checked here: pip install"
    assert unchecked in problem(approved.project, approved.archive.root)


def test_the_forger_of_these_tests_leaves_a_sound_archive_sound(approved: Approved) -> None:
    forge(approved.archive, lambda entries: entries)
    assert problem(approved.project, approved.archive.root) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("0002-confirmation@8.json", "is not part of an archive"),
        ("0999-selection.json", "is not part of an archive"),
        ("note.txt", "is not part of an archive"),
        ("{next:04}-confirmation@8.json", "no event of the history tells of this approval"),
    ],
)
def test_an_envelope_that_no_event_tells_of_is_caught(approved: Approved, name: str, said: str) -> None:
    """One that was cut off before its event is a leftover, which no catalog lists."""
    folder, following = approved.archive.root / "approvals", len(approved.archive.journal.read()) + 1
    path = folder / name.format(next=following)
    shutil.copy(folder / "0002-selection.json", path)
    unlisted = problem(approved.project, approved.archive.root)
    assert (unlisted == "") is name.startswith("{next")
    approved.archive.write_catalog()
    assert f"{path}: {said}" in problem(approved.project, approved.archive.root)
