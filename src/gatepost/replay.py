"""Replay: recompute every verdict and the decision of an archive, and compare every number with the receipts.

*Is the record faithful?* is what a replay passes or fails on. *Did the experiment pass?* is data in its report. A
faithful terminal negative replays clean.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepost import integrity, jsonfile, registration
from gatepost.agreement import require_agreement
from gatepost.approval import require_checked
from gatepost.archive import Archive
from gatepost.audit.counts import difference_of
from gatepost.differences import Difference, as_stored, differences_of
from gatepost.errors import ElsewhereError, IntegrityError, OrderError, RegistrationError
from gatepost.evidence import Record
from gatepost.gatefiles import Gates
from gatepost.judge import judge
from gatepost.ladder import Decision, Judgement, Step, audit
from gatepost.preflight import AttemptReplay, preflights, replay_preflight
from gatepost.promptfile import record_digests
from gatepost.prompts import check_manifest
from gatepost.records import manifest_of, records_of, require_same_derivation, require_same_scores
from gatepost.stepfiles import verify_manifest, verify_session
from gatepost.studyfiles import load_domain, scoring_domain
from gatepost.verdict import JSON, Verdict


@dataclass(frozen=True)
class StepReplay:
    """One step, judged again. ``differences`` is empty for a faithful receipt.

    Attributes:
        judgements: those made again. Where evidence is not at hand, a verdict has no checks and says which.
        standing: the same with the verdict on record in place of each of those, which is what the ladder goes on.
        unfit: why its protocol could not be frozen, ``None`` if it could.
        unread: what of its files was not compared with the receipt, since it is not at hand.
    """

    step: Step
    origin: str
    judgements: tuple[Judgement, ...]
    standing: tuple[Judgement, ...]
    differences: tuple[Difference, ...]
    unfit: str | None
    unread: tuple[str, ...]

    @property
    def unjudged(self) -> tuple[tuple[str | None, str, str], ...]:
        """Rung, gate and the evidence that is not at hand, of each verdict that could not be made again."""
        return tuple(
            (judgement.rung, verdict.gate, verdict.elsewhere)
            for judgement in self.judgements
            for verdict in judgement.verdicts
            if verdict.elsewhere is not None
        )


@dataclass(frozen=True)
class Replay:
    """A whole archive, replayed.

    Attributes:
        decision: what the recomputed judgements lead to.
        decision_differences: in which decisions and the selection on record are not what the judgements lead to,
            and why no ladder could be climbed under this protocol.
        notes: what is unfinished, and what the receipts say of their own limits.
        attempts: those with a preflight that did not finish.
    """

    archive: Archive
    steps: tuple[StepReplay, ...]
    decision: Decision
    decision_differences: tuple[str, ...]
    notes: tuple[str, ...]
    attempts: tuple[AttemptReplay, ...] = ()

    @property
    def differences(self) -> tuple[str, ...]:
        """Everything in which the record and the recomputation disagree."""
        of_steps = [f"{step.step}: {difference}" for step in self.steps for difference in step.differences]
        of_attempts = [f"{made.name}: preflight: {other}" for made in self.attempts for other in made.differences]
        return (*of_steps, *of_attempts, *self.decision_differences)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Everything on which the recomputation says nothing, since evidence lies elsewhere."""
        unread = [f"{step.step}: evidence: {said}" for step in self.steps for said in step.unread]
        return (*unread, *(f"{step.step}: {_named(*gate)}" for step in self.steps for gate in step.unjudged))

    @property
    def faithful(self) -> bool:
        """Whether nothing contradicts the record. Whether all of it was judged is another question: ``unjudged``."""
        return not self.differences

    def to_json(self) -> dict[str, JSON]:
        return {
            "protocol": self.archive.protocol.digest,
            "id": self.archive.protocol.id,
            "root": self.archive.catalog()["root"],
            "faithful": self.faithful,
            "differences": list(self.differences),
            "unjudged": list(self.unjudged),
            "notes": list(self.notes),
            "decision": self.decision.to_json(),
            "steps": [
                {
                    "step": str(step.step),
                    "origin": step.origin,
                    "judgements": [judgement.to_json() for judgement in step.judgements],
                }
                for step in self.steps
            ],
            "attempts": [
                {"attempt": made.name, "preflight": made.judgement.to_json() if made.judgement else None}
                for made in self.attempts
            ],
        }


def replay(
    root: Path,
    *,
    gates: Gates,
    studies: Iterable[Path],
    expected_root: str | None = None,
    evidence: Path | None = None,
) -> Replay:
    """Replay one archive. Raises ``GatepostError`` where it is not whole, or rests on signatures that nobody checked.

    Where it is, differences are reported, and what could not be judged since its evidence lies elsewhere.

    Args:
        evidence: folder in which evidence that lies elsewhere is looked for.
    """
    archive = Archive(root, evidence=evidence)
    notes = integrity.verify(archive, expected_root=expected_root)
    require_checked(archive)
    steps = [replay_step(archive, step, gates=gates, studies=studies) for step in archive.finished_steps()]
    attempts = [replay_preflight(archive, folder, gates=gates, studies=studies) for folder in preflights(archive)]
    return dataclasses.replace(replay_ladder(archive, steps, notes), attempts=tuple(attempts))


def require_faithful(root: Path, *, gates: Gates, studies: Iterable[Path]) -> None:
    """Raise ``IntegrityError`` unless an archive is whole and each receipt of its history replays as it stands."""
    replayed = replay(root, gates=gates, studies=studies)
    if problems := (*replayed.differences, *replayed.unjudged):
        raise IntegrityError("\n".join([f"{root}: the history is not faithful, so nothing opens:", *problems]))


def replay_step(archive: Archive, step: Step, *, gates: Gates, studies: Iterable[Path]) -> StepReplay:
    """Judge one finished step again from its evidence."""
    folder = archive.step_folder(step)
    receipt = archive.receipt(step)
    records = list(records_of(archive, step, folder, gates, recorded_digest=receipt["protocol"]))
    unread = list(verify_manifest(archive, folder, receipt, records[0]))
    verify_session(folder, receipt)
    if "completions" not in records[0].elsewhere:
        require_agreement(folder, records[0], live=receipt["origin"] == "live")
    try:
        _require_derived(archive, step, folder, records[0], studies)
    except ElsewhereError as absent:
        unread.append(f"what the task domain derives was not derived again: {absent}")
    judged = [judge(record, lambda entry: gates.of(entry, where=str(step))) for record in records]
    judgements = tuple(map(Judgement.from_json, as_stored(judged)))
    stored = as_stored(_with_recorded(judgement, receipt["judgements"]) for judgement in judgements)
    before = _step_preflight(archive, step, receipt, gates, studies)
    differences = (*before, *differences_of(receipt["judgements"], stored), *_of_counts(folder, records[0]))
    standing, unfit = tuple(map(Judgement.from_json, stored)), _unfit(archive, gates)
    return StepReplay(step, receipt["origin"], judgements, standing, differences, unfit, tuple(unread))


def _require_derived(archive: Archive, step: Step, folder: Path, record: Record, studies: Iterable[Path]) -> None:
    """Raise ``IntegrityError`` unless tasks, grades and scores are what the task domain derives.

    Raises ``ElsewhereError`` where it cannot derive them here.
    """
    if record.tasks is None and record.grades is None and record.scores is None:
        return
    protocol = archive.protocol
    domain = load_domain(protocol.study, protocol.domain_version, studies, where=f"protocol {protocol.id}")
    require_same_derivation(archive, step, folder, record, domain)
    if record.scores is not None:
        require_same_scores(archive, step, folder, record.scores, scoring_domain(domain, where=str(folder)))


def _with_recorded(judgement: Judgement, recorded: JSON) -> Judgement:
    """A judgement in which verdicts on record stand in for those of the same gate that could not be made again."""
    on_record = {
        (verdict["gate"], verdict["version"], verdict["role"]): Verdict.from_json(verdict)
        for other in recorded
        if other["rung"] == judgement.rung
        for verdict in other["verdicts"]
    }
    verdicts = (
        on_record.get((made.gate, made.version, made.role), made) if made.elsewhere is not None else made
        for made in judgement.verdicts
    )
    return Judgement(judgement.rung, tuple(verdicts))


def _of_counts(folder: Path, record: Record) -> Iterator[Difference]:
    """Counts on record are those of the rows, wherever these are at hand."""
    path = folder / "counts.parquet"
    at_hand = record.counted is None and "completions" not in record.elsewhere
    if at_hand and path.exists() and (what := difference_of(path, record.samples or ())):
        yield Difference(None, None, f"{path.name}: {what}")


def _named(rung: str | None, gate: str, said: str) -> str:
    return f"{gate}: {said}" if rung is None else f"{gate}[{rung}]: {said}"


def _unfit(archive: Archive, gates: Gates) -> str | None:
    """Why the protocol could not be frozen: whoever writes one by hand may leave out what freezing asks for."""
    protocol = archive.protocol
    task_ids = {split: [task["task_id"] for task in archive.tasks(split)] for split in protocol.splits}
    try:
        registration.check(protocol, lambda entry: gates.of(entry, where=f"gate {entry.name}"), task_ids)
        registration.check_locks(protocol, archive.locked_packages())
        check_manifest(protocol, manifest_of(archive), lambda split: record_digests(archive.tasks(split)))
    except RegistrationError as error:
        return str(error)
    return None


def _step_preflight(
    archive: Archive, step: Step, receipt: JSON, gates: Gates, studies: Iterable[Path]
) -> Iterator[Difference]:
    """A live step that sampled was let through by every registered gate that judges before generation."""
    stage, folder = archive.protocol.stage(step.stage), archive.step_folder(step)
    before = [entry for entry in stage.gates if gates.of(entry, where=str(step)).before_generation]
    expected = bool(before) and stage.samples and receipt["origin"] == "live"
    if (folder / "preflight.json").exists() is not expected:
        problem = "is missing, but gates judge" if expected else "exists, but no gate judged"
        raise IntegrityError(f"{folder / 'preflight.json'}: {problem} before generation")
    if expected:
        for difference in replay_preflight(archive, folder, gates=gates, studies=studies).differences:
            yield Difference(None, "preflight", str(difference))


def replay_ladder(archive: Archive, steps: Sequence[StepReplay], notes: Sequence[str] = ()) -> Replay:
    """Fold the recomputed judgements, and compare the decision after each step, and the selection, with the record.

    Args:
        steps: every finished step, in ladder order.
        notes: what ``integrity.verify`` had to say.
    """
    unfit = sorted({step.unfit for step in steps if step.unfit is not None})
    differences = [f"protocol: could not be frozen: {problem}" for problem in unfit]
    limits: list[str] = []
    judgements: dict[Step, Sequence[Judgement]] = {}
    decision = audit(archive.protocol, judgements)
    for replayed in steps:
        judgements[replayed.step] = replayed.standing
        try:
            decision = audit(archive.protocol, judgements)
        except OrderError as error:
            if not any(step.differences for step in steps):
                raise
            differences.append(str(error))  # a consequence: what differs in the steps says more
            break
        receipt = archive.receipt(replayed.step)
        if receipt["decision"] != decision.to_json():
            recorded = f"recorded {receipt['decision']}, recomputed {decision.to_json()}"
            differences.append(f"decision after {replayed.step}: {recorded}")
        limits += [f"{replayed.step}: {limit}" for limit in receipt["limits"]]
    selection = archive.root / "selection.json"
    selected = jsonfile.read_canonical(selection)["selected"] if selection.exists() else None
    if selection.exists() and selected != decision.rung:  # a run that was cut off may not have come to writing it
        differences.append(f"selection: recorded {selected}, recomputed {decision.rung}")
    return Replay(archive, tuple(steps), decision, tuple(differences), (*notes, *limits))
