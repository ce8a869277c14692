"""Where a loop began and what it cost, over a whole trace, as a certificate that anyone can check in one pass."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]

MISMATCH_COST = 99
"""Matches that one mismatch outweighs: what a rate of 0.99 trades them at."""


class LoopCertificate(NamedTuple):
    """``ids[start:end]`` repeats: compare ``ids[start : end - period]`` with ``ids[start + period : end]``.

    Attributes:
        period: in ids.
        start: index of the first id of the first copy.
        end: index behind the last id that repeats one.
        match_rate: of the ``end - period - start`` ids that are compared.
        wasted_tokens: ids after the first copy, to the end of the trace: what was sampled once the loop ran.
    """

    period: int
    start: int
    end: int
    match_rate: float
    wasted_tokens: int


Stretch = tuple[int, int, int]
"""First compared position, the one behind the last, mismatches among them; 0, 0, 0 for none."""


def stretch(ids: Ids, period: int, tail_start: int) -> Stretch:
    """The stretch with the highest score: matches minus 99 times mismatches, above zero.

    It ends where the best one among the compared ids from ``tail_start`` on does, and starts where it scores best with
    that end over the whole trace. Of equal ones the first to end, the first to start.
    """
    same = ids[period:] == ids[:-period]
    score = np.zeros(len(same) + 1, np.int64)
    np.cumsum(np.where(same, 1, -MISMATCH_COST), out=score[1:])
    gain = score[tail_start:] - np.minimum.accumulate(score[tail_start:])
    if not gain.any():
        return 0, 0, 0
    stop = tail_start + int(gain.argmax())
    start = int(score[:stop].argmin())
    return start, stop, stop - start - int(np.count_nonzero(same[start:stop]))


def certify_period(
    ids: Ids, period: int, *, tail_tokens: int, find: Callable[[Ids, int, int], Stretch] = stretch
) -> LoopCertificate | None:
    """Certify a period of the tail, by its best ``stretch``; ``None`` if nothing in the tail matches.

    An exact loop begins where it begins, not an id off: each id before it that happens to fit is one of it.
    """
    start, stop, mismatches = find(ids, period, max(len(ids) - tail_tokens, 0))
    if stop == start:
        return None
    return LoopCertificate(
        period, start, stop + period, (stop - start - mismatches) / (stop - start), len(ids) - start - period
    )


def check_certificate(ids: Ids, certificate: LoopCertificate) -> bool:
    """Whether a trace bears a certificate out: bounds, match rate and cost, in one pass over the ids it names."""
    period, start, end, match_rate, wasted_tokens = certificate
    if not (period >= 1 and start >= 0 and start + period < end <= len(ids)):
        return False
    matches = int(np.count_nonzero(ids[start + period : end] == ids[start : end - period]))
    return match_rate == matches / (end - period - start) and wasted_tokens == len(ids) - start - period
