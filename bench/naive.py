"""What a researcher would write: the registered rule as a triple loop over lists, trigrams counted in a dictionary."""

import math
from collections.abc import Sequence


def find_loop(ids: Sequence[int], *, tail: int, max_period: int, min_match: float) -> tuple[int, float] | None:
    """The best period and its match rate, smallest first; a period is left as soon as too many ids differ."""
    if len(ids) < tail:
        return None
    window, best = ids[len(ids) - tail :], None
    for period in range(1, min(max_period, tail - 1) + 1):
        compared = tail - period
        budget = math.floor(compared * (1 - min_match) + 1e-12)
        wrong = 0
        for index in range(period, tail):
            if window[index] != window[index - period]:
                wrong += 1
                if wrong > budget:
                    break
        else:
            rate = (compared - wrong) / compared
            if best is None or rate > best[1]:
                best = period, rate
    return best


def max_trigram_count(ids: Sequence[int]) -> int:
    """How often the commonest trigram occurs."""
    counts: dict[tuple[int, int, int], int] = {}
    for index in range(len(ids) - 2):
        trigram = (ids[index], ids[index + 1], ids[index + 2])
        counts[trigram] = counts.get(trigram, 0) + 1
    return max(counts.values(), default=0)
