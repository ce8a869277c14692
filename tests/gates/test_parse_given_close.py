from collections.abc import Sequence
from typing import Any

import pytest

from gatepost.evidence import Record
from gatepost.reach import SampleSize

from .builders import checks, gate, grades_of, judge, plan, rows_of

TEN = plan(task_ids=["t1", "t2"], samples_per_task=5)


def check(closes: Sequence[int | None], parses: list[bool], *, cap: int = 16, grades: Any = ...) -> Any:
    registered = plan(task_ids=["t1", "t2"], samples_per_task=5, cap=cap)
    given = grades_of(registered, [True if parsed else None for parsed in parses]) if grades is ... else grades
    record = Record(registered, rows=rows_of(registered, closes), grades=given)
    return checks(judge("parse_given_close", record, min_parse_rate=0.90))["parse_rate_given_close"]


@pytest.mark.parametrize(
    ("closed", "parsed", "outcome"),
    [(10, 9, "pass"), (10, 8, "fail"), (9, 9, "pass"), (9, 8, "fail"), (1, 1, "pass"), (1, 0, "fail")],
)
def test_the_share_of_closed_samples_that_parse(closed: int, parsed: int, outcome: str) -> None:
    found = check([4] * closed + [None] * (10 - closed), [index < parsed for index in range(10)])
    assert (found.outcome, found.k, found.n) == (outcome, parsed, closed)


def test_only_closes_by_the_cap_count() -> None:
    closes = [8] * 5 + [9] * 5
    parses = [True] * 5 + [False] * 5
    assert (check(closes, parses, cap=8).k, check(closes, parses, cap=8).n) == (5, 5)
    assert (check(closes, parses, cap=16).k, check(closes, parses, cap=16).n) == (5, 10)


def test_where_nothing_closed_there_is_no_share() -> None:
    found = check([None] * 10, [True] * 10)
    assert (found.outcome, found.observed, found.note) == ("inconclusive", None, "empty sample")


def test_ungraded_samples_are_inconclusive() -> None:
    assert check([4] * 10, [True] * 10, grades=None).outcome == "inconclusive"
    one_missing = dict(list(grades_of(TEN, [True] * 10).items())[1:])
    assert check([4] * 10, [True] * 10, grades=one_missing).outcome == "inconclusive"
    # A sample that did not close has nothing to grade.
    assert check([None] + [4] * 9, [True] * 10, grades=one_missing).outcome == "pass"


def test_unrecorded_rows_are_inconclusive() -> None:
    record = Record(TEN, grades=grades_of(TEN, [True] * 10))
    assert judge("parse_given_close", record, min_parse_rate=0.0).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("limit", "minimum", "meets", "misses"),
    [(0.90, 44, True, True), (1.0, 48, True, True), (1.01, None, False, True), (0.0, 0, True, False)],
)
def test_reach(limit: float, minimum: int | None, meets: bool, misses: bool) -> None:
    reach = gate("parse_given_close").reach
    assert reach is not None
    (found,) = reach(SampleSize(16, 3), min_parse_rate=limit)
    assert (found.minimum, found.of, found.meets, found.misses) == (minimum, 48, meets, misses)
