from typing import Any

import pytest

from gatepost.evidence import Record, Task, Tasks

from .builders import checks, failed, judge, outcomes, plan


def task(name: str, *, answers: tuple[str, ...] = ("cat",), family: str = "cat", split: str = "selection") -> Task:
    return Task(name, split, name, name, name, answers, family)


def verdict(tasks: list[Task], *, max_answers: int = 1, max_imbalance: int = 1, **registered: Any) -> Any:
    names = registered.pop("task_ids", [task.task_id for task in tasks])
    record = Record(plan(task_ids=names, **registered), tasks=Tasks(tuple(tasks), ()))
    limits = {"max_answers_per_task": max_answers, "max_family_imbalance": max_imbalance}
    return judge("identifiability", record, **limits)


@pytest.mark.parametrize(
    ("answers", "limit", "outcome"),
    [
        ((), 1, "fail"),  # nobody enumerated
        ((), 0, "fail"),
        (("cat",), 1, "pass"),
        (("cat", "dog"), 1, "fail"),
        (("cat", "dog"), 2, "pass"),
        (("cat", "dog", "horse"), 2, "fail"),
    ],
)
def test_the_answers_that_examples_allow(answers: tuple[str, ...], limit: int, outcome: str) -> None:
    check = checks(verdict([task("t1", answers=answers), task("t2")], max_answers=limit))["identifiable_tasks"]
    k = 1 + (outcome == "pass") if limit else 0
    assert (check.outcome, check.k, check.n) == (outcome, k, 2)


@pytest.mark.parametrize(
    ("families", "limit", "outcome"),
    [
        ("aabb", 0, "pass"),
        ("aab", 0, "fail"),
        ("aab", 1, "pass"),
        ("aaab", 1, "fail"),
        ("aaab", 2, "pass"),
        ("aaaa", 0, "pass"),  # only families that are present are balanced
        ("aaabbbc", 1, "fail"),
    ],
)
def test_the_balance_of_families(families: str, limit: int, outcome: str) -> None:
    tasks = [task(f"t{index}", family=family) for index, family in enumerate(families)]
    assert outcomes(verdict(tasks, max_imbalance=limit))["family_imbalance of selection"] == outcome


def test_splits_are_balanced_one_by_one() -> None:
    tasks = [task("t1", family="a"), task("t2", family="a"), task("t3", family="b", split="confirmation")]
    tasks += [task("t4", family="b", split="confirmation"), task("t5", family="a", split="confirmation")]
    found = verdict(tasks, max_imbalance=0, splits=["selection", "confirmation"])
    assert failed(found) == {"family_imbalance of confirmation"}


def test_a_registered_split_without_tasks_is_inconclusive() -> None:
    assert verdict([task("t1")], splits=["selection", "confirmation"]).outcome == "inconclusive"


def test_the_denominator_is_the_registered_tasks() -> None:
    check = checks(verdict([task("t1"), task("t9")], task_ids=["t1", "t2"]))["identifiable_tasks"]
    assert (check.outcome, check.k, check.n, check.note) == ("fail", 1, 2, "first: t2")


def test_unrecorded_tasks_are_inconclusive() -> None:
    limits = {"max_answers_per_task": 1, "max_family_imbalance": 1}
    assert judge("identifiability", Record(plan()), **limits).outcome == "inconclusive"
