from typing import Any

import pytest

from gatepost.evidence import Record
from gatepost.reach import SampleSize

from .builders import checks, gate, judge, plan, rows_of

STUDY_B = plan(task_ids=[f"t{index}" for index in range(24)], samples_per_task=3)


def check(count: int, **changes: Any) -> Any:
    rows = rows_of(STUDY_B, [5] * count + [None] * (72 - count))
    thresholds = {"min_lower_bound": 0.70, "method": "wilson", "confidence": 0.95, **changes}
    return checks(judge("natural_close_bound", Record(STUDY_B, rows=rows), **thresholds))["natural_close_lower_bound"]


@pytest.mark.parametrize(
    ("count", "method", "outcome"),
    [
        (0, "wilson", "fail"),
        (58, "wilson", "fail"),  # the rate of 0.80 is met here, its lower bound of 0.70 just not
        (59, "wilson", "pass"),
        (72, "wilson", "pass"),
        (58, "clopper_pearson", "fail"),
        (59, "clopper_pearson", "pass"),
    ],
)
def test_study_b_needs_59_of_72(count: int, method: str, outcome: str) -> None:
    found = check(count, method=method)
    assert (found.outcome, found.k, found.n) == (outcome, count, 72)


@pytest.mark.parametrize(
    ("method", "confidence", "outcome"),
    [
        ("wilson", 0.95, "pass"),
        ("clopper_pearson", 0.95, "pass"),
        ("Wilson", 0.95, "inconclusive"),
        ("jeffreys", 0.95, "inconclusive"),
        ("", 0.95, "inconclusive"),
        ("wilson", 0.0, "inconclusive"),
        ("wilson", 1.0, "inconclusive"),
        ("wilson", 95, "inconclusive"),
        ("wilson", -0.95, "inconclusive"),
    ],
)
def test_only_a_named_method_bounds(method: str, confidence: float, outcome: str) -> None:
    found = check(72, method=method, confidence=confidence)
    assert found.outcome == outcome
    assert ("expected one of wilson, clopper_pearson" in found.note) is (outcome == "inconclusive")


@pytest.mark.parametrize("record", [Record(STUDY_B), Record(plan(task_ids=()), rows=())])
def test_no_sample_is_inconclusive(record: Record) -> None:
    thresholds = {"min_lower_bound": 0.0, "method": "wilson", "confidence": 0.95}
    assert judge("natural_close_bound", record, **thresholds).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("size", "limit", "method", "minimum", "meets", "misses"),
    [
        (SampleSize(24, 3), 0.70, "wilson", 59, True, True),
        (SampleSize(24, 3), 0.70, "clopper_pearson", 59, True, True),
        (SampleSize(16, 3), 0.70, "wilson", 40, True, True),
        (SampleSize(16, 3), 0.70, "clopper_pearson", 41, True, True),
        (SampleSize(24, 3), 0.95, "wilson", None, False, True),  # even 72 of 72 is not enough
        (SampleSize(24, 3), 0.0, "wilson", 0, True, False),
        (SampleSize(24, 3), 0.70, "jeffreys", None, False, True),
    ],
)
def test_reach(size: SampleSize, limit: float, method: str, minimum: int | None, meets: bool, misses: bool) -> None:
    reach = gate("natural_close_bound").reach
    assert reach is not None
    (found,) = reach(size, min_lower_bound=limit, method=method, confidence=0.95)
    assert (found.minimum, found.of, found.meets, found.misses) == (minimum, size.rows, meets, misses)
