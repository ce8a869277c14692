"""Where a loop began: exact loops to the id, noisy ones by the best score, and certificates that anyone can check."""

from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatepost.audit import loops_numpy
from gatepost.audit.loops import LoopCertificate, LoopRule, certify, check_certificate
from gatepost.audit.onset import Ids, Stretch
from gatepost.periodicity import loop_certificate
from tests.audit.test_loops import array, on_every_path
from tests.audit.test_loops_against_naive import PATHS
from tests.audit.traces import PUBLISHED_PERIODS, REGISTERED, text

SMALL = LoopRule(tail_tokens=8, max_period_tokens=4, min_match_rate=0.99)


@on_every_path
@pytest.mark.parametrize(
    ("ids", "certificate"),
    [
        ([5, 6] * 8, (2, 0, 16, 1.0, 14)),
        ([1, 2, 3, *[5, 6] * 8], (2, 3, 19, 1.0, 14)),
        ([1, 2, 6, *[5, 6] * 8], (2, 2, 19, 1.0, 15)),  # the id before happens to fit
        ([1, 2, 3, *[5] * 9], (1, 3, 12, 1.0, 8)),
        ([9, 9, 9, 1, 2, 3, *[5] * 9], (1, 6, 15, 1.0, 8)),  # an earlier run of its own is not this loop
        ([1, 2, 3, 5, 6, 5, 6, 5, 6, 5], None),  # seven ids of it, in a tail of eight
        ([5, 6, 7, 8, 9] * 4, None),  # a period beyond the limit
        ([5, 6] * 3, None),  # shorter than the tail
        ([], None),
    ],
)
def test_the_loop_starts_at_its_first_copy(
    ids: list[int], certificate: tuple[float, ...] | None, compiled: bool
) -> None:
    assert certify(array(ids), SMALL, compiled=compiled) == certificate
    tail, max_period, min_match = SMALL
    without_end = loop_certificate(ids, tail=tail, max_period=max_period, min_match=min_match)
    assert without_end == (None if certificate is None else (*certificate[:2], *certificate[3:]))


@on_every_path
def test_one_odd_id_inside_does_not_end_the_loop(compiled: bool) -> None:
    ids = array([*range(100, 150), *[1, 2] * 200, 9, 2, *[1, 2] * 200])
    rule = LoopRule(400, 4, 0.99)
    assert certify(ids, rule, compiled=compiled) == (2, 50, 852, 798 / 800, 800)
    assert certify(ids, rule._replace(min_match_rate=1.0), compiled=compiled) == (2, 50, 852, 798 / 800, 800)


@on_every_path
@pytest.mark.parametrize("length", [1, 98, 99, 100, 101])
def test_two_odd_comparisons_are_worth_198_matches(length: int, compiled: bool) -> None:
    # The copies before the odd id are taken in as long as they outweigh it; those of a draw belong to the loop too.
    ids = array([*range(100, 150), *[1, 2] * length, 9, 2, *[1, 2] * 400])
    loop = certify(ids, LoopRule(400, 4, 0.99), compiled=compiled)
    assert loop is not None
    assert loop.start == (50 if 2 * length - 2 >= 198 else 50 + 2 * length + 1)


@on_every_path
def test_a_loop_that_stopped_just_before_the_end_ends_there(compiled: bool) -> None:
    ids = array([*range(100, 150), *[1, 2, 3] * 300, 7, 8, 9, 7])
    assert certify(ids, LoopRule(400, 4, 0.99), compiled=compiled) == (3, 50, 950, 1.0, 901)
    assert certify(ids, LoopRule(400, 4, 0.995), compiled=compiled) is None


@on_every_path
def test_an_earlier_loop_of_the_same_period_is_another(compiled: bool) -> None:
    ids = array([*[1, 2, 3] * 900, *range(100, 150), *[4, 5, 6] * 200])
    assert certify(ids, LoopRule(400, 4, 0.99), compiled=compiled) == (3, 2750, 3350, 1.0, 597)


@on_every_path
@pytest.mark.parametrize("period", sorted({*PUBLISHED_PERIODS}))
def test_an_exact_loop_begins_where_it_begins(period: int, compiled: bool) -> None:
    rng = np.random.default_rng(period)
    for before in (0, 1, 63, 64, 65, 5000, 49_152 - 8192):
        cycle = rng.permutation(period).astype(np.int32)
        start = np.concatenate((np.arange(10**6, 10**6 + before, dtype=np.int32), np.resize(cycle, 49_152 - before)))
        expected = (period, before, 49_152, 1.0, 49_152 - before - period)
        assert certify(start, REGISTERED, compiled=compiled) == expected


def paths() -> list[ModuleType]:
    return [loops_numpy, *(import_module("gatepost.audit.loops_compiled") for compiled in PATHS if compiled)]


def brute_force(ids: Ids, period: int, tail_start: int) -> Stretch:
    """Every stretch of the tail, then every start for the end of the best one."""
    odd = [0, *accumulate((ids[period:] != ids[:-period]).tolist())]

    def best(first: int, stops: Sequence[int]) -> Stretch:
        highest, found = 0, (0, 0, 0)
        for stop in stops:
            for start in range(first, stop):
                mismatches = odd[stop] - odd[start]
                score = stop - start - 100 * mismatches  # matches minus 99 times mismatches
                if score > highest:
                    highest, found = score, (start, stop, mismatches)
        return found

    _, stop, _ = best(tail_start, range(tail_start + 1, len(odd)))
    return best(0, [stop])


@on_every_path
@pytest.mark.parametrize("odd", [1, 9])
def test_the_loop_ends_in_the_tail_and_not_before(odd: int, compiled: bool) -> None:
    # Of 99 compared ids nine may differ: those at the head of the tail, behind a far longer run of the same id.
    ids = array([*[5] * 5001, *range(100, 100 + odd), *[105 + odd] * (100 - odd)])
    loop = certify(ids, LoopRule(100, 1, 0.9), compiled=compiled)
    assert loop is not None
    assert (loop.start, loop.end) == (0, len(ids))


@on_every_path
@pytest.mark.parametrize(
    ("tail", "certificate"),
    [
        ([5] * 50 + [6] * 50, (1, 1, 53, 1.0, 101)),  # 49 matches, and 49: the first to end
        ([5] * 49 + [9] + [6] * 50, (1, 53, 103, 1.0, 49)),  # 48, and 49
    ],
)
def test_the_best_stretch_is_one_within_the_tail(
    tail: list[int], certificate: tuple[float, ...], compiled: bool
) -> None:
    assert certify(array([1, 5, 5, *tail]), LoopRule(100, 1, 0.9), compiled=compiled) == certificate


@pytest.mark.parametrize(
    ("runs", "tail_start", "found"),
    [
        ([(500, True), (1, False)], 500, (0, 0, 0)),  # nothing in the tail matches
        ([(500, True), (1, False)], 499, (0, 500, 0)),
        ([(99, True), (1, False), (98, True), (1, False), (1, True)], 0, (0, 99, 0)),
        ([(1, True), (1, False), (98, True), (1, False), (99, True)], 0, (101, 200, 0)),
        ([(1, True), (1, False), (99, True), (1, False), (100, True)], 0, (2, 202, 1)),
        ([(1, True), (1, False), (99, True), (1, False), (99, True)], 0, (2, 101, 0)),  # the first to end
        ([(99, True), (1, False), (200, True)], 150, (0, 300, 1)),  # the first to start
        ([(98, True), (1, False), (200, True)], 150, (99, 299, 0)),
        ([(40, True), (1, False), (40, True)], 0, (0, 40, 0)),
        ([(40, True), (1, False), (40, True)], 39, (41, 81, 0)),
        ([(40, True), (1, False), (40, True)], 40, (41, 81, 0)),
        ([(99, True), (1, False), (40, True)], 100, (0, 140, 1)),
        ([(98, True), (1, False), (40, True)], 99, (99, 139, 0)),
        ([(90, True), (1, False), (63, True)], 0, (0, 90, 0)),
        ([(1, False)], 0, (0, 0, 0)),
        ([(1, True)], 0, (0, 1, 0)),
    ],
)
def test_the_best_stretch_by_hand(runs: list[tuple[int, bool]], tail_start: int, found: Stretch) -> None:
    ids = [0]
    for length, repeats in runs:
        for _ in range(length):
            ids.append(ids[-1] + (not repeats))
    assert {path.stretch(array(ids), 1, tail_start) for path in paths()} == {found}


LENGTHS = st.integers(1, 150) | st.sampled_from([63, 64, 65, 98, 99, 100, 197, 198, 199])


@settings(max_examples=300)
@given(
    st.lists(st.tuples(LENGTHS, st.booleans()), min_size=1, max_size=9),
    st.integers(1, 3),
    st.integers(0, 100),
)
def test_the_best_stretch_against_all_stretches(runs: list[tuple[int, bool]], period: int, tail_share: int) -> None:
    # A run repeats what is a period earlier, or has odd ids alone.
    ids = list(range(-period, 0))
    for length, repeats in runs:
        for _ in range(length if repeats else 1 + length // 60):
            ids.append(ids[-period] if repeats else 1000 + len(ids))
    trace, tail_start = array(ids), (len(ids) - period - 1) * tail_share // 100
    assert {path.stretch(trace, period, tail_start) for path in paths()} == {brute_force(trace, period, tail_start)}


TRACE = array([*range(100, 150), *[1, 2] * 200, 9, 2, *[1, 2] * 200])
CERTIFICATE = LoopCertificate(2, 50, 852, 798 / 800, 800)


@pytest.mark.parametrize(
    ("change", "borne_out"),
    [
        ({}, True),
        ({"start": 52, "match_rate": 796 / 798, "wasted_tokens": 798}, True),
        ({"end": 850, "match_rate": 796 / 798}, True),
        ({"start": 51}, False),
        ({"end": 851}, False),
        ({"period": 1}, False),
        ({"period": 4}, False),
        ({"match_rate": 1.0}, False),
        ({"match_rate": float("nan")}, False),
        ({"wasted_tokens": 799}, False),
        ({"end": 853}, False),  # beyond the trace
        ({"start": -1}, False),
        ({"period": 0}, False),
        ({"period": -2}, False),
        ({"start": 850, "wasted_tokens": 0}, False),  # compares nothing
        ({"start": 849, "match_rate": 1.0, "wasted_tokens": 1}, True),
    ],
)
def test_a_certificate_is_borne_out_or_not(change: dict[str, float], borne_out: bool) -> None:
    assert certify(TRACE, LoopRule(400, 4, 0.99)) == CERTIFICATE
    assert check_certificate(TRACE, CERTIFICATE._replace(**change)) is borne_out


def test_a_certificate_of_another_trace_is_not_borne_out() -> None:
    for index in (50, 51, 449, 851):
        other = TRACE.copy()
        other[index] = 7
        assert not check_certificate(other, CERTIFICATE)
    assert not check_certificate(TRACE[:-1], CERTIFICATE)
    assert not check_certificate(text(np.random.default_rng(1), len(TRACE)), CERTIFICATE)
