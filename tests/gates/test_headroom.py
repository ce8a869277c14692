from itertools import product
from typing import Any

import pytest

from gatepost.evidence import Record
from gatepost.reach import Reach, SampleSize

from .builders import checks, failed, gate, grades_of, judge, outcomes, plan, rows_of

FOUR_BY_THREE = plan(task_ids=["t1", "t2", "t3", "t4"], samples_per_task=3)
LIMITS: dict[str, Any] = {
    "min_thinking_tokens": 3,
    "min_usable_rows": 8,
    "min_usable_success": 0.25,
    "max_usable_success": 0.75,
    "min_mixed_tasks": 2,
}
STUDY_B = {**LIMITS, "min_thinking_tokens": 16, "min_usable_success": 0.05, "max_usable_success": 0.95}


def verdict(closes: list[int | None], correct: str, **limits: Any) -> Any:
    """``correct``: one letter a sample: y and n for an answer, x for one that does not parse."""
    grades = grades_of(FOUR_BY_THREE, [{"y": True, "n": False, "x": None}[letter] for letter in correct])
    record = Record(FOUR_BY_THREE, rows=rows_of(FOUR_BY_THREE, closes), grades=grades)
    return judge("headroom", record, **{**LIMITS, **limits})


@pytest.mark.parametrize(
    ("closes", "correct", "broken"),
    [
        ([4] * 12, "yynynnyyynnn", set()),
        ([4] * 8 + [None] * 4, "yynynnyyynnn", set()),  # 8 usable, 5 right, 2 mixed
        ([4] * 7 + [None] * 5, "yynynnyyynnn", {"usable_rows"}),
        ([4] * 7 + [3] * 5, "yynynnyyynnn", {"usable_rows"}),  # a close at step 3 leaves 2 ids of thinking
        ([4] * 8 + [17] * 4, "yynynnyyynnn", set()),  # a close beyond the cap is none here
        ([4] * 12, "yynynnyyyxxx", set()),  # 9 usable, 6 right
        ([4] * 12, "yynynnyxxxxx", {"usable_rows"}),
        ([4] * 12, "ynnynnnnnyxx", set()),  # 3 of 10
        ([4] * 12, "ynnynnynnnnn", set()),  # 3 of 12 is the lower end
        ([4] * 12, "ynnynnnnnnnn", {"usable_success_floor"}),  # 2 of 12
        ([4] * 12, "yyyyyyyynnny", set()),  # 9 of 12 is the upper end
        ([4] * 12, "yyyyyyyynyyn", {"usable_success_ceiling"}),  # 10 of 12
        ([4] * 12, "yyynnnyyynnn", {"mixed_tasks"}),  # half right, and no task is mixed
        ([4] * 12, "ynyyyynnnnnn", {"mixed_tasks"}),
        ([4] * 12, "ynyyxnxxnnyn", set()),
        ([4] * 12, "yyyyyyyyyyyy", {"usable_success_ceiling", "mixed_tasks"}),
        ([4] * 12, "nnnnnnnnnnnn", {"usable_success_floor", "mixed_tasks"}),
    ],
)
def test_both_sides_of_every_boundary(closes: list[int | None], correct: str, broken: set[str]) -> None:
    assert failed(verdict(closes, correct)) == broken


@pytest.mark.parametrize(("limit", "usable"), [(3, 12), (4, 0)])
def test_thinking_is_counted_before_the_close(limit: int, usable: int) -> None:
    assert checks(verdict([4] * 12, "yn" * 6, min_thinking_tokens=limit))["usable_rows"].k == usable


def test_where_nothing_is_usable_there_is_no_success_rate() -> None:
    assert outcomes(verdict([None] * 12, "yn" * 6)) == {
        "usable_rows": "fail",
        "usable_success_floor": "inconclusive",
        "usable_success_ceiling": "inconclusive",
        "mixed_tasks": "fail",
    }


def test_missing_rows_count_in_no_favour() -> None:
    rows = rows_of(FOUR_BY_THREE, [4] * 12)
    grades = grades_of(FOUR_BY_THREE, [True, False, True] * 4)
    short = judge("headroom", Record(FOUR_BY_THREE, rows=rows[:7], grades=grades), **LIMITS)
    assert (checks(short)["usable_rows"].k, checks(short)["usable_rows"].n) == (7, 12)
    twice = judge("headroom", Record(FOUR_BY_THREE, rows=(*rows, *rows[:5]), grades=grades), **LIMITS)
    assert checks(twice)["usable_rows"].k == 7


@pytest.mark.parametrize("channel", ["rows", "grades", "one grade", "tasks"])
def test_missing_evidence_is_inconclusive(channel: str) -> None:
    rows, grades = rows_of(FOUR_BY_THREE, [4] * 12), grades_of(FOUR_BY_THREE, [True, False, True] * 4)
    record = {
        "rows": Record(FOUR_BY_THREE, grades=grades),
        "grades": Record(FOUR_BY_THREE, rows=rows),
        "one grade": Record(FOUR_BY_THREE, rows=rows, grades=dict(list(grades.items())[1:])),
        "tasks": Record(plan(task_ids=()), rows=(), grades={}),
    }[channel]
    assert set(outcomes(judge("headroom", record, **LIMITS)).values()) == {"inconclusive"}


def reaches(size: SampleSize, **limits: Any) -> dict[str, Reach]:
    reach = gate("headroom").reach
    assert reach is not None
    return {found.name: found for found in reach(size, **{**STUDY_B, **limits})}


@pytest.mark.parametrize(
    ("size", "usable", "mixed", "band"),
    [(SampleSize(16, 3), 32, 6, (2, 45)), (SampleSize(24, 3), 48, 8, (3, 68))],
    ids=["selection", "confirmation"],
)
def test_study_b_is_reachable(size: SampleSize, usable: int, mixed: int, band: tuple[int, int]) -> None:
    found = reaches(size, min_usable_rows=usable, min_mixed_tasks=mixed)
    assert all(reach.meets and reach.misses for reach in found.values())
    assert found["min_usable_rows"].minimum == usable
    assert (found["min_mixed_tasks"].minimum, found["min_mixed_tasks"].of) == (mixed, size.tasks)
    assert (found["min_usable_success"].minimum, found["max_usable_success"].minimum) == band


BAND = {"min_usable_success", "max_usable_success"}
NARROW = {"min_usable_success": 0.95, "max_usable_success": 0.99}


@pytest.mark.parametrize(
    ("size", "limits", "unmet"),
    [
        (SampleSize(48, 1), {}, {"min_mixed_tasks"}),  # one sample a task never mixes
        (SampleSize(16, 3), {"min_usable_rows": 48}, set()),
        (SampleSize(16, 3), {"min_usable_rows": 49}, {"min_usable_rows", "min_mixed_tasks", *BAND}),
        (SampleSize(16, 3), {"min_mixed_tasks": 16}, set()),
        (SampleSize(16, 3), {"min_mixed_tasks": 17}, {"min_mixed_tasks"}),
        (SampleSize(16, 3), {"min_usable_success": 0.9, "max_usable_success": 0.8}, {"min_mixed_tasks", *BAND}),
        # Of 2 usable samples, 1 or 2 succeed: one half or all, and nothing between.
        (
            SampleSize(1, 2),
            {"min_usable_rows": 2, "min_usable_success": 0.6, "min_mixed_tasks": 1},
            {"min_mixed_tasks", *BAND},
        ),
        # Alone every threshold can be met. Together they cannot: 95 % of 48 leave 2 failures, for 3 mixed tasks.
        (SampleSize(16, 3), {**NARROW, "min_mixed_tasks": 2}, set()),
        (SampleSize(16, 3), {**NARROW, "min_mixed_tasks": 3}, {"min_mixed_tasks"}),
    ],
)
def test_thresholds_are_met_jointly(size: SampleSize, limits: dict[str, Any], unmet: set[str]) -> None:
    assert {name for name, reach in reaches(size, **limits).items() if not reach.meets} == unmet


@pytest.mark.parametrize(
    ("limits", "unmissed"),
    [
        ({"min_usable_rows": 0}, {"min_usable_rows"}),
        ({"min_usable_success": 0.0}, {"min_usable_success"}),
        ({"max_usable_success": 1.0}, {"max_usable_success"}),
        ({"min_mixed_tasks": 0}, {"min_mixed_tasks"}),
    ],
)
def test_a_threshold_that_every_sample_meets_decides_nothing(limits: dict[str, Any], unmissed: set[str]) -> None:
    assert {name for name, reach in reaches(SampleSize(16, 3), **limits).items() if not reach.misses} == unmissed


@pytest.mark.parametrize("size", [SampleSize(2, 2), SampleSize(3, 2), SampleSize(2, 3), SampleSize(4, 1)])
@pytest.mark.parametrize(("low", "high"), [(0.05, 0.95), (0.5, 0.8), (0.1, 0.25), (0.7, 0.9)])
def test_the_most_mixed_tasks_are_those_of_the_best_sample_there_is(size: SampleSize, low: float, high: float) -> None:
    limits = {"min_usable_rows": 3, "min_usable_success": low, "max_usable_success": high}
    best = 0
    for letters in product("ynx", repeat=size.rows):
        usable = [letter for letter in letters if letter != "x"]
        if len(usable) < 3 or not low <= usable.count("y") / len(usable) <= high:
            continue
        tasks = [letters[first :: size.tasks] for first in range(size.tasks)]
        best = max(best, sum({"y", "n"} <= set(task) for task in tasks))
    assert reaches(size, **limits, min_mixed_tasks=1)["min_mixed_tasks"].of == best
