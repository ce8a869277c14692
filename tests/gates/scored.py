"""Small records of a stage that scores two arms: tasks t1 and t2 of the family ``reuse``, t3 and t4 of another."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gatepost.evidence import Plan, Record, Score, Task, Tasks
from gatepost.stages import Scope

from .builders import plan

TASK_IDS = ("t1", "t2", "t3", "t4")
ANSWERS: dict[str, dict[str, Any]] = {
    "-": {},  # did not parse
    "w": {"parsed": "A", "valid": True},  # wrong
    "r": {"parsed": "A", "valid": True, "correct": True},
    "m": {"parsed": "M0", "valid": True, "traits": frozenset({"macro"})},  # calls a macro, and is wrong
    "M": {"parsed": "M0", "valid": True, "correct": True, "traits": frozenset({"macro"})},
    "i": {"parsed": "M9", "correct": True, "traits": frozenset({"macro"})},  # invalid: its arm does not offer it
}
"""One letter a sample; what is not said is false, empty or ``None``."""


def scored_plan(*, samples_per_task: int = 2, task_ids: Sequence[str] = TASK_IDS) -> Plan:
    """The registered side of a stage ``scoring`` over ``base`` and ``designed``."""
    small = plan(task_ids=task_ids, samples_per_task=samples_per_task, scope=Scope.RUNG)
    arms = [replace(small.stage, name=f"{arm}_stage", arm=arm) for arm in ("base", "designed")]
    scoring = replace(
        small.stage,
        name="scoring",
        scope=Scope.SELECTED,
        samples_per_task=0,
        base_seed=None,
        scores=tuple(stage.name for stage in arms),
    )
    return replace(small, stage=scoring, protocol=replace(small.protocol, stages=(*arms, scoring)))


def scores_of(registered: Plan, **arms: str) -> tuple[Score, ...]:
    """One score per registered sample: letters of ``ANSWERS``, task by task."""
    blank: dict[str, Any] = {"parsed": None, "visible_score": None, "chosen": False, "correct": False, "valid": False}
    return tuple(
        Score(**{**blank, "traits": frozenset(), **ANSWERS[letter]}, stage=stage.name, arm=stage.arm, key=key)
        for stage in registered.protocol.sampling_stages(registered.stage)
        for key, letter in zip(registered.keys_of(stage), arms[str(stage.arm)], strict=True)
    )


def tasks_of(registered: Plan, reuse: Sequence[str] = ("t1", "t2")) -> Tasks:
    """The registered tasks with their families."""
    families = {task_id: "reuse" if task_id in reuse else "other" for task_id in registered.task_ids}
    return Tasks(tuple(Task(name, "selection", name, name, name, (), kind) for name, kind in families.items()), ())


def scored(*, reuse: Sequence[str] = ("t1", "t2"), **arms: str) -> Record:
    """A record of both arms, two samples a task."""
    registered = scored_plan()
    return Record(registered, tasks=tasks_of(registered, reuse), scores=scores_of(registered, **arms))


def unknown_scores() -> dict[str, Record]:
    """Records whose scores nobody can count: missing, incomplete, doubled, or of a sample that was never registered."""
    registered = scored_plan()
    scores = scores_of(registered, base="M" * 8, designed="M" * 8)
    stray = replace(scores[0], key=scores[0].key._replace(sample_index=9))
    stored = {"none": None, "empty": (), "one missing": scores[1:], "one twice": (*scores, scores[0])}
    stored |= {"one too many": (*scores, stray), "one swapped": (stray, *scores[1:])}
    return {name: Record(registered, tasks=tasks_of(registered), scores=found) for name, found in stored.items()}
