"""Exact and near-exact repetition in a sequence of ids. Pure counting; no answer without its search limit."""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class LoopRule(NamedTuple):
    """What is registered of a loop detector: the last ids searched, periods up to which, and how many have to match."""

    tail_tokens: int
    max_period_tokens: int
    min_match_rate: float


STUDY_A = LoopRule(tail_tokens=8192, max_period_tokens=2048, min_match_rate=0.99)
"""What study A registered for its termination gate."""


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

    @property
    def match_rate(self) -> float:
        """Of ``matches`` in ``compared``; 0 if nothing was compared."""
        return self.matches / self.compared if self.compared else 0.0

    def __str__(self) -> str:
        if self.tail is None:
            return f"none up to {self.max_period}: fewer ids than the tail"
        best = f"{self.tail - self.compared} at {self.match_rate:.4f}"
        return f"none up to {self.max_period}, nearest {best}" if self.period is None else best


def tail_period(ids: Sequence[int], *, tail: int, max_period: int, min_match: float) -> Period:
    """Search the last ``tail`` ids for a period in 1..``max_period``.

    Study A's rule: period p holds when at most ``floor((tail - p) * (1 - min_match) + 1e-12)`` positions differ
    from the one p earlier. Of the periods that hold, the one with the best match rate wins, the smallest first.
    """
    if len(ids) < tail:
        return Period(None, max_period, None, 0, 0)
    best: tuple[float, int, int, int] | None = None
    best_holding: tuple[float, int, int, int] | None = None
    for period, matches in _matches(ids[len(ids) - tail :], max_period):
        compared = tail - period
        candidate = (matches / compared, -period, matches, compared)
        best = max(best, candidate) if best else candidate
        if compared - matches <= math.floor(compared * (1 - min_match) + 1e-12):
            best_holding = max(best_holding, candidate) if best_holding else candidate
    _, negative, matches, compared = best_holding or best or (0.0, 0, 0, 0)
    return Period(tail, max_period, -negative if best_holding else None, matches, compared)


def _matches(window: Sequence[int], max_period: int) -> Iterator[tuple[int, int]]:
    """Period -> how many ids equal the one a period earlier.

    Each byte plane of the ids is one long integer, so that a shift and an exclusive or compare all positions at
    once: 2 048 periods of 8 192 ids take some 30 ms, and a loop over ids more than a second.
    """
    data, width, length = array("i", window).tobytes(), array("i").itemsize, len(window)
    planes = [int.from_bytes(data[offset::width], "little") for offset in range(width)]
    for period in range(1, min(max_period, length - 1) + 1):
        difference = 0
        for plane in planes:
            difference |= plane ^ plane >> 8 * period
        # Above the positions that have one a period later, the bytes compare with nothing.
        yield period, difference.to_bytes(length, "little").count(0, 0, length - period)


class LoopCertificate(NamedTuple):
    """Where a loop began, for anyone to check again: compare ``ids[start:]`` with itself ``period`` later.

    Attributes:
        start: index of the first id of the first copy.
        match_rate: of the ids from there to the end.
        wasted_tokens: ids after the first copy.
    """

    period: int
    start: int
    match_rate: float
    wasted_tokens: int


def loop_certificate(ids: Sequence[int], *, tail: int, max_period: int, min_match: float) -> LoopCertificate | None:
    """Certify the loop that the registered detector finds at the end of ``ids``; ``None`` if it finds none.

    The loop starts where the matches after it exceed by most what the registered rate asks for: a start further
    left takes in ids that do not repeat, one further right leaves out some that do.
    """
    period = tail_period(ids, tail=tail, max_period=max_period, min_match=min_match).period
    if period is None:
        return None
    matches, excess = 0, 0.0
    best_excess, start, matches_from_start = -math.inf, 0, 0
    for position in range(len(ids) - period - 1, -1, -1):
        same = ids[position] == ids[position + period]
        matches += same
        excess += same - min_match
        if excess >= best_excess:
            best_excess, start, matches_from_start = excess, position, matches
    repeated = len(ids) - period - start
    return LoopCertificate(period, start, matches_from_start / repeated, repeated)


def max_ngram_count(ids: Sequence[int], n: int = 3) -> int:
    """How often the commonest n-gram of ids occurs; 0 when there is none."""
    counts = Counter(zip(*(ids[offset:] for offset in range(n)), strict=False))
    return max(counts.values(), default=0)


def unique_ratio(ids: Sequence[int]) -> float | None:
    """Distinct ids over all ids; ``None`` for an empty sequence."""
    return len(set(ids)) / len(ids) if ids else None
