"""What the loop detector costs, beside what a researcher would write, in turns. Answers have to be the same ones.

Traces have 49 152 ids. The compiled paths are loaded before anything is timed; all times are those of the processor.
"""

import importlib.util
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench import naive
from bench.turns import Goal, Work, in_turns
from gatepost.audit.loops import certify, find_loop, max_ngram_count
from gatepost.audit.onset import Ids
from tests.audit.traces import PUBLISHED_PERIODS, REGISTERED, loop, text

TOKENS, TAIL = 49_152, REGISTERED.tail_tokens
NOISE = 0.0025
"""Share of changed ids: each spoils two comparisons, so that 0.995 match."""
NAIVE = "naive Python with early exit"

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra gatepost[compiled]")


def texts(rng: np.random.Generator) -> list[Ids]:
    """As many different ids, and as many ids that match by chance, as the thinking of study B has."""
    return [text(rng, TOKENS, exponent=1.3) for _ in range(10)]


def loops(periods: Sequence[int], rng: np.random.Generator, *, noisy: Sequence[int] = (0, 1)) -> list[Ids]:
    """Loops that began before the tail, of which those with an odd number, or as ``noisy`` says, have odd ids."""
    starts = rng.integers(0, TOKENS - TAIL, len(periods))
    noises = [noisy[number % len(noisy)] * NOISE for number in range(len(periods))]
    return [
        loop(rng, TOKENS, period=period, before=int(start), changed=noise)
        for period, start, noise in zip(periods, starts, noises, strict=True)
    ]


def long_loops(rng: np.random.Generator) -> list[Ids]:
    return loops([period for period in PUBLISHED_PERIODS if period >= 300], rng)


CLASSES: dict[str, Callable[[np.random.Generator], list[Ids]]] = {
    "mix of 38 loops and 10 texts": lambda rng: loops(PUBLISHED_PERIODS, rng) + texts(rng),
    "text": texts,
    "exact loops": lambda rng: loops(PUBLISHED_PERIODS, rng, noisy=(0,)),
    "noisy loops": lambda rng: loops(PUBLISHED_PERIODS, rng, noisy=(1,)),
    "loops of 300 and more": long_loops,
    "one token with flips": lambda rng: loops([1, 1], rng, noisy=(1,)),
    "loops below the rate": lambda rng: loops([5, 31, 1909], rng, noisy=(3,)),
    "loops that began late": lambda rng: [
        loop(rng, TOKENS, period=period, before=TOKENS - TAIL + late)
        for period in (5, 31, 299, 1909)
        for late in (60, 120, 4000)
    ],
    "all ids distinct": lambda rng: [
        np.arange(TOKENS, dtype=np.int32) if number % 2 else rng.permutation(TOKENS).astype(np.int32)
        for number in range(10)
    ],
}
NUMPY_GOALS = {"mix of 38 loops and 10 texts": 60, "text": 110}
COMPILED_GOALS = {"mix of 38 loops and 10 texts": 350}
EVERY_CLASS_COMPILED = 200


def by_naive(traces: Sequence[Ids]) -> Work:
    lists, (tail, max_period, min_match) = [ids.tolist() for ids in traces], REGISTERED
    return lambda: [naive.find_loop(ids, tail=tail, max_period=max_period, min_match=min_match) for ids in lists]


def by_gatepost(traces: Sequence[Ids], *, compiled: bool) -> Work:
    def work() -> list[tuple[int, float] | None]:
        found = [find_loop(ids, REGISTERED, compiled=compiled).period for ids in traces]
        return [None if one.period is None else (one.period, one.match_rate) for one in found]

    return work


@needs_numba
@pytest.mark.benchmark(group="loop detector")
@pytest.mark.parametrize("kind", CLASSES)
def test_detector(benchmark: BenchmarkFixture, kind: str) -> None:
    traces = CLASSES[kind](np.random.default_rng(len(kind)))
    candidates = {"detector, compiled": (True, COMPILED_GOALS.get(kind, EVERY_CLASS_COMPILED))}
    if kind in NUMPY_GOALS:
        candidates["detector, numpy only"] = (False, NUMPY_GOALS[kind])
    works = {
        name: (by_gatepost(traces, compiled=compiled), Goal(factor)) for name, (compiled, factor) in candidates.items()
    }
    in_turns(benchmark, kind, (NAIVE, by_naive(traces)), works, clock=time.process_time)


@needs_numba
@pytest.mark.benchmark(group="onset")
@pytest.mark.parametrize("kind", ["text", "loops of 300 and more"])
def test_onset(benchmark: BenchmarkFixture, kind: str) -> None:
    traces = CLASSES[kind](np.random.default_rng(len(kind)))

    def detect() -> list[int | None]:
        return [find_loop(ids, REGISTERED, compiled=True).period.period for ids in traces]

    def find_onset() -> list[int | None]:
        found = [certify(ids, REGISTERED, compiled=True) for ids in traces]
        return [None if one is None else one.period for one in found]

    goal = Goal(2.5, of_its_time=True)
    in_turns(
        benchmark,
        kind,
        ("detector, compiled", detect),
        {"onset over the whole trace": (find_onset, goal)},
        rounds=50,
        clock=time.process_time,
    )


@pytest.mark.benchmark(group="trigram reuse")
def test_trigram_reuse(benchmark: BenchmarkFixture) -> None:
    rng = np.random.default_rng(3)
    traces = texts(rng)[:5] + loops(PUBLISHED_PERIODS[::8], rng)
    lists = [ids.tolist() for ids in traces]
    baseline = ("naive Python", lambda: [naive.max_trigram_count(ids) for ids in lists])
    work = {"trigram reuse": (lambda: [max_ngram_count(ids) for ids in traces], Goal(6))}
    in_turns(benchmark, "10 traces", baseline, work, clock=time.process_time)
