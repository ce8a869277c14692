from dataclasses import replace

import pytest

from gatepost.evidence import Record
from gatepost.reach import SampleSize
from gatepost.stages import Scope
from gatepost.verdict import Check

from .builders import checks, gate, judge, plan, row, rows_of

STUDY_B = plan(task_ids=[f"t{index}" for index in range(16)], samples_per_task=3)


def rate(record: Record, limit: float) -> Check:
    return checks(judge("natural_close", record, min_natural_close_rate=limit))["natural_close_rate"]


@pytest.mark.parametrize(("count", "outcome"), [(0, "fail"), (38, "fail"), (39, "pass"), (48, "pass")])
def test_study_b_needs_39_of_48(count: int, outcome: str) -> None:
    rows = rows_of(STUDY_B, [5] * count + [None] * (48 - count))
    check = rate(Record(STUDY_B, rows=rows), 0.80)
    assert (check.outcome, check.k, check.n) == (outcome, count, 48)


@pytest.mark.parametrize(("cap", "k"), [(8, 2), (16, 3)])
def test_closed_at_a_cap_iff_the_close_step_is_at_most_the_cap(cap: int, k: int) -> None:
    registered = plan(cap=cap)
    assert rate(Record(registered, rows=rows_of(registered, [1, 8, 9, None])), 0.5).k == k


@pytest.mark.parametrize(
    ("ids", "finish"),
    [
        ([30, 31, 2], "stop"),  # an end of sequence inside thinking is no close
        ([30, 31, 10], "stop"),
        ([30, 8, 50, 8, 2], "stop"),  # two closes: which one split thought from answer?
        ([30, 8, 50, 7, 31, 2], "stop"),
        ([30, 8, 50, 2], "abort"),
        ([30, 8, 50, 2], None),
        ([], "length"),
    ],
)
def test_what_is_not_a_natural_close(ids: list[int], finish: str | None) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1)
    assert rate(Record(registered, rows=(row(registered.keys[0], ids, finish=finish),)), 0.5).k == 0


@pytest.mark.parametrize("gate_name", ["natural_close", "right_censoring"])
def test_an_injected_close_is_not_the_model_s_own(gate_name: str) -> None:
    registered = plan()
    rows = [replace(one, injected_start=3, injected_tokens=1) for one in rows_of(registered, [4, 4, 4, 4])]
    record = Record(registered, rows=(*rows[:2], *rows_of(registered, [4, 4, 4, 4])[2:]))
    check = rate(record, 0.5) if gate_name == "natural_close" else checks(judge(gate_name, record))["closed_rows"]
    assert (check.k, check.n) == (2, 4)


@pytest.mark.parametrize("change", ["missing", "twice", "extra"])
def test_the_denominator_is_the_registered_rows(change: str) -> None:
    registered = plan()
    rows = list(rows_of(registered, [4, 4, 4, 4]))
    k = 3
    if change == "missing":
        rows.pop()
    elif change == "twice":
        rows.append(rows[0])
    else:
        rows.append(row(("t9", 0), [30, 8, 50, 2]))
        k = 4
    check = rate(Record(registered, rows=tuple(rows)), 1.0)
    assert (check.k, check.n, check.outcome) == (k, 4, "pass" if k == 4 else "fail")


def test_reordered_rows_are_the_same_sample() -> None:
    registered = plan()
    rows = rows_of(registered, [4, None, 4, None])
    assert rate(Record(registered, rows=rows), 0.5) == rate(Record(registered, rows=rows[::-1]), 0.5)


@pytest.mark.parametrize(
    "record",
    [
        Record(plan()),
        Record(plan(task_ids=()), rows=()),
        Record(plan(scope=Scope.ONCE, cap=None), rows=rows_of(plan(), [4] * 4)),  # no cap applies
    ],
)
def test_no_sample_and_no_cap_are_inconclusive(record: Record) -> None:
    assert rate(record, 0.0).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("size", "limit", "minimum", "meets", "misses"),
    [
        (SampleSize(16, 3), 0.80, 39, True, True),
        (SampleSize(24, 3), 0.80, 58, True, True),
        (SampleSize(10, 5), 0.80, 40, True, True),
        (SampleSize(16, 3), 1.0, 48, True, True),
        (SampleSize(16, 3), 1.01, None, False, True),
        (SampleSize(16, 3), 0.0, 0, True, False),
        (SampleSize(1, 1), 0.5, 1, True, True),
        (SampleSize(0, 3), 0.5, None, False, True),
    ],
)
def test_reach(size: SampleSize, limit: float, minimum: int | None, meets: bool, misses: bool) -> None:
    reach = gate("natural_close").reach
    assert reach is not None
    (found,) = reach(size, min_natural_close_rate=limit)
    assert (found.minimum, found.of, found.meets, found.misses) == (minimum, size.rows, meets, misses)


def test_under_the_engines_own_budget_nobody_says_whose_close_it_was() -> None:
    registered = plan(thinking="engine_budget")
    record = Record(registered, rows=rows_of(registered, [4] * 4))
    assert judge("natural_close", record, min_natural_close_rate=0.5).outcome == "inconclusive"
