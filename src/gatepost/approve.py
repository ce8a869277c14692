"""Give an approval: sign a GO for one step, and put it on record before the step is attempted."""

from pathlib import Path

from gatepost import dsse, integrity, jsonfile, schema
from gatepost.approval import PAYLOAD_TYPE, of_step, reviewer_of
from gatepost.archive import Archive
from gatepost.errors import ApprovalError
from gatepost.ladder import Step, audit, steps_of
from gatepost.recovery import recover


def approve(archive: Archive, name: str, key_file: Path, *, statement: str) -> str:
    """Sign a GO for a step with a reviewer's private key; returns the reviewer's registered name.

    Args:
        name: of the step, such as ``selection`` or ``confirmation@32``.
        statement: one line in the reviewer's own words, signed with it.

    Raises:
        ApprovalError: a key of nobody who can approve, or who did already; a step that needs none, or was attempted.
        OrderError: a live run holds the archive.
        IntegrityError: the record is not whole.
        MissingExtraError: there is no crypto library.
    """
    key = dsse.load_key(key_file)
    with archive.lock():
        integrity.verify(archive)
        recover(archive)
        reviewer = reviewer_of(archive, key.public, source=str(key_file))
        step = _step(archive, name)
        if any(given.key == key.public for given in of_step(archive, step) or ()):
            raise ApprovalError(f"{key_file}: {reviewer} approved {step} before; each reviewer counts once")
        document = {
            "schema": "gatepost/approval/1",
            "protocol": archive.protocol.digest,
            "step": str(step),
            "statement": statement,
        }
        payload = jsonfile.canonical(document, source="--statement")
        schema.validate(document, kind="approval", source="approval")
        archive.approve(step, dsse.sign(payload, PAYLOAD_TYPE, key), reviewer)
    return reviewer


def _step(archive: Archive, name: str) -> Step:
    protocol = archive.protocol
    steps = {str(step): step for step in steps_of(protocol) if protocol.approvals_needed(step.stage)}
    if name not in steps:
        raise ApprovalError(f"--step {name}: needs no approval; steps of {protocol.id} that do: {', '.join(steps)}")
    events = archive.journal.read()
    if any(event.event == "started" and event.step == name for event in events):
        raise ApprovalError(f"--step {name}: was attempted already, and an approval comes before the first attempt")
    decision = audit(protocol, archive.judgements())
    if decision.terminal:
        raise ApprovalError(f"--step {name}: will never run; {decision}")
    return steps[name]
