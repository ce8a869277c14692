"""Traces of every kind that the loop detector is to tell apart, drawn by a seeded generator."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from gatepost.audit.loops_numpy import MIX
from gatepost.audit.onset import Ids
from gatepost.periodicity import STUDY_A, LoopRule

REGISTERED = STUDY_A
"""Study A's detector."""

PUBLISHED_PERIODS = (
    5, 5, 5, 5, 5, 10, 10, 14, 20, 31, 84, 143, 234, 243, 299, 303, 307, 455, 498, 505, 510, 548, 564, 624, 663, 693,
    710, 771, 797, 992, 1066, 1089, 1195, 1264, 1291, 1437, 1663, 1909,
)  # fmt: skip
"""Of the 38 loops of study A's probe at 49 152 tokens."""

VOCABULARY = 151_936

Draw = Callable[[Generator, LoopRule], Ids]


def text(rng: Generator, tokens: int, *, exponent: float | None = None) -> Ids:
    """Ids as frequent as words are, by Zipf's law: a few of them make up most of the text."""
    ranks = rng.zipf(exponent or rng.uniform(1.3, 1.5), tokens) % VOCABULARY
    return rng.permutation(VOCABULARY)[ranks].astype(np.int32)


def loop(rng: Generator, tokens: int, *, period: int, before: int = 0, changed: float = 0.0) -> Ids:
    """Text, then copies of a pattern of text, each id of which is ``changed`` with that probability."""
    ids = np.resize(text(rng, period), tokens - before)
    odd = rng.random(len(ids)) < changed
    ids[odd] = rng.integers(0, VOCABULARY, int(odd.sum()))
    return np.concatenate((text(rng, before), ids))


def _tokens(rng: Generator, rule: LoopRule) -> int:
    return rule.tail_tokens + int(rng.integers(0, rule.tail_tokens))


def _period(rng: Generator, rule: LoopRule) -> int:
    """Any, the short ones as often as the long ones, now and then one beyond the limit."""
    longest = min(rule.max_period_tokens + 2, rule.tail_tokens)
    return int(np.exp(rng.uniform(0, np.log(longest)))) if rng.random() < 0.7 else int(rng.integers(1, longest))


def any_text(rng: Generator, rule: LoopRule) -> Ids:
    return text(rng, _tokens(rng, rule))


def exact_loop(rng: Generator, rule: LoopRule) -> Ids:
    tokens = _tokens(rng, rule)
    before = int(rng.integers(0, tokens - rule.tail_tokens + 1))
    return loop(rng, tokens, period=_period(rng, rule), before=before)


def noisy_loop(match_rate: float) -> Draw:
    """A changed id spoils two comparisons."""

    def draw(rng: Generator, rule: LoopRule) -> Ids:
        return loop(rng, _tokens(rng, rule), period=_period(rng, rule), changed=(1 - match_rate) / 2)

    return draw


def late_start(rng: Generator, rule: LoopRule) -> Ids:
    """A loop that began about as late in the tail as the rule allows."""
    late = int(rng.integers(0, 3 + int(2 * rule.tail_tokens * (1 - rule.min_match_rate))))
    before = int(rng.integers(0, 100))
    return loop(rng, before + rule.tail_tokens, period=_period(rng, rule), before=before + late)


def one_token_with_flips(rng: Generator, rule: LoopRule) -> Ids:
    flips = (1 - rule.min_match_rate) * rng.uniform(0, 1.2)
    return loop(rng, _tokens(rng, rule), period=1, changed=flips / 2)


def all_distinct(rng: Generator, rule: LoopRule) -> Ids:
    ids = np.arange(_tokens(rng, rule), dtype=np.int32) + np.int32(rng.integers(0, 1000))
    return ids if rng.random() < 0.5 else rng.permutation(ids)


def shorter_than_the_tail(rng: Generator, rule: LoopRule) -> Ids:
    return loop(rng, int(rng.integers(0, rule.tail_tokens)) or 1, period=1)


def few_ids(rng: Generator, rule: LoopRule) -> Ids:
    """Two or three ids in no order: each period matches often, and none holds."""
    return rng.choice(3, size=_tokens(rng, rule), p=(0.9, 0.08, 0.02)).astype(np.int32)


def at_the_budget(rng: Generator, rule: LoopRule) -> Ids:
    """A loop with as many odd ids as may differ, or one more, or less: anywhere, or all early or late in the tail."""
    ids = loop(rng, rule.tail_tokens, period=_period(rng, rule))
    allowed = int(rule.tail_tokens * (1 - rule.min_match_rate))
    odd = max(allowed // int(rng.integers(1, 3)) + int(rng.integers(-2, 3)), 0)
    low, high = [(0, 1.0), (0, 0.4), (0.6, 1.0)][int(rng.integers(0, 3))]
    where = rng.integers(int(low * len(ids)), int(high * len(ids)), odd)
    ids[where] = -1 - np.arange(odd, dtype=np.int32)
    return ids


def running_counter(rng: Generator, rule: LoopRule) -> Ids:
    """Lines that are alike but for the decimal digits of a number."""
    fixed, number, ids = rng.integers(100, VOCABULARY, int(rng.integers(3, 40))).tolist(), int(rng.integers(1, 999)), []
    while len(ids) < rule.tail_tokens:
        ids += [*fixed, *map(int, str(number))]
        number += 1
    return np.array(ids, np.int32)


def two_loops(rng: Generator, rule: LoopRule) -> Ids:
    """One loop after another, which began somewhere in the tail."""
    tokens = _tokens(rng, rule)
    second = loop(rng, int(rng.integers(1, tokens)), period=_period(rng, rule))
    return np.concatenate((loop(rng, tokens - len(second), period=_period(rng, rule)), second))


def blind_bits(rng: Generator, rule: LoopRule) -> Ids:
    """Ids that all have the one bit by which periods are discarded: none can be."""
    factor, fold, second_factor = MIX
    ids = np.arange(0, 4096, dtype=np.uint32)
    mixed = ids * factor
    mixed = (mixed ^ mixed >> fold) * second_factor
    alike = ids[mixed >> np.uint32(31) == 1].astype(np.int32)
    return alike[any_text(rng, rule) % len(alike)]


CLASSES: dict[str, Draw] = {
    "text": any_text,
    "exact loop": exact_loop,
    "noisy at 0.985": noisy_loop(0.985),
    "noisy at 0.99": noisy_loop(0.99),
    "noisy at 0.995": noisy_loop(0.995),
    "late start": late_start,
    "one token with flips": one_token_with_flips,
    "all distinct": all_distinct,
    "shorter than the tail": shorter_than_the_tail,
    "few ids": few_ids,
    "at the budget": at_the_budget,
    "running counter": running_counter,
    "two loops": two_loops,
    "blind bits": blind_bits,
}
