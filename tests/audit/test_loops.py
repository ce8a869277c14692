"""The detector for arrays at its boundaries, and what it cannot see: cases d1 and d4."""

import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from gatepost.audit.loops import TraceAudit, audit_trace, certify, find_loop, find_period, mismatch_budgets
from gatepost.audit.onset import Ids
from gatepost.errors import DataError
from gatepost.periodicity import LoopRule, Period
from tests.audit.test_loops_against_naive import PATHS
from tests.audit.traces import REGISTERED
from tests.unit.test_periodicity import tables_of_zeros


def array(ids: Sequence[int]) -> Ids:
    return np.array(ids, np.int32)


def counter_lines(count: int, *, one_digit: bool = False) -> list[int]:
    """Lines of 12 fixed ids, the decimal digits of a running number (ids 100 to 109, or 100 alone), and 4 fixed ids."""
    ids = []
    for number in range(1, count + 1):
        ids += [*range(200, 212), *(100 + (0 if one_digit else int(d)) for d in str(number)), *range(220, 224)]
    return ids


THINKING = array([*range(1000, 1100), *counter_lines(40)])
SAME_DIGITS = array([*range(1000, 1100), *counter_lines(40, one_digit=True)])
COUNTER = LoopRule(tail_tokens=400, max_period_tokens=64, min_match_rate=0.99)
TABLE = LoopRule(tail_tokens=256, max_period_tokens=64, min_match_rate=0.99)

on_every_path = pytest.mark.parametrize("compiled", PATHS, ids=lambda compiled: "compiled" if compiled else "numpy")


@on_every_path
def test_a_running_counter_is_near_a_loop_and_none(compiled: bool) -> None:
    audit = audit_trace(THINKING, COUNTER, compiled, nearest=True)
    assert len(THINKING) == audit.tokens == 811
    assert (audit.period, audit.smallest_period, audit.loop_start, audit.wasted_tokens) == (None, None, None, None)
    assert (audit.nearest_period, audit.nearest_match_rate) == (18, 358 / 382)
    assert Fraction(358, 382) == Fraction(179, 191)
    assert find_period(THINKING, COUNTER, compiled=compiled) == Period(400, 64, None, 358, 382)
    assert find_loop(THINKING, COUNTER, compiled=compiled).period == Period(400, 64, None, 0, 0)


@on_every_path
def test_a_running_counter_is_a_loop_once_its_digits_are_one(compiled: bool) -> None:
    audit = audit_trace(SAME_DIGITS, COUNTER, compiled)
    assert (audit.period, audit.match_rate) == (18, 1.0)
    # The last line of 17 ids ends as a line of 18 does: in a digit and four fixed ids.
    assert (audit.loop_start, audit.loop_end, audit.wasted_tokens) == (100 + 9 * 17 - 5, 811, 811 - 18 - 248)


@on_every_path
@tables_of_zeros
def test_a_table_of_zeros_is_as_periodic_as_a_token_for_ever(
    ids: list[int], period: int | None, matches: int, compared: int, compiled: bool
) -> None:
    found = find_period(array(ids), TABLE, compiled=compiled)
    assert (found.period, found.matches, found.compared) == (period, matches, compared)


@on_every_path
def test_the_best_period_may_be_a_multiple_of_the_smallest(compiled: bool) -> None:
    # Ids 40 and 46 are odd: one apart from a copy two periods later each at period 6, both at each other at none.
    ids = np.resize(array([1, 2, 3]), 400)
    ids[[40, 46]] = 9
    found = find_loop(ids, LoopRule(400, 20, 0.985), compiled=compiled)
    assert (found.period.period, found.period.matches, found.smallest_period) == (6, 392, 3)
    assert found.period.match_rate > 393 / 397


@on_every_path
@pytest.mark.parametrize(("late", "holds"), [(0, True), (1, True), (3, True), (4, False), (5, False)])
def test_a_loop_must_have_run_nearly_the_whole_tail(late: int, holds: bool, compiled: bool) -> None:
    # Of 395 compared ids three may differ; those before the loop all do.
    ids = array([*range(1000, 1000 + 100 + late), *np.resize([1, 2, 3, 4, 5], 400 - late)])
    assert (find_loop(ids, COUNTER, compiled=compiled).period.period == 5) is holds


@on_every_path
@pytest.mark.parametrize(("length", "tail"), [(0, None), (399, None), (400, 400), (401, 400)])
def test_a_trace_shorter_than_the_tail_is_not_searched(length: int, tail: int | None, compiled: bool) -> None:
    found = find_loop(np.zeros(length, np.int32), COUNTER, compiled=compiled)
    assert (found.period.tail, found.smallest_period) == (tail, 1 if tail else None)
    assert found.period.max_period == COUNTER.max_period_tokens


@on_every_path
@pytest.mark.parametrize(("tail", "max_period"), [(1, 1), (1, 9), (2, 1), (2, 9), (3, 3)])
def test_the_smallest_tails(tail: int, max_period: int, compiled: bool) -> None:
    found = find_period(np.zeros(5, np.int32), LoopRule(tail, max_period, 1.0), compiled=compiled)
    assert found == (Period(tail, max_period, 1, tail - 1, tail - 1) if tail > 1 else Period(1, max_period, None, 0, 0))


@on_every_path
@pytest.mark.parametrize("ids", [[2**31 - 1, 0], [-(2**31), 1], [-1, 255], [0, 2**24], [256, 65_536]])
def test_every_bit_of_an_id_counts(ids: list[int], compiled: bool) -> None:
    rule = LoopRule(300, 9, 1.0)
    assert find_loop(array(ids * 150), rule, compiled=compiled).smallest_period == 2
    for bit in range(32):
        odd = array(ids * 150)
        odd[7] ^= np.int32(-(2**31) if bit == 31 else 2**bit)
        assert find_loop(odd, rule, compiled=compiled).smallest_period is None, bit


@on_every_path
def test_views_and_read_only_arrays_are_read_as_they_are(compiled: bool) -> None:
    every_second = np.repeat(array([1, 2, 3] * 200), 2)[::2]
    assert not every_second.flags.c_contiguous
    frozen = array([1, 2, 3] * 200)
    frozen.flags.writeable = False
    expected = audit_trace(array([1, 2, 3] * 200), COUNTER, compiled)
    assert audit_trace(every_second, COUNTER, compiled) == audit_trace(frozen, COUNTER, compiled) == expected
    assert expected.period == 3


def test_a_budget_that_comes_out_just_below_a_whole_number_is_that_number() -> None:
    assert 10 * (1 - 0.9) < 1
    assert mismatch_budgets(LoopRule(11, 3, 0.9)).tolist() == [1, 0, 0]
    assert mismatch_budgets(REGISTERED)[[0, 91, 92, 2047]].tolist() == [81, 81, 80, 61]


def test_an_audit_of_no_ids() -> None:
    audit = audit_trace(array([]), COUNTER, nearest=True)
    assert audit == TraceAudit(0, *[None] * 9, max_trigram_count=0)


def test_an_audit_holds_plain_numbers() -> None:
    for ids in (SAME_DIGITS, THINKING):
        kinds = {type(value) for value in audit_trace(ids, COUNTER, nearest=True)}
        assert kinds == {int, float, type(None)}


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([1, 2, 3], "list"),
        (np.zeros(3, np.int64), "1-D array of int64"),
        (np.zeros(3, np.uint32), "1-D array of uint32"),
        (np.zeros(3, np.float32), "1-D array of float32"),
        (np.zeros(3, bool), "1-D array of bool"),
        (np.zeros((3, 1), np.int32), "2-D array of int32"),
        (np.zeros((), np.int32), "0-D array of int32"),
        (np.zeros(3, ">i4"), "1-D array of >i4"),
    ],
)
def test_what_is_no_array_of_ids_is_refused(ids: Ids, found: str) -> None:
    for call in (find_loop, find_period, certify, audit_trace):
        with pytest.raises(DataError, match=rf"^token ids: found {found}, expected a 1-D array of int32$"):
            call(ids, COUNTER)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (LoopRule(0, 4, 0.99), "tail_tokens is 0"),
        (LoopRule(-8, 4, 0.99), "tail_tokens is -8"),
        (LoopRule(8.0, 4, 0.99), r"tail_tokens is 8\.0"),  # type: ignore[arg-type]
        (LoopRule(True, 4, 0.99), "tail_tokens is True"),
        (LoopRule(8, 0, 0.99), "max_period_tokens is 0"),
        (LoopRule(8, 4, 0.0), r"min_match_rate is 0\.0"),
        (LoopRule(8, 4, 1.0001), r"min_match_rate is 1\.0001"),
        (LoopRule(8, 4, float("nan")), "min_match_rate is nan"),
        (LoopRule(8, 4, "0.99"), "min_match_rate is '0.99'"),  # type: ignore[arg-type]
        (LoopRule(8, 4, True), "min_match_rate is True"),
    ],
)
def test_a_rule_out_of_range_is_refused(rule: LoopRule, field: str) -> None:
    for ids in (array([]), array([1] * 9)):
        with pytest.raises(DataError, match=rf"^loop rule: {field}, expected a "):
            find_loop(ids, rule)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
from gatepost.audit.loops import LoopRule, audit_trace
from gatepost.errors import MissingExtraError
ids, rule = np.zeros(9, np.int32), LoopRule(8, 4, 0.99)
print(audit_trace(ids, rule).period)
try:
    audit_trace(ids, rule, compiled=True)
except MissingExtraError as error:
    print(error)
"""


def test_without_the_extra_the_compiled_path_says_how_to_get_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "1",
        "the compiled loop detector needs numba, which is not installed: pip install 'gatepost[compiled]'",
    ]
