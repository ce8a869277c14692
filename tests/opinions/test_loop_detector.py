"""The registered loop detector beside three nested loops that read like the rule."""

import random
from collections import Counter
from fractions import Fraction
from math import floor

from gatepost.periodicity import Period, tail_period
from tests.every import EVERY

TRACES = 100_000 if EVERY else 4_000
RATES = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


def naive(ids: list[int], tail: int, max_period: int, min_match: float) -> Period:
    """Study A's rule, one comparison at a time: best match rate first, then the smallest period."""
    if len(ids) < tail:
        return Period(None, max_period, None, 0, 0)
    window = ids[len(ids) - tail :]
    holding: tuple[Fraction, int, int] | None = None
    nearest: tuple[Fraction, int, int] | None = None
    for period in range(1, max_period + 1):
        compared = matches = 0
        for position in range(tail):
            if position >= period:
                compared += 1
                matches += window[position] == window[position - period]
        if not compared:
            break
        found = (Fraction(matches, compared), period, matches)
        if nearest is None or found[0] > nearest[0]:
            nearest = found
        may_differ = floor(compared * (1 - min_match) + 1e-12)
        if compared - matches <= may_differ and (holding is None or found[0] > holding[0]):
            holding = found
    best = holding or nearest
    if best is None:
        return Period(tail, max_period, None, 0, 0)
    return Period(tail, max_period, best[1] if holding else None, best[2], tail - best[1])


def trace(source: random.Random) -> tuple[list[int], int, int, float]:
    """A trace that may loop, nearly loops, or does not, with a tail and a search limit around its period."""
    alphabet = source.choice([2, 3, 8, 256, 2**31])
    tail, min_match = source.randrange(1, 72), source.choice(RATES)
    period = source.randrange(1, tail + 2)
    cycle = [source.randrange(alphabet) for _ in range(period)]
    ids = [source.randrange(alphabet) for _ in range(source.choice([0, 0, 1, 9, 40]))]
    ids += (cycle * (tail // period + 2))[: source.choice([tail, tail, tail + 1, tail - 1, tail + period])]
    budget = floor((tail - period) * (1 - min_match) + 1e-12)  # ids that may differ; each costs one comparison or two
    for _ in range(source.choice([0, 0, 1, budget // 2, budget, budget + 1])):
        if ids:
            ids[-source.randrange(1, min(len(ids), tail) + 1)] = source.randrange(alphabet)
    return ids, tail, source.choice([period - 1, period, period + 1, 2 * period, tail - 1, tail, 200]), min_match


def test_the_detector_agrees_with_nested_loops() -> None:
    source, seen = random.Random(811), Counter[str]()
    for _ in range(TRACES):
        ids, tail, max_period, min_match = trace(source)
        found = tail_period(ids, tail=tail, max_period=max_period, min_match=min_match)
        assert found == naive(ids, tail, max_period, min_match), (ids, tail, max_period, min_match)
        exact = found.matches == found.compared
        kind = "exact" if exact else "near"
        seen["too short" if found.tail is None else kind if found.period else "none"] += 1
    print(dict(seen))
    assert min(seen[kind] for kind in ("too short", "exact", "near", "none")) > TRACES / 50
