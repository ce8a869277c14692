"""Put together what gates judge: the plan of a step, what the task domain derives, and what was recorded."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from gatepost.approval import of_step
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engine import EngineFacts
from gatepost.errors import ElsewhereError, IntegrityError, RegistrationError
from gatepost.evidence import Choice, Grade, Parent, Plan, Record, Sample, Score, Task, Tasks
from gatepost.fingerprint import RowKey
from gatepost.gatefiles import Gates
from gatepost.ladder import Step, judged_rungs
from gatepost.promptfile import read_manifest, record_digests
from gatepost.prompts import PromptIdentity
from gatepost.reach import RegisteredReach
from gatepost.reachability import registered_reach
from gatepost.registration import require_registered
from gatepost.scoring import Scorer, choose, grade
from gatepost.stages import Rung, Scope, Stage
from gatepost.stepfiles import read_record
from gatepost.studyfiles import Domain, TaskDocument


def plan_of(archive: Archive, stage: Stage, rung: Rung | None, *, recorded_digest: str) -> Plan:
    """The registered side of judging a stage at a rung."""
    tasks = [task for split in stage.splits for task in archive.tasks(split)][: stage.max_tasks]
    plan = Plan(archive.protocol, stage, rung, recorded_digest, tuple(task["task_id"] for task in tasks))
    manifest = manifest_of(archive)
    if manifest is None:
        return plan
    prompts = {line.task_id: line for line in manifest if line.arm == stage.arm}
    return dataclasses.replace(plan, prompts=prompts, record_sha256=record_digests(tasks))


def manifest_of(archive: Archive) -> tuple[PromptIdentity, ...] | None:
    """What the bound manifest says of prompts, its digest verified; ``None`` under a protocol that registers none."""
    if (path := archive.protocol.prompt_manifest) is None:
        return None
    archive.verify_bound(path)
    return read_manifest(archive.root / "bound" / path)


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
        reach=_reach(archive, step, gates),
        approvals=of_step(archive, step),
    )


def records_of(archive: Archive, step: Step, folder: Path, gates: Gates, *, recorded_digest: str) -> Iterator[Record]:
    """The record of a step at each rung where it is judged, read from the step's folder."""
    protocol = archive.protocol
    stage = protocol.stage(step.stage)
    reach = _reach(archive, step, gates)
    whole: Record | None = None
    for name in judged_rungs(protocol, step):
        rung = None if name is None else protocol.rung(name)
        plan = plan_of(archive, stage, rung, recorded_digest=recorded_digest)
        whole = whole or read_record(archive, folder, Record(plan, reach=reach, approvals=of_step(archive, step)))
        yield dataclasses.replace(whole, plan=plan)


def _reach(archive: Archive, step: Step, gates: Gates) -> tuple[RegisteredReach, ...]:
    protocol = archive.protocol
    sizes = {split: len(archive.tasks(split)) for split in protocol.splits}
    try:
        for stage in protocol.stages:
            if stage.name == step.stage or protocol.sampling_stages(stage):
                require_registered(protocol, stage, lambda entry: gates.of(entry, where=protocol.id))
        return tuple(registered_reach(protocol, lambda entry: gates.of(entry, where=protocol.id), sizes))
    except RegistrationError as error:
        raise RegistrationError(f"{archive.root / 'protocol.json'}: {error}") from None


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
    tasks = _tasks_by_id(archive, stage)
    close = archive.protocol.model.think_close[0]
    grades = {}
    for sample in samples:
        key = sample.key
        answer = _answer(sample, text.get(key), close)
        parsed = None if answer is None else domain.parse(answer)
        grades[key] = Grade(key, parsed, key.task_id in tasks and domain.grade(tasks[key.task_id], parsed))
    return grades


def _answer(sample: Sample, text: str | None, close: str) -> str | None:
    """The text after the first close, or all of it where the prompt closed thinking; ``None`` where it stayed open."""
    found = sample.continuation
    if text is None or found.answer_ids is None:
        return None
    return text if found.close_step is None else text.partition(close)[2]


def choose_samples(archive: Archive, step: Step, domain: Scorer) -> tuple[Choice, ...]:
    """What the visible examples choose among the samples that a step scores."""
    stage = archive.protocol.stage(step.stage)
    tasks = _tasks_by_id(archive, stage)
    return tuple(
        choice
        for scored in archive.protocol.sampling_stages(stage)
        for choice in choose(scored, _sealed_answers(archive, scored, step), tasks, domain)
    )


def grade_choices(archive: Archive, step: Step, domain: Scorer, choices: Sequence[Choice]) -> tuple[Score, ...]:
    """What the hidden examples say of them."""
    tasks = _tasks_by_id(archive, archive.protocol.stage(step.stage))
    return tuple(grade(choices, tasks, domain))


def _sealed_answers(archive: Archive, scored: Stage, step: Step) -> dict[RowKey, str | None]:
    """Every registered sample of a scored stage at the selected rung, with what was said after its thinking.

    At a cap below the one that was sampled under, what was said after a later close was never said.
    """
    rung = None if step.rung is None else archive.protocol.rung(step.rung)
    plan = plan_of(archive, scored, rung, recorded_digest=archive.protocol.digest)
    folder = archive.step_folder(Step(scored.name, None if scored.scope is Scope.NESTED else step.rung))
    record = read_record(archive, folder, Record(plan))
    for said in record.elsewhere.values():
        raise ElsewhereError(said)
    close, cap = archive.protocol.model.think_close[0], plan.max_think_tokens
    answers: dict[RowKey, str | None] = dict.fromkeys(plan.keys)
    for sample in record.samples or ():
        in_time = cap == plan.sampled_think_tokens or (cap is not None and sample.closed_at(cap))
        if sample.key in answers and in_time:
            answers[sample.key] = _answer(sample, (record.text or {}).get(sample.key), close)
    return answers


def _tasks_by_id(archive: Archive, stage: Stage) -> dict[str, TaskDocument]:
    return {task["task_id"]: task for split in stage.splits for task in archive.tasks(split)}


def require_same_scores(archive: Archive, step: Step, folder: Path, scores: Sequence[Score], domain: Scorer) -> None:
    """Raise ``IntegrityError`` unless choices and scores on record are what the task domain derives today."""
    derived = grade_choices(archive, step, domain, choose_samples(archive, step, domain))
    for found, expected in zip_longest(scores, derived):
        if found != expected:
            raise IntegrityError(f"{folder / 'scores.parquet'}: recorded {found}, recomputed {expected}")


def require_same_derivation(archive: Archive, step: Step, folder: Path, record: Record, domain: Domain) -> None:
    """Raise ``IntegrityError`` unless tasks and grades on record are what the task domain derives today."""
    stage = archive.protocol.stage(step.stage)
    if record.tasks is not None and record.tasks != analyse_tasks(archive, stage, domain):
        raise IntegrityError(f"{folder / 'tasks.parquet'}: differs from what the task domain derives from bound tasks")
    if record.grades is None:
        return
    if "text" in record.elsewhere or "completions" in record.elsewhere:
        raise ElsewhereError("; ".join(dict.fromkeys(record.elsewhere.values())))
    if record.samples is None or record.text is None:
        raise IntegrityError(f"{folder / 'grades.parquet'}: grades without the rows and text that they grade")
    derived = grade_samples(archive, stage, domain, record.samples, record.text)
    for key in sorted({*derived, *record.grades}):
        if derived.get(key) != record.grades.get(key):
            raise IntegrityError(
                f"{folder / 'grades.parquet'}: {key.task_id} sample {key.sample_index}: "
                f"recorded {record.grades.get(key)}, recomputed {derived.get(key)}"
            )
