"""The search for a period and for its onset, compiled: the answers of ``loops_numpy`` and ``onset``, by the same rules.

Importing this compiles, or loads what an earlier process compiled. Functions run without the interpreter's lock.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from gatepost.audit.loops_numpy import MIX, Found
from gatepost.audit.onset import MISMATCH_COST, Ids, Stretch

F = TypeVar("F", bound=Callable[..., Any])

types: Any = numba.types
IDS = types.Array(types.int32, 1, "C", readonly=True)
BUDGETS = types.Array(types.int64, 1, "C", readonly=True)
WORDS = types.Array(types.uint64, 1, "C")
FACTOR, FOLD, SECOND_FACTOR = (int(value) for value in MIX)
BLOCK_IDS = 64
"""Fewer than the matches that a mismatch outweighs."""


def compiled(signature: Any) -> Callable[[F], F]:
    """Compile ahead, and keep the result on disk where there is a place for it."""

    def decorate(function: F) -> F:
        try:
            return numba.njit(signature, cache=True, nogil=True)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # neither the package's folder nor the user's cache can be written
            return numba.njit(signature, nogil=True)(function)  # type: ignore[no-any-return]

    return decorate


@compiled(types.int64(IDS, IDS))
def _equal(one: Ids, other: Ids) -> int:
    """Positions at which two arrays of one length agree: 32-bit counting, which compiles to vectors."""
    count = np.int32(0)
    for index in range(len(one)):
        count = np.int32(count + np.int32(one[index] == other[index]))
    return int(count)


@compiled(types.uint64(types.uint64))
def _ones(word: np.uint64) -> np.uint64:
    """Bits set in a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled(WORDS(IDS))
def _packed_bits(ids: Ids) -> NDArray[np.uint64]:
    """A bit of each of the 64 ids from each one on, the first id's lowest; the last 63 words are short of ids."""
    packed = np.empty(len(ids), np.uint64)
    word = np.uint64(0)
    for index in range(len(ids) - 1, -1, -1):
        mixed = np.uint32(np.uint32(ids[index]) * np.uint32(FACTOR))
        mixed = np.uint32((mixed ^ (mixed >> np.uint32(FOLD))) * np.uint32(SECOND_FACTOR))
        word = (word << np.uint64(1)) | np.uint64(mixed >> np.uint32(31))
        packed[index] = word
    return packed


@compiled(types.Array(types.uint32, 1, "C")(IDS, types.int64, types.int64))
def _differing(window: Ids, screened: int, words: int) -> NDArray[np.uint32]:
    """How many bits of the last ``64 * words`` ids differ, by period from ``screened`` down to 1."""
    packed = _packed_bits(window[len(window) - 64 * words - screened :])
    differing = np.zeros(screened, np.uint32)
    for word in range(screened, screened + 64 * words, 64):
        earlier, last = packed[word - screened : word], packed[word]
        for index in range(screened):
            differing[index] += np.uint32(_ones(earlier[index] ^ last))
    return differing


@compiled(types.UniTuple(types.int64, 3)(IDS, BUDGETS, types.int64))
def search(window: Ids, budgets: NDArray[np.int64], words: int) -> Found:
    """``loops_numpy.search``."""
    tail, periods = len(window), len(budgets)
    screened = max(min(periods, tail - 64 * words), 0)
    differing = _differing(window, screened, words) if screened else np.zeros(0, np.uint32)
    best, best_matches, best_rate, smallest = 0, 0, 0.0, 0
    for period in range(1, periods + 1):
        budget = budgets[period - 1]
        if period <= screened and differing[screened - period] > budget:
            continue
        compared = tail - period
        matches = _equal(window[period:], window[:compared])
        if compared - matches <= budget:
            if not smallest:
                smallest = period
            if matches / compared > best_rate or not best:
                best, best_matches, best_rate = period, matches, matches / compared
            if matches == compared:
                break
    return best, best_matches, smallest


@compiled(types.UniTuple(types.int64, 2)(IDS, types.int64))
def nearest(window: Ids, max_period: int) -> tuple[int, int]:
    """``loops_numpy.nearest``."""
    best, best_matches, best_rate = 0, 0, 0.0
    for period in range(1, max_period + 1):
        compared = len(window) - period
        matches = _equal(window[period:], window[:compared])
        if matches / compared > best_rate or not best:
            best, best_matches, best_rate = period, matches, matches / compared
    return best, best_matches


@compiled(types.UniTuple(types.int64, 3)(IDS, types.int64, types.int64, types.int64))
def _stretch(ids: Ids, period: int, tail_start: int, mismatch_cost: int) -> Stretch:
    """Backwards: the best stretch within the tail, then from its start on until no start further left can catch up."""
    left, right = ids[: len(ids) - period], ids[period:]
    best, best_start, best_stop, best_mismatches = 1, len(left), len(left), 0
    for within_tail in (True, False):
        first, score = (tail_start, 0) if within_tail else (0, best)
        position, stop, mismatches = best_start, best_stop, best_mismatches
        while position > first and (max(score, 0) if within_tail else score) + position - first >= best:
            begin = max(position - BLOCK_IDS, first)
            matches = _equal(left[begin:position], right[begin:position])
            odd = position - begin - matches
            if not within_tail or score > odd * mismatch_cost:
                run = position - begin
                if odd:
                    run = 0
                    while score + matches >= best and left[position - 1 - run] == right[position - 1 - run]:
                        run += 1
                if score + run >= best:  # behind an odd id a block is too short to catch up
                    best, best_start, best_stop, best_mismatches = score + run, position - run, stop, mismatches
                score += matches - odd * mismatch_cost
                mismatches += odd
            else:
                for index in range(position - 1, begin - 1, -1):
                    if score <= 0:
                        score, stop, mismatches = 0, index + 1, 0
                    if left[index] != right[index]:
                        score -= mismatch_cost
                        mismatches += 1
                    else:
                        score += 1
                        if score >= best:
                            best, best_start, best_stop, best_mismatches = score, index, stop, mismatches
            position = begin
        if best_start == len(left):
            return 0, 0, 0
    return best_start, best_stop, best_mismatches


def stretch(ids: Ids, period: int, tail_start: int) -> Stretch:
    """``onset.stretch``."""
    return _stretch(ids, period, tail_start, MISMATCH_COST)  # a constant of another file: what is cached would keep it
