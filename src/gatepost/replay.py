"""Replay: recompute every verdict and the decision of an archive, and compare every number with the receipts.

*Is the record faithful?* is what a replay passes or fails on. *Did the experiment pass?* is data in its report. A
faithful terminal negative replays clean.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gatepost import integrity, jsonfile
from gatepost.archive import Archive
from gatepost.errors import IntegrityError
from gatepost.gatefiles import Gates
from gatepost.judge import judge
from gatepost.ladder import Decision, Judgement, Step, audit
from gatepost.records import records_of, require_same_derivation
from gatepost.stepfiles import verify_manifest
from gatepost.studyfiles import load_domain
from gatepost.verdict import JSON, Verdict


@dataclass(frozen=True)
class StepReplay:
    """One step, judged again. ``differences`` is empty for a faithful receipt."""

    step: Step
    origin: str
    judgements: tuple[Judgement, ...]
    differences: tuple[str, ...]


@dataclass(frozen=True)
class Replay:
    """A whole archive, replayed.

    Attributes:
        decision: what the recomputed judgements lead to.
        differences: everything in which the record and the recomputation disagree.
        notes: what is unfinished, and what the receipts say of their own limits.
    """

    archive: Archive
    steps: tuple[StepReplay, ...]
    decision: Decision
    differences: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def faithful(self) -> bool:
        return not self.differences

    def to_json(self) -> dict[str, JSON]:
        return {
            "protocol": self.archive.protocol.digest,
            "id": self.archive.protocol.id,
            "root": self.archive.catalog()["root"],
            "faithful": self.faithful,
            "differences": list(self.differences),
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
        }


def replay(root: Path, *, gates: Gates, studies: Iterable[Path], expected_root: str | None = None) -> Replay:
    """Replay one archive. Raises ``GatepostError`` where it is not whole; reports differences where it is."""
    archive = Archive(root)
    notes = integrity.verify(archive, expected_root=expected_root)
    steps = tuple(replay_step(archive, step, gates=gates, studies=studies) for step in archive.finished_steps())
    differences = [f"{step.step}: {difference}" for step in steps for difference in step.differences]
    decision = audit(archive.protocol, {step.step: step.judgements for step in steps})
    if steps:
        recorded = archive.receipt(steps[-1].step)["decision"]
        if recorded != decision.to_json():
            differences.append(f"decision: recorded {recorded}, recomputed {decision.to_json()}")
    notes += [f"{step.step}: {limit}" for step in steps for limit in archive.receipt(step.step)["limits"]]
    return Replay(archive, steps, decision, tuple(differences), tuple(notes))


def replay_step(archive: Archive, step: Step, *, gates: Gates, studies: Iterable[Path]) -> StepReplay:
    """Judge one finished step again from its evidence."""
    folder = archive.step_folder(step)
    receipt = archive.receipt(step)
    protocol = archive.protocol
    records = list(records_of(archive, step, folder, gates, recorded_digest=receipt["protocol"]))
    verify_manifest(folder, receipt, records[0].rows)
    if records[0].tasks is not None or records[0].grades is not None:
        domain = load_domain(protocol.study, protocol.domain_version, studies, where=f"protocol {protocol.id}")
        require_same_derivation(archive, step, folder, records[0], domain)
    judged = [judge(record, lambda entry: gates.of(entry, where=str(step))).to_json() for record in records]
    # Through the same bytes as the receipt, so that only meaning can differ.
    judged = jsonfile.loads(jsonfile.canonical(judged), source=str(step))
    recomputed = tuple(map(Judgement.from_json, judged))
    differences = tuple(_differences([Judgement.from_json(old) for old in receipt["judgements"]], recomputed))
    if not differences and judged != receipt["judgements"]:
        differences = ("an outcome on record does not follow from its own checks",)
    return StepReplay(step, receipt["origin"], recomputed, differences)


def _differences(recorded: list[Judgement], judged: Iterable[Judgement]) -> Iterable[str]:
    at = {judgement.rung: judgement for judgement in recorded}
    if len(at) != len(recorded):
        raise IntegrityError("receipt: two judgements at one rung")
    for judgement in judged:
        where = "" if judgement.rung is None else f" at {judgement.rung}"
        old = {verdict.gate: verdict for verdict in at.pop(judgement.rung, Judgement(None, ())).verdicts}
        for verdict in judgement.verdicts:
            yield from _verdict_differences(old.pop(verdict.gate, None), verdict, where)
        yield from (f"{gate}{where}: recorded, but not registered" for gate in old)
    yield from (f"a judgement at {rung} is recorded, but not registered" for rung in at)


def _verdict_differences(recorded: Verdict | None, recomputed: Verdict, where: str) -> Iterable[str]:
    if recorded is None:
        yield f"{recomputed.gate}{where}: registered, but not recorded"
        return
    if recorded.to_json() == recomputed.to_json():
        return
    old = {check.name: check for check in recorded.checks}
    for check in recomputed.checks:
        if (before := old.pop(check.name, None)) != check:
            yield f"{recomputed.gate}{where}: recorded {before}, recomputed {check}"
    yield from (f"{recomputed.gate}{where}: recorded {check}, which the gate no longer makes" for check in old.values())
    if (recorded.version, recorded.role) != (recomputed.version, recomputed.role):
        yield f"{recomputed.gate}{where}: recorded version {recorded.version}, role {recorded.role}"
