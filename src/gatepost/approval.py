"""The approvals in an archive: reviewers' signed GOs, each for one step of this protocol.

    approvals/0002-selection.json     a DSSE envelope, numbered as the event that tells of it

1. Its payload is the RFC 8785 bytes of protocol digest, step and statement, of a type that nothing else has.
2. It is signed by a registered reviewer, told by key material and never by name; not by the author, nor twice by one.
3. It is on record before the first attempt at its step, see ``history``: a GO for one step opens one step.

All but the signature itself is verified without a crypto library. Where there is none, nothing that rests on a
signature is taken for good: no engine starts, and a replay is inconclusive by name.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from gatepost import dsse, jsonfile, schema
from gatepost.archive import Archive
from gatepost.ed25519 import key_text
from gatepost.errors import ApprovalError, IntegrityError, MissingExtraError
from gatepost.evidence import Approval
from gatepost.journal import Event
from gatepost.ladder import Step

PAYLOAD_TYPE = "application/vnd.gatepost.approval+json"
UNCHECKED = "inconclusive: their signatures cannot be checked here: pip install 'gatepost[approval]'"


class Recorded(NamedTuple):
    """An approval on record, and who gave it with which words."""

    event: Event
    approval: Approval
    reviewer: str
    statement: str


def recorded(archive: Archive, events: Sequence[Event]) -> list[Recorded]:
    """The approvals that the history tells of, in its order.

    Raises ``IntegrityError`` or ``DataError`` for the first that is none.
    """
    given: list[Recorded] = []
    for event in events:
        if event.event == "approved":
            one = _read(archive, event)
            path = archive.root / str(event.approval_path)
            for other in given:
                if (other.event.step, other.approval.key) == (event.step, one.approval.key):
                    raise IntegrityError(f"{path}: is signed by {one.reviewer}, who approved {event.step} before")
            given.append(one)
    return given


def _read(archive: Archive, event: Event) -> Recorded:
    path = archive.root / str(event.approval_path)
    document, digest = jsonfile.read_frozen(path)
    envelope = dsse.read_envelope(document, payload_type=PAYLOAD_TYPE, source=str(path))
    payload = jsonfile.loads_canonical(envelope.payload, source=f"{path}: payload")
    schema.validate(payload, kind="approval", source=f"{path}: payload")
    for field, expected in (("protocol", archive.protocol.digest), ("step", event.step)):
        if payload[field] != expected:
            raise IntegrityError(f"{path}: payload: field {field} is {payload[field]!r}, expected {expected!r}")
    reviewer = reviewer_of(archive, envelope.key, source=str(path))
    if event.detail != f"{reviewer} {digest}":
        expected = f"{reviewer} {digest}"
        raise IntegrityError(f"{archive.root / event.path}: field detail is {event.detail!r}, expected {expected!r}")
    try:
        holds = dsse.signature_holds(envelope)
    except MissingExtraError:
        holds = None
    if holds is False:
        raise IntegrityError(
            f"{path}: the signature does not hold under the key of {reviewer}: edited, or never signed"
        )
    approval = Approval(payload["protocol"], payload["step"], envelope.key, holds)
    return Recorded(event, approval, reviewer, payload["statement"])


def reviewer_of(archive: Archive, key: bytes, *, source: str) -> str:
    """The registered name of a key. Raises ``ApprovalError`` for the author's, and for one of nobody."""
    approvals = archive.protocol.approvals
    if approvals is None:
        raise ApprovalError(
            f"{source}: protocol {archive.protocol.id} registers no reviewers, so it asks for no approval"
        )
    if key == approvals.author:
        raise ApprovalError(f"{source}: is the key of the author, who cannot approve; reviewers are {_names(archive)}")
    for name, other in approvals.reviewers.items():
        if key == other:
            return name
    raise ApprovalError(f"{source}: {key_text(key)} is the key of no reviewer; reviewers are {_names(archive)}")


def _names(archive: Archive) -> str:
    return ", ".join(sorted(archive.protocol.approvals.reviewers)) if archive.protocol.approvals else "nobody"


def verify(archive: Archive, events: Sequence[Event], catalogued: Collection[str]) -> None:
    """Raise ``GatepostError`` for the first approval that is none, and for a file that no event tells of."""
    told = {event.approval_path for event in events}
    for name in sorted(catalogued):
        if name.startswith("approvals/") and name not in told:
            raise IntegrityError(f"{archive.root / name}: no event of the history tells of this approval")
    recorded(archive, events)


def of_step(archive: Archive, step: Step) -> tuple[Approval, ...] | None:
    """The approvals of a step, as gates get them; ``None`` under a protocol that registers no reviewers."""
    if archive.protocol.approvals is None:
        return None
    given = recorded(archive, archive.journal.read())
    return tuple(one.approval for one in given if one.event.step == str(step))


def waiting(archive: Archive, step: Step) -> str | None:
    """For how many approvals a step waits, and how one is given; ``None`` if it has all that the protocol asks for."""
    needed = archive.protocol.approvals_needed(step.stage)
    missing = needed - len(of_step(archive, step) or ())
    if missing <= 0:
        return None
    command = f"gatepost approve {archive.root} --step {step} --key FILE"
    return f"waits for {missing} of {needed} approvals of step {step}; a reviewer gives one: {command}"


def require_approved(archive: Archive, step: Step) -> None:
    """Raise ``ApprovalError`` or ``MissingExtraError`` unless as many reviewers said GO as the protocol asks for."""
    if archive.protocol.approvals_needed(step.stage):
        dsse.require_library(f"checking the approvals of {step}")
        if problem := waiting(archive, step):
            raise ApprovalError(f"protocol {archive.protocol.id}: nothing starts: {problem}")


def require_checked(archive: Archive) -> None:
    """Raise ``ApprovalError`` where there are approvals and no crypto library: what rests on them is not judged."""
    given = recorded(archive, archive.journal.read())
    if any(one.approval.holds is None for one in given):
        raise ApprovalError(f"{archive.root}: approvals: {UNCHECKED}")
