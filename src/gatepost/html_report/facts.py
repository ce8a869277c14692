"""What a report reads of a replayed archive, step by step, through the same channels that gates have.

A report declares what it reads as a gate does, and neither text nor grades nor scores are among it: what nobody may see
yet cannot get into it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gatepost import jsonfile
from gatepost.absence import AbsentRows
from gatepost.engine import EngineFacts
from gatepost.engines.plain import from_plain
from gatepost.evidence import Evidence, Plan, Record
from gatepost.gatefiles import Gates
from gatepost.html_report.model import Source
from gatepost.ladder import Judgement, Step
from gatepost.preflight import preflights
from gatepost.records import records_of, sampling_plan
from gatepost.replay import Replay
from gatepost.verdict import Check, Verdict

READS = ("engine", "scheduler", "completions")
"""The channels of a report."""


class View(NamedTuple):
    """A step as it is judged at one rung.

    Attributes:
        judgement: made again from the evidence.
        absent: rows that were never published, with what their authors say of them.
        samples_away: why samples cannot be read here; ``None`` if they can.
    """

    step: Step
    evidence: Evidence
    judgement: Judgement
    absent: AbsentRows | None
    samples_away: str | None

    @property
    def plan(self) -> Plan:
        """The registered side."""
        return self.evidence.plan

    @property
    def label(self) -> str:
        """The step, and the rung of a stage that is sampled once for all of them."""
        rung = self.judgement.rung
        return str(self.step) if rung is None or self.step.rung else f"{self.step} at {rung}"

    def verdict(self, gate: str) -> Verdict | None:
        """What a gate said, if it is registered and was judged."""
        return next((verdict for verdict in self.judgement.verdicts if verdict.gate == gate), None)

    def check(self, gate: str, name: str) -> Check | None:
        """One check of a gate."""
        verdict = self.verdict(gate)
        return next((check for check in verdict.checks if check.name == name), None) if verdict else None


class Facts(NamedTuple):
    """A finished step, or an attempt that ended before generation.

    Attributes:
        name: of the step, or of the attempt's folder.
        views: one per rung at which it is judged; empty for an attempt of which nothing was judged.
        elapsed_seconds, generation_seconds: of the whole step, and from the first request to the last id.
    """

    name: str
    views: tuple[View, ...]
    source: Source
    attempt: bool
    engine: EngineFacts | None
    elapsed_seconds: float | None = None
    generation_seconds: float | None = None

    @property
    def step(self) -> Step:
        """Which step it is, or was an attempt at."""
        return self.views[0].step


def read_facts(replay: Replay, gates: Gates) -> tuple[Facts, ...]:
    """Every finished step in ladder order, then the attempts that were judged before generation."""
    return (*_steps(replay, gates), *_attempts(replay))


def _steps(replay: Replay, gates: Gates) -> Iterator[Facts]:
    archive = replay.archive
    for replayed in replay.steps:
        step, folder = replayed.step, archive.step_folder(replayed.step)
        source = _source(archive.root, folder / "receipt.json")
        digest = archive.receipt(step)["protocol"]
        records = list(records_of(archive, step, folder, gates, recorded_digest=digest))
        pairs = zip(records, replayed.judgements, strict=True)
        views = tuple(_view(step, record, judgement) for record, judgement in pairs)
        path = folder / "session.json"
        session = jsonfile.read_canonical(path) if path.exists() else {}
        seconds = session.get("elapsed_seconds"), session.get("generation_seconds")
        yield Facts(str(step), views, source, False, records[0].engine, *seconds)


def _attempts(replay: Replay) -> Iterator[Facts]:
    archive = replay.archive
    for folder, attempt in zip(preflights(archive), replay.attempts, strict=True):
        path = folder / "preflight.json"
        document = jsonfile.read_canonical(path)
        engine = from_plain(EngineFacts, document["engine"], where=f"{path}: engine", defaults=True)
        step = Step(**document["step"])
        if attempt.judgement is not None:
            record = Record(sampling_plan(archive, step), engine=engine, scheduler=engine.scheduler)
            view = _view(step, record, attempt.judgement)
            yield Facts(attempt.name, (view,), _source(archive.root, path), True, engine)


def _view(step: Step, record: Record, judgement: Judgement) -> View:
    away = record.elsewhere.get("completions")
    return View(step, Evidence(record, READS, gate="report"), judgement, record.absent_rows, away)


def _source(root: Path, path: Path) -> Source:
    return Source(path.relative_to(root).as_posix(), jsonfile.digest(jsonfile.read_bytes(path)))
