"""What the gates before generation say of an attempt, ``preflight.json``: judged live, and judged again in replay."""

from dataclasses import dataclass
from pathlib import Path

from gatepost import jsonfile, layout, schema
from gatepost.archive import Archive
from gatepost.differences import Difference, as_stored, differences_of
from gatepost.engine import EngineFacts
from gatepost.engines.plain import from_plain, to_plain
from gatepost.errors import GatepostError, IntegrityError
from gatepost.gatefiles import Gates
from gatepost.judge import judge
from gatepost.ladder import Judgement, Step
from gatepost.records import record_before_generation
from gatepost.verdict import Outcome


class PreflightRefusedError(GatepostError):
    """A gate before generation did not pass: nothing was sampled, and the step stays open."""

    def __init__(self, step: Step, judgement: Judgement) -> None:
        self.judgement = judgement
        lines = [f"{step}: refused before generation"]
        for verdict in judgement.verdicts:
            lines += [f"  {verdict.gate}: {check}" for check in verdict.checks if check.outcome is not Outcome.PASS]
            lines += [] if verdict.checks else [f"  {verdict.gate}: had nothing to check, which is inconclusive"]
        super().__init__("\n".join(lines))


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


def replay_preflight(archive: Archive, folder: Path, *, gates: Gates) -> AttemptReplay:
    """Judge again what the gates before generation judged in one attempt, or in the one that became a step."""
    path = folder / "preflight.json"
    document = jsonfile.read_canonical(path)
    schema.validate(document, kind="preflight", source=str(path))
    finished = folder.parent.name == "steps"
    step, name = Step(**document["step"]), folder.name if finished else folder.name.partition("-")[2]
    history = [event for event in archive.journal.read() if event.step == name]
    attempts = [event.attempt for event in history if event.event == "started"]
    if (document["protocol"], str(step)) != (archive.protocol.digest, name) or document["attempt"] not in attempts:
        raise IntegrityError(
            f"{path}: is of protocol {document['protocol']}, {step}, attempt {document['attempt']}; "
            f"expected {archive.protocol.digest}, {name}, one of {attempts}"
        )
    ends = {event.event for event in history if event.attempt_folder == f"attempts/{folder.name}"}
    passed, outcome = finished or "preflight" in ends, document["judgement"]["outcome"]
    if (passed and outcome != "pass") or ("refused" in ends and outcome == "pass"):
        raise IntegrityError(
            f"{path}: field judgement.outcome is {outcome}, but the attempt {'passed' if passed else 'was refused'}"
        )
    if not all((folder / name).exists() for name in layout.BEFORE_GENERATION):
        # Cut off while it took over what an earlier attempt had sampled; where it matters, layout says so.
        return AttemptReplay(folder.name, None, ())
    facts = from_plain(EngineFacts, document["engine"], where=f"{path}: engine", defaults=True)
    record = record_before_generation(archive, step, folder, gates, facts)
    judged = judge(record, lambda entry: gates.of(entry, where=str(step)), before_generation=True)
    (again,) = as_stored([judged])
    differences = tuple(differences_of([document["judgement"]], [again]))
    return AttemptReplay(folder.name, Judgement.from_json(again), differences)
