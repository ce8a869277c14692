"""What the gates before generation say of an attempt, ``preflight.json``: judged live, and judged again in replay."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gatepost import jsonfile, layout, schema
from gatepost.agreement import require_agreement, require_same_engine
from gatepost.archive import CLOSING_EVENTS, Archive
from gatepost.differences import Difference, as_stored, differences_of
from gatepost.engine import EngineFacts
from gatepost.engines.plain import from_plain, to_plain
from gatepost.errors import GatepostError, IntegrityError
from gatepost.gatefiles import Gates
from gatepost.journal import Event
from gatepost.judge import judge
from gatepost.ladder import Judgement, Step
from gatepost.records import record_before_generation, require_same_derivation
from gatepost.refusal import refusal_detail, refusal_text
from gatepost.stepfiles import TAKEN_OVER, facts_of
from gatepost.studyfiles import load_domain
from gatepost.verdict import JSON, Outcome

ENDS_BEFORE_GENERATION = ("preflight", "refused")
"""Ends of an attempt whose record nobody adds to. That of one that failed may be the mistake that it failed of."""


class PreflightRefusedError(GatepostError):
    """A gate before generation did not pass: nothing was sampled, and the step stays open."""

    def __init__(self, step: Step, judgement: Judgement) -> None:
        self.judgement = judgement
        super().__init__(refusal_text(step, judgement))


@dataclass(frozen=True)
class AttemptReplay:
    """What the gates before generation say of an attempt that did not finish.

    Attributes:
        name: of its folder.
        judgement: ``None`` where the attempt was cut off before there was anything to judge.
    """

    name: str
    judgement: Judgement | None
    differences: tuple[Difference, ...]


def judge_before_generation(
    archive: Archive, step: Step, number: int, folder: Path, gates: Gates, facts: EngineFacts
) -> None:
    """Judge an attempt whose prompts are rendered, and write down what was said, if any gate of its stage judges now.

    Raises ``PreflightRefusedError`` unless all of them pass.
    """
    record = record_before_generation(archive, step, folder, gates, facts)
    judgement = judge(record, lambda entry: gates.of(entry, where=str(step)), before_generation=True)
    if not judgement.verdicts:
        return
    document = {
        "schema": "gatepost/preflight/1",
        "protocol": archive.protocol.digest,
        "step": step.to_json(),
        "attempt": number,
        "engine": to_plain(facts),
        "judgement": judgement.to_json(),
    }
    data = jsonfile.canonical(document)
    schema.validate(jsonfile.loads(data, source="preflight"), kind="preflight", source="preflight.json")
    jsonfile.write_new(folder / "preflight.json", data)
    if judgement.outcome is not Outcome.PASS:
        raise PreflightRefusedError(step, judgement)


def preflights(archive: Archive) -> list[Path]:
    """Folders of the attempts that did not finish and have a preflight."""
    return [folder for folder in archive.attempt_folders() if (folder / "preflight.json").is_file()]


def replay_preflight(archive: Archive, folder: Path, *, gates: Gates, studies: Iterable[Path]) -> AttemptReplay:
    """Judge again what the gates before generation judged in one attempt, or in the one that became a step.

    Raises ``IntegrityError`` where the attempt's record contradicts itself or the history; differences are returned.
    """
    path, protocol = folder / "preflight.json", archive.protocol
    document = jsonfile.read_canonical(path)
    schema.validate(document, kind="preflight", source=str(path))
    step = Step(**document["step"])
    end = _require_own(archive, folder, step, document)
    if not all((folder / name).exists() for name in layout.BEFORE_GENERATION):
        # Cut off while it took over what an earlier attempt had sampled; where it matters, layout says so.
        return AttemptReplay(folder.name, None, ())
    facts = from_plain(EngineFacts, document["engine"], where=f"{path}: engine", defaults=True)
    after = facts_of(folder)
    if after is not None:
        require_same_engine(folder / "session.json", facts, after)
    record = record_before_generation(archive, step, folder, gates, facts)
    if end is not None and end.event in ENDS_BEFORE_GENERATION:
        require_agreement(folder, record)
        domain = load_domain(protocol.study, protocol.domain_version, studies, where=f"protocol {protocol.id}")
        require_same_derivation(archive, step, folder, record, domain)
    judged = judge(record, lambda entry: gates.of(entry, where=str(step)), before_generation=True)
    (again,) = as_stored([judged])
    judgement, differences = Judgement.from_json(again), list(differences_of([document["judgement"]], [again]))
    detail = refusal_detail(step, judgement)
    if end is not None and end.event == "refused" and end.detail != detail:
        differences.append(Difference(None, None, f"recorded in {end.path} as {end.detail!r}, recomputed {detail!r}"))
    return AttemptReplay(folder.name, judgement, tuple(differences))


def _require_own(archive: Archive, folder: Path, step: Step, document: JSON) -> Event | None:
    """Raise ``IntegrityError`` unless a preflight is that of its attempt, and what the history says of that.

    Returns the event that closed the attempt, ``None`` if it is open.
    """
    path, finished = folder / "preflight.json", folder.parent.name == "steps"
    name, protocol = folder.name if finished else folder.name.partition("-")[2], archive.protocol.digest
    if (document["protocol"], str(step)) != (protocol, name):
        raise IntegrityError(f"{path}: is of protocol {document['protocol']}, {step}; expected {protocol}, {name}")
    number = archive.receipt(step)["attempt"] if finished else int(folder.name.partition("-")[0])
    closed = [event for event in archive.journal.read() if event.attempt == number and event.event in CLOSING_EVENTS]
    end = "finished" if finished else closed[0].event if closed else None
    may_take_over = document["attempt"] < number and end not in ENDS_BEFORE_GENERATION
    if document["attempt"] != number and not (may_take_over and _takes_over(folder, document)):
        raise IntegrityError(
            f"{path}: field attempt is {document['attempt']}, expected {number}, or an earlier one at {step} whose "
            "samples it took over"
        )
    outcome = document["judgement"]["outcome"]
    if end is not None and (outcome == "pass") is (end == "refused"):
        said = {"refused": "was refused", "failed": "failed"}.get(end, "passed")
        raise IntegrityError(f"{path}: field judgement.outcome is {outcome}, but the attempt {said}")
    return closed[0] if closed else None


def _takes_over(folder: Path, document: JSON) -> bool:
    """Whether what an engine gave, as far as it lies in a folder, is that of the attempt that a preflight names."""
    earlier = folder.parent.parent / "attempts" / f"{document['attempt']:04}-{Step(**document['step'])}"
    return (earlier / "session.json").exists() and all(
        (earlier / name).exists() and jsonfile.read_bytes(folder / name) == jsonfile.read_bytes(earlier / name)
        for name in TAKEN_OVER
        if (folder / name).exists()
    )
