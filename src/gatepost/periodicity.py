"""Exact and near-exact repetition in a sequence of ids. Pure counting; no answer without its search limit."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Period:
    """The best period found in a tail.

    Attributes:
        tail: how many ids were searched; ``None`` if the sequence is shorter than the registered tail.
        max_period: the search limit; "none" means none up to this.
        period: the best period that reaches the registered match rate, smallest first; ``None`` if none does.
        matches, compared: ids equal to the one a period earlier, out of how many, at that period, or at the best
            period below the rate.
    """

    tail: int | None
    max_period: int
    period: int | None
    matches: int
    compared: int


def tail_period(ids: Sequence[int], *, tail: int, max_period: int, min_match: float) -> Period:
    """Search the last ``tail`` ids for a period in 1..``max_period``.

    Study A's rule: period p holds when at most ``floor((tail - p) * (1 - min_match) + 1e-12)`` positions differ
    from the one p earlier. Of the periods that hold, the one with the best match rate wins, the smallest first.
    """
    if len(ids) < tail:
        return Period(None, max_period, None, 0, 0)
    window = ids[len(ids) - tail :]
    best: tuple[float, int, int, int] | None = None
    best_holding: tuple[float, int, int, int] | None = None
    for period in range(1, min(max_period, tail - 1) + 1):
        compared = tail - period
        matches = sum(map(int.__eq__, window[period:], window[:compared]))
        candidate = (matches / compared, -period, matches, compared)
        best = max(best, candidate) if best else candidate
        if compared - matches <= math.floor(compared * (1 - min_match) + 1e-12):
            best_holding = max(best_holding, candidate) if best_holding else candidate
    _, negative, matches, compared = best_holding or best or (0.0, 0, 0, 0)
    return Period(tail, max_period, -negative if best_holding else None, matches, compared)


def max_ngram_count(ids: Sequence[int], n: int = 3) -> int:
    """How often the commonest n-gram of ids occurs; 0 when there is none."""
    counts = Counter(zip(*(ids[offset:] for offset in range(n)), strict=False))
    return max(counts.values(), default=0)


def unique_ratio(ids: Sequence[int]) -> float | None:
    """Distinct ids over all ids; ``None`` for an empty sequence."""
    return len(set(ids)) / len(ids) if ids else None
