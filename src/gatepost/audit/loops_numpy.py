"""The search for a period with numpy alone: one bit per id discards nearly all periods, the rest are counted."""

import numpy as np
from numpy.typing import NDArray

from gatepost.audit.onset import Ids, stretch

__all__ = ["nearest", "search", "stretch"]

Found = tuple[int, int, int]
"""Best period that holds, its matches, smallest period that holds; 0 for none."""

MIX = np.uint32(0x9E3779B1), np.uint32(15), np.uint32(0x85EBCA77)
"""Multiply, fold, multiply, take the top bit: without the fold, counting ids would agree at Fibonacci distances."""


def search(window: Ids, budgets: NDArray[np.int64], words: int) -> Found:
    """The best period of a window, and the smallest. ``budgets[p - 1]`` ids may differ at period p.

    Any number of ``words`` gives the same answer; ``screen_words`` says how many give it soon.
    """
    tail, smallest = len(window), 0
    best = (0.0, 0, 0)
    for period in surviving_periods(window, budgets, words).tolist():
        matches, compared = count_matches(window, period), tail - period
        if compared - matches <= budgets[period - 1]:
            smallest = smallest or period
            if matches / compared > best[0] or not best[1]:
                best = (matches / compared, period, matches)
            if matches == compared:
                break  # nothing matches better, and what follows is longer
    return best[1], best[2], smallest


def nearest(window: Ids, max_period: int) -> tuple[int, int]:
    """The period with the best match rate, smallest first, whether or not it holds, and its matches; 0 for none."""
    best = (0.0, 0, 0)
    for period in range(1, max_period + 1):
        matches = count_matches(window, period)
        if matches / (len(window) - period) > best[0] or not best[1]:
            best = (matches / (len(window) - period), period, matches)
    return best[1], best[2]


def count_matches(window: Ids, period: int) -> int:
    """Ids of a window that equal the one a period earlier."""
    return int(np.count_nonzero(window[period:] == window[:-period]))


def surviving_periods(window: Ids, budgets: NDArray[np.int64], words: int) -> NDArray[np.int64]:
    """Periods that may hold, ascending: all that do, and few that do not.

    Equal ids have equal bits. So where the bits of two ids differ the ids do, and a period whose bits differ more often
    among the last ``64 * words`` ids than ids may differ in all is none.
    """
    screened = min(len(budgets), len(window) - 64 * words)
    if screened <= 0:
        return np.arange(1, len(budgets) + 1)
    packed = _packed_bits(window[len(window) - 64 * words - screened :])
    # Row by row a word of ids a period earlier, of every period from the longest to the shortest.
    earlier = np.ndarray((words, screened), np.uint64, packed, 0, (64 * packed.itemsize, packed.itemsize))
    last = packed[screened : screened + 64 * words : 64]
    differing = np.bitwise_count(earlier ^ last[:, None]).sum(axis=0, dtype=np.uint32)
    kept: NDArray[np.int64] = (differing[::-1] <= budgets[:screened]).nonzero()[0] + 1
    return kept if screened == len(budgets) else np.append(kept, np.arange(screened + 1, len(budgets) + 1))


def screen_words(budget: int) -> int:
    """Words of 64 ids to look at: half of all differing ids show, which has to be more than the budget, by far."""
    return -(-(2 * budget + 10 * int(budget**0.5) + 32) // 64)


def _packed_bits(ids: Ids) -> NDArray[np.uint64]:
    """The bits of the 64 ids from each one on, the first id's lowest; behind the ids there are zeros."""
    factor, fold, second_factor = MIX
    mixed = ids.view(np.uint32) * factor
    mixed ^= mixed >> fold
    mixed *= second_factor
    bits = np.zeros(len(ids) + 8, np.bool_)
    np.less(mixed.view(np.int32), 0, out=bits[:-8])
    # Octets from the first bit on, from the second, … from the eighth: a word from bit 8q + r on is eight of row r.
    rows = np.packbits(np.ndarray((8, len(ids)), np.bool_, bits, 0, (1, 1)), axis=1, bitorder="little")
    octets = rows.shape[1]
    return np.ndarray((octets - 7, 8), np.uint64, rows, 0, (1, octets)).ravel()
