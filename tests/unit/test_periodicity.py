"""Cases d1 and d4: nearly a loop is not a loop, and the detector's answer always carries its search limit."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.periodicity import Period, max_ngram_count, tail_period, unique_ratio


def counter_lines(count: int) -> list[int]:
    """Lines of 12 fixed ids, the decimal digits of a running number (ids 100 to 109), and 4 fixed ids."""
    ids = []
    for number in range(1, count + 1):
        ids += [*range(200, 212), *(100 + int(digit) for digit in str(number)), *range(220, 224)]
    return ids


THINKING = [*range(1000, 1100), *counter_lines(40)]


def test_a_running_counter_is_not_an_exact_loop() -> None:
    assert len(THINKING) == 811
    found = tail_period(THINKING, tail=400, max_period=64, min_match=0.99)
    assert found == Period(400, 64, None, 358, 382)
    assert Fraction(found.matches, found.compared) == Fraction(179, 191)


def test_the_same_lines_are_a_loop_once_their_digits_are_one() -> None:
    one_digit = [100 if 100 <= token < 110 else token for token in THINKING]
    assert tail_period(one_digit, tail=400, max_period=64, min_match=0.99) == Period(400, 64, 18, 382, 382)
    collapsed = [one_digit[0], *(b for a, b in pairwise(one_digit) if (a, b) != (100, 100))]
    assert tail_period(collapsed, tail=400, max_period=64, min_match=1.0) == Period(400, 64, 17, 383, 383)


GRID = ([48, 44] * 15 + [48, 10]) * 16


tables_of_zeros = pytest.mark.parametrize(
    ("ids", "period", "matches", "compared"),
    [
        ([0] * 300, 1, 255, 255),  # one token for ever
        ([*GRID, 60, 61], 32, 222, 224),  # a finished table, on which nobody should run this
        (GRID, 32, 224, 224),
        ([70, 71] + [45] * 16, None, 0, 0),  # a run of separators, shorter than the tail
    ],
    ids=["one_token", "finished_grid", "grid_cut_at_limit", "separator_run"],
)


@tables_of_zeros
def test_a_table_of_zeros_is_as_periodic_as_a_token_for_ever(
    ids: list[int], period: int | None, matches: int, compared: int
) -> None:
    found = tail_period(ids, tail=256, max_period=64, min_match=0.99)
    assert (found.period, found.matches, found.compared) == (period, matches, compared)


def test_a_shorter_period_below_the_rate_does_not_hold() -> None:
    window = GRID[-256:]
    assert Fraction(sum(map(int.__eq__, window[2:], window[:-2])), 254) == Fraction(239, 254)
    assert tail_period(GRID, tail=256, max_period=31, min_match=0.99).period is None
    assert tail_period(GRID, tail=256, max_period=31, min_match=0.94).period == 2


@pytest.mark.parametrize(("length", "searched"), [(255, None), (256, 256), (257, 256)])
def test_a_sequence_shorter_than_the_tail_was_not_searched(length: int, searched: int | None) -> None:
    found = tail_period([0] * length, tail=256, max_period=8, min_match=1.0)
    assert (found.tail, found.max_period) == (searched, 8)
    assert (found.period is None) is (searched is None)


@pytest.mark.parametrize(("changes", "period"), [(0, 1), (1, 1), (2, 1), (3, None)])
def test_the_mismatch_rule_rounds_down(changes: int, period: int | None) -> None:
    # Of 299 comparisons at period 1, floor(2.99) may differ; each new id at the end costs one.
    ids = [0] * (300 - changes) + list(range(1, 1 + changes))
    found = tail_period(ids, tail=300, max_period=1, min_match=0.99)
    assert (found.period, found.matches, found.compared) == (period, 299 - changes, 299)


@pytest.mark.parametrize(("min_match", "period"), [(1.0, 2), (1.0001, None), (2.0, None)])
def test_a_rate_beyond_one_holds_for_nothing(min_match: float, period: int | None) -> None:
    assert tail_period([1, 2] * 8, tail=16, max_period=4, min_match=min_match).period == period


def brute_force(ids: Sequence[int], tail: int, max_period: int, min_match: float) -> tuple[int | None, int, int]:
    if len(ids) < tail:
        return None, 0, 0
    window = list(ids)[-tail:] if tail else []
    best: dict[bool, tuple[Fraction, int, int, int]] = {}
    for period in range(1, tail):
        if period > max_period:
            break
        pairs = [(window[i], window[i - period]) for i in range(period, tail)]
        wrong = sum(a != b for a, b in pairs)
        holds = wrong <= floor(len(pairs) * (1 - min_match) + 1e-12)
        rate = Fraction(len(pairs) - wrong, len(pairs))
        if holds not in best or rate > best[holds][0]:
            best[holds] = (rate, period, len(pairs) - wrong, len(pairs))
    if True in best:
        return best[True][1:]
    return (None, *best[False][2:]) if best else (None, 0, 0)


@given(
    st.lists(st.integers(0, 2), max_size=40)
    | st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 12)).map(lambda p: p[0] * p[1]),
    st.integers(1, 40),
    st.integers(1, 45),
    st.sampled_from([0.0, 0.5, 0.8, 0.9, 0.99, 1.0]),
)
def test_against_brute_force(ids: list[int], tail: int, max_period: int, min_match: float) -> None:
    found = tail_period(ids, tail=tail, max_period=max_period, min_match=min_match)
    assert (found.period, found.matches, found.compared) == brute_force(ids, tail, max_period, min_match)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(0, 4))
def test_a_true_period_is_found_and_no_larger_one_is_preferred(cycle: list[int], before: int) -> None:
    ids = [9] * before + cycle * 8
    found = tail_period(ids, tail=len(cycle) * 8, max_period=32, min_match=1.0)
    assert found.period is not None
    assert len(cycle) % found.period == 0


NGRAMS = [
    ([], 3, 0),
    ([1, 2], 3, 0),
    ([1, 2, 3], 3, 1),
    ([1, 2, 1, 2, 1, 2, 1], 3, 3),
    ([5, 5, 5, 5], 2, 3),
    ([1, 2, 1], 1, 2),
]


@pytest.mark.parametrize(("ids", "n", "count"), NGRAMS)
def test_max_ngram_count(ids: list[int], n: int, count: int) -> None:
    assert max_ngram_count(ids, n) == count
    if n == 3:
        assert max_ngram_count(ids) == count


@pytest.mark.parametrize(("ids", "ratio"), [([], None), ([1], 1.0), ([1, 1, 1, 1], 0.25), ([1, 2, 1, 2], 0.5)])
def test_unique_ratio(ids: list[int], ratio: float | None) -> None:
    assert unique_ratio(ids) == ratio
