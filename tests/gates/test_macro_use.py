from dataclasses import replace
from typing import Any

import pytest

from gatepost.reach import SampleSize

from .builders import checks, gate, judge
from .scored import scored, unknown_scores

LIMITS: dict[str, Any] = {"arm": "designed", "reuse_tasks": 2, "min_reuse_tasks": 2}
USE = "reuse_tasks_with_a_macro"


@pytest.mark.parametrize(
    ("designed", "found"),
    [
        ("mwmw----", 2),  # right or wrong, the first sample or a later one
        ("wM-m----", 2),
        ("mmww----", 1),  # two samples of one task are one task
        ("rrrrrrrr", 0),  # right without a macro
        ("mw--mmmm", 1),  # macros in tasks that are no reuse tasks
        ("miii----", 1),  # a macro that the arm does not offer
        ("--------", 0),
    ],
)
def test_tasks_are_counted(designed: str, found: int) -> None:
    verdict = judge("macro_use", scored(base="MMMMMMMM", designed=designed), **LIMITS)
    check = checks(verdict)[USE]
    assert (check.observed, check.k, check.n) == (found, found, 2)
    assert (verdict.outcome == "pass") is (found == 2)


def test_the_arm_is_the_registered_one() -> None:
    record = scored(base="mmmmmmmm", designed="wwwwwwww")
    assert judge("macro_use", record, **LIMITS).outcome == "fail"
    assert judge("macro_use", record, **{**LIMITS, "arm": "base"}).outcome == "pass"
    assert judge("macro_use", record, **{**LIMITS, "arm": "other"}).outcome == "inconclusive"


@pytest.mark.parametrize("reuse", [(), ("t1",), ("t1", "t2", "t3")])
def test_another_number_of_reuse_tasks_than_registered_is_inconclusive(reuse: tuple[str, ...]) -> None:
    verdict = judge("macro_use", scored(reuse=reuse, base="M" * 8, designed="M" * 8), **LIMITS)
    assert verdict.outcome == "inconclusive"
    assert f"{len(reuse)} reuse tasks, 2 registered" in (checks(verdict)[USE].note or "")


@pytest.mark.parametrize("name", [*unknown_scores(), "tasks"])
def test_missing_evidence_is_inconclusive(name: str) -> None:
    whole = scored(base="M" * 8, designed="M" * 8)
    record = replace(whole, tasks=None) if name == "tasks" else unknown_scores()[name]
    assert judge("macro_use", record, **LIMITS).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("reuse_tasks", "limit", "meets", "misses"),
    [(6, 2, True, True), (6, 6, True, True), (6, 7, False, True), (6, 0, True, False), (13, 2, False, True)],
)
def test_reach(reuse_tasks: int, limit: int, meets: bool, misses: bool) -> None:
    reach = gate("macro_use").reach
    assert reach is not None
    (found,) = reach(SampleSize(12, 12), arm="designed", reuse_tasks=reuse_tasks, min_reuse_tasks=limit)
    assert (found.meets, found.misses) == (meets, misses)
