"""Put together what gates judge: the plan of a step, what the task domain derives, and what was recorded."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engine import EngineFacts
from gatepost.errors import IntegrityError
from gatepost.evidence import Grade, Parent, Plan, Record, Sample, Task, Tasks
from gatepost.fingerprint import RowKey
from gatepost.gatefiles import Gates
from gatepost.ladder import Step, judged_rungs
from gatepost.protocol import Rung, Stage
from gatepost.reach import RegisteredReach
from gatepost.reachability import registered_reach
from gatepost.stepfiles import read_record
from gatepost.studyfiles import Domain, TaskDocument


def plan_of(archive: Archive, stage: Stage, rung: Rung | None, *, recorded_digest: str) -> Plan:
    """The registered side of judging a stage at a rung."""
    ids = [task["task_id"] for split in stage.splits for task in archive.tasks(split)][: stage.max_tasks]
    return Plan(archive.protocol, stage, rung, recorded_digest, tuple(ids))


def sampling_plan(archive: Archive, step: Step) -> Plan:
    """The plan that a step samples by: at its own rung, the top one for a nested stage, none outside the ladder."""
    protocol = archive.protocol
    stage = protocol.stage(step.stage)
    rung = protocol.rungs[-1] if step.rung is None else protocol.rung(step.rung)
    return plan_of(archive, stage, None if stage.max_think_tokens else rung, recorded_digest=protocol.digest)


def record_before_generation(archive: Archive, step: Step, folder: Path, gates: Gates, facts: EngineFacts) -> Record:
    """What is known of a step once its engine runs and its prompts are rendered, and nothing is sampled yet."""
    return Record(
        sampling_plan(archive, step),
        engine=facts,
        tasks=tables.read_tasks(folder),
        prompts=tables.read_prompts(folder / "prompts.parquet"),
        reach=_reach(archive, gates),
    )


def records_of(archive: Archive, step: Step, folder: Path, gates: Gates, *, recorded_digest: str) -> Iterator[Record]:
    """The record of a step at each rung where it is judged, read from the step's folder."""
    protocol = archive.protocol
    stage = protocol.stage(step.stage)
    reach = _reach(archive, gates)
    whole: Record | None = None
    for name in judged_rungs(protocol, step):
        rung = None if name is None else protocol.rung(name)
        plan = plan_of(archive, stage, rung, recorded_digest=recorded_digest)
        whole = whole or read_record(folder, Record(plan, reach=reach))
        yield dataclasses.replace(whole, plan=plan)


def _reach(archive: Archive, gates: Gates) -> tuple[RegisteredReach, ...]:
    protocol = archive.protocol
    sizes = {split: len(archive.tasks(split)) for split in protocol.splits}
    return tuple(registered_reach(protocol, lambda entry: gates.of(entry, where=protocol.id), sizes))


def analyse_tasks(archive: Archive, stage: Stage, domain: Domain) -> Tasks:
    """What the task domain says of a stage's tasks and of the registered parent corpora."""
    tasks = tuple(_analyse(task, split, domain) for split in stage.splits for task in archive.tasks(split))
    parents = []
    for name in archive.protocol.parents:
        corpus = archive.parent_tasks(name)
        levels = (domain.record_fingerprint, domain.content_fingerprint, domain.program_fingerprint)
        parents.append(Parent(name, *(frozenset(map(level, corpus)) for level in levels)))
    return Tasks(tasks, tuple(parents))


def _analyse(task: TaskDocument, split: str, domain: Domain) -> Task:
    return Task(
        task_id=task["task_id"],
        split=split,
        record_fingerprint=domain.record_fingerprint(task),
        content_fingerprint=domain.content_fingerprint(task),
        program_fingerprint=domain.program_fingerprint(task),
        answers=tuple(domain.answers(task)),
        family=domain.family(task),
    )


def grade_samples(
    archive: Archive, stage: Stage, domain: Domain, samples: Iterable[Sample], text: Mapping[RowKey, str]
) -> dict[RowKey, Grade]:
    """Parse and grade the text after the first close of every sample; where thinking stayed open there is none."""
    tasks = {task["task_id"]: task for split in stage.splits for task in archive.tasks(split)}
    close = archive.protocol.model.think_close[0]
    grades = {}
    for sample in samples:
        key = sample.row.key
        answered = sample.continuation.answer_ids is not None
        parsed = domain.parse(text[key].partition(close)[2]) if answered and key in text else None
        grades[key] = Grade(key, parsed, key.task_id in tasks and domain.grade(tasks[key.task_id], parsed))
    return grades


def require_same_derivation(archive: Archive, step: Step, folder: Path, record: Record, domain: Domain) -> None:
    """Raise ``IntegrityError`` unless tasks and grades on record are what the task domain derives today."""
    stage = archive.protocol.stage(step.stage)
    if record.tasks is not None and record.tasks != analyse_tasks(archive, stage, domain):
        raise IntegrityError(f"{folder / 'tasks.parquet'}: differs from what the task domain derives from bound tasks")
    if record.grades is None:
        return
    if record.samples is None or record.text is None:
        raise IntegrityError(f"{folder / 'grades.parquet'}: grades without the rows and text that they grade")
    derived = grade_samples(archive, stage, domain, record.samples, record.text)
    for key in sorted({*derived, *record.grades}):
        if derived.get(key) != record.grades.get(key):
            raise IntegrityError(
                f"{folder / 'grades.parquet'}: {key.task_id} sample {key.sample_index}: "
                f"recorded {record.grades.get(key)}, recomputed {derived.get(key)}"
            )
