"""Does the history fit itself, and what lies in the archive?

1. The first event says where the protocol came from, ``frozen`` or ``imported``, and names it by its digest.
2. Attempts are numbered 1, 2, 3…, each at a step of the protocol. One is open at a time, and is closed once.
3. A step finishes once, and nothing is attempted at it afterwards.
4. Every receipt is that of the attempt that finished its step, and the history says what it decided.
5. The receipts are imported if the protocol is, and an import says what its limits are.
6. An approval is of a step that needs one, and comes before the first attempt at it, which comes when there are enough.
7. An attempt is at the one step that the ladder had open, given the steps that had finished before it.
8. The selection comes right after the end of the step that decided it, once, and names what ``selection.json`` names.

Which attempts have a folder follows from it, see ``layout``. The clock may go backwards: events are in order by their
numbers.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from gatepost.archive import CLOSING_EVENTS, Archive, outcome_of, selection_detail
from gatepost.errors import IntegrityError
from gatepost.journal import TIME_FORMAT, Event
from gatepost.ladder import Judgement, Step, decide, steps_of
from gatepost.selection import selection_is_made

ORIGINS = ("frozen", "imported")


def verify_events(archive: Archive, events: Sequence[Event]) -> None:
    """Raise ``IntegrityError`` for the first event that breaks rule 1, 2, 3 or 6."""
    if not events:
        raise IntegrityError(f"{archive.root / 'log'}: holds no event, expected one that says frozen or imported")
    steps = {str(step) for step in steps_of(archive.protocol)}
    attempts, finished = 0, set[str]()
    running: Event | None = None
    for event in events:
        path = archive.root / event.path
        _require_time(path, event.at)
        if (event.sequence == 1) is not (event.event in ORIGINS):
            raise IntegrityError(f"{path}: field event is {event.event!r}; frozen or imported comes first, and once")
        if event.event in ORIGINS and event.detail != archive.protocol.digest:
            raise IntegrityError(f"{path}: field detail is {event.detail!r}, expected {archive.protocol.digest}")
        if event.event == "started":
            attempts += 1
            if running or event.attempt != attempts or event.step not in steps - finished:
                raise IntegrityError(
                    f"{path}: starts attempt {event.attempt} at {event.step}, expected attempt {attempts} at one of "
                    f"{', '.join(sorted(steps - finished))}, when no other is open"
                )
            if event.detail:
                raise IntegrityError(f"{path}: field detail is {event.detail!r:.80}, expected nothing at a start")
            running = event
        elif event.event in CLOSING_EVENTS:
            if running is None or (event.attempt, event.step) != (running.attempt, running.step):
                expected = f"of attempt {running.attempt} at {running.step}" if running else "of nothing: none is open"
                raise IntegrityError(
                    f"{path}: is the end of attempt {event.attempt} at {event.step}, expected that {expected}"
                )
            finished |= {str(event.step)} if event.event == "finished" else set()
            running = None
        elif event.event != "approved" and (event.step, event.attempt) != (None, None):
            raise IntegrityError(f"{path}: names {event.step} and attempt {event.attempt}, expected neither")
    _verify_approvals(archive, events)


def _verify_approvals(archive: Archive, events: Sequence[Event]) -> None:
    needed = {str(step): archive.protocol.approvals_needed(step.stage) for step in steps_of(archive.protocol)}
    given, attempted = Counter[str](), set[str]()
    for event in events:
        path, step = archive.root / event.path, str(event.step)
        if event.event == "started":
            if given[step] < needed[step]:
                raise IntegrityError(
                    f"{path}: starts attempt {event.attempt} at {step} with {given[step]} of {needed[step]} approvals"
                )
            attempted.add(step)
        elif event.event == "approved":
            if event.attempt is not None or step in attempted or not needed.get(step):
                raise IntegrityError(
                    f"{path}: approves {step}, attempt {event.attempt}; expected a step that needs it and was not "
                    "attempted before, and no attempt"
                )
            given[step] += 1


def verify_receipts(archive: Archive, events: Sequence[Event]) -> None:
    """Raise ``IntegrityError`` for the first receipt that the history does not tell of, or tells otherwise of."""
    told = {event.step: event for event in events if event.event == "finished"}
    committed = {event.step: event for event in archive.open_attempts(events)}  # a run may be cut off right after
    for step in archive.finished_steps():
        receipt, path = archive.receipt(step), archive.step_folder(step) / "receipt.json"
        event = told.pop(str(step), None) or committed.get(str(step))
        if event is None or event.attempt != receipt["attempt"]:
            raise IntegrityError(
                f"{path}: field attempt is {receipt['attempt']}, "
                f"but {'no attempt' if event is None else f'attempt {event.attempt}'} finished in the history"
            )
        outcome = outcome_of(receipt)
        if event.event == "finished" and event.detail != outcome:
            raise IntegrityError(
                f"{archive.root / event.path}: field detail is {event.detail!r}, the receipt says {outcome!r}"
            )
        origin = "imported" if events[0].event == "imported" else "live"
        if receipt["origin"] != origin:
            raise IntegrityError(f"{path}: field origin is {receipt['origin']}, the history says {origin}")
        if origin == "imported" and not receipt["limits"]:
            raise IntegrityError(f"{path}: field limits is empty, expected what an import cannot show")
    for event in told.values():
        raise IntegrityError(f"{archive.root / event.path}: {event.step} finished, but has no receipt")


def verify_order(archive: Archive, events: Sequence[Event], *, unfinished: bool) -> None:
    """Raise ``IntegrityError`` for the first attempt that the ladder had not opened, or a selection out of its place.

    Args:
        events: verified, and the receipts against them.
        unfinished: whether a run was cut off, perhaps between the end of a step and the selection that follows.
    """
    judgements, steps = archive.judgements(), {str(step): step for step in steps_of(archive.protocol)}
    selection = archive.expected_selection()
    granted: dict[Step, list[Judgement]] = {}
    decision, due = decide(archive.protocol, granted), False
    for event in events:
        path = archive.root / event.path
        if (event.event == "selected") is not due:
            problem = "is due here, right after the step that decided it" if due else "was decided before, or not yet"
            raise IntegrityError(f"{path}: field event is {event.event!r}, but a selection {problem}")
        if due and (selection is None or event.detail != selection_detail(selection)):
            raise IntegrityError(f"{path}: field detail is {event.detail!r}, the receipts say {selection}")
        if due and not (archive.root / "selection.json").exists():
            raise IntegrityError(f"{archive.root / 'selection.json'}: is missing, but {path.name} says it was written")
        due = False
        if event.event == "started" and (decision.terminal or str(decision.step) != event.step):
            raise IntegrityError(
                f"{path}: starts attempt {event.attempt} at {event.step}, but the ladder was {decision}"
            )
        if event.event == "finished":
            before, step = selection_is_made(decision), steps[str(event.step)]
            granted[step] = judgements[step]
            decision = decide(archive.protocol, granted)
            due = selection_is_made(decision) and not before
    if due and not unfinished:
        raise IntegrityError(f"{archive.root / 'log'}: the history has no selection, but its last step decided one")


def _require_time(path: Path, at: str) -> None:
    try:
        datetime.strptime(at, TIME_FORMAT)
    except ValueError:
        raise IntegrityError(f"{path}: field at is {at!r}, expected a time in UTC") from None
