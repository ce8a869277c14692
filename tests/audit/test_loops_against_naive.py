"""The fast detectors beside the naive triple loop: the same verdict, period and rate, on traces of every kind.

Some three thousand of them, in a dozen seconds; with ``GATEPOST_FAULTS=all`` 100 800, and 686 of full size.
"""

import importlib.util
import os

import numpy as np
import pytest

from bench import naive
from gatepost import periodicity
from gatepost.audit.loops import (
    LoopFound,
    LoopRule,
    certify,
    check_certificate,
    find_loop,
    find_period,
    mismatch_budgets,
)
from gatepost.audit.loops_numpy import screen_words, surviving_periods
from gatepost.audit.onset import Ids
from tests.audit.traces import CLASSES, REGISTERED, text

EVERY = os.environ.get("GATEPOST_FAULTS") == "all"
PATHS = [False] if importlib.util.find_spec("numba") is None else [False, True]
PARTS = 8
SMALL, LARGE = (900, 6) if EVERY else (24, 0)
"""Traces of a kind in each part: under rules of a few hundred ids, and under the registered one."""

RATES = (0.9, 0.985, 0.99, 0.995, 1.0)


def small_rule(rng: np.random.Generator) -> LoopRule:
    """Tails with and without room for the screen, limits below and beyond them."""
    tail = int(rng.choice([2, 40, 100, 250, 400]) + rng.integers(0, 60))
    return LoopRule(tail, int(rng.integers(1, min(tail + 5, 130))), float(rng.choice(RATES)))


def agree(ids: Ids, rule: LoopRule) -> None:
    """Every path against the naive loop, field by field against the reference, and its certificate."""
    tail, max_period, min_match = rule
    expected = naive.find_loop(ids.tolist(), tail=tail, max_period=max_period, min_match=min_match)
    reference = periodicity.tail_period(ids.tolist(), tail=tail, max_period=max_period, min_match=min_match)
    answers = set[LoopFound]()
    for compiled in PATHS:
        found = find_loop(ids, rule, compiled=compiled)
        answers.add(found)
        period = found.period
        assert (None if period.period is None else (period.period, period.match_rate)) == expected
        assert find_period(ids, rule, compiled=compiled) == reference
        loop = certify(ids, rule, compiled=compiled)
        assert (loop is None) is (expected is None)
        assert loop is None or (loop.period == period.period and check_certificate(ids, loop))
        assert loop == certify(ids, rule, compiled=PATHS[0])
    assert len(answers) == 1


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", CLASSES)
def test_the_same_answer(kind: str, part: int) -> None:
    rng = np.random.default_rng([part, *kind.encode()])
    for _ in range(SMALL):
        rule = small_rule(rng)
        agree(CLASSES[kind](rng, rule), rule)
    for _ in range(LARGE):
        agree(CLASSES[kind](rng, REGISTERED), REGISTERED)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_same_answer_under_the_registered_rule(kind: str) -> None:
    rng = np.random.default_rng([*b"registered", *kind.encode()])
    agree(CLASSES[kind](rng, REGISTERED), REGISTERED)


@pytest.mark.parametrize(("exponent", "share"), [(1.3, 0.001), (1.4, 0.02)])
def test_the_screen_discards_nearly_all_periods_of_a_text(exponent: float, share: float) -> None:
    rng, budgets = np.random.default_rng(5), mismatch_budgets(REGISTERED)
    traces = [text(rng, REGISTERED.tail_tokens, exponent=exponent) for _ in range(20)]
    surviving = [len(surviving_periods(ids, budgets, screen_words(81))) for ids in traces]
    assert np.mean(surviving) <= share * len(budgets)
