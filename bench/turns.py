"""Work done in turns with its alternative, round by round in one run, and what it was to reach."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pytest_benchmark.fixture import BenchmarkFixture

Work = Callable[[], object]
"""Does it once and returns the answer, which has to be that of the alternative."""


class Goal(NamedTuple):
    """How many times as fast as the baseline at least, or how many times its time at most."""

    factor: float
    of_its_time: bool = False

    def __str__(self) -> str:
        return f"at most {self.factor:g}x its time" if self.of_its_time else f"{self.factor:g}x"


class Measured(NamedTuple):
    """One row of the table. ``ratios`` are those of the rounds, in the goal's own direction."""

    work: str
    baseline: str
    goal: Goal
    baseline_seconds: float
    ratios: tuple[float, ...]

    @property
    def reached(self) -> bool:
        ratio = median(self.ratios)
        return ratio <= self.goal.factor if self.goal.of_its_time else ratio >= self.goal.factor

    def __str__(self) -> str:
        spread = "{}x ({} to {})".format(*map(_shown, (median(self.ratios), min(self.ratios), max(self.ratios))))
        shown = f"| {self.work} | {self.baseline} | {self.goal} | {spread} | {1000 * self.baseline_seconds:.3g} ms |"
        return shown if self.reached else f"{shown} below its goal"


TABLE: list[Measured] = []
"""What this run measured so far."""


def in_turns(
    benchmark: BenchmarkFixture,
    work: str,
    baseline: tuple[str, Work],
    candidates: Mapping[str, tuple[Work, Goal]],
    *,
    rounds: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Each round does the baseline's work, then every candidate's. Everybody's answers have to be the same ones.

    Work of one thread may be timed by ``time.process_time``: on a busy machine, work of a millisecond that waits for
    its turn once takes as long as all the rest.
    """
    label, do_baseline = baseline
    expected = do_baseline()
    for name, (do, _) in candidates.items():
        assert do() == expected, f"{work}: {name} answers otherwise than {label}"
    seconds: dict[str, list[float]] = {name: [] for name in (label, *candidates)}

    def round_of_all() -> None:
        for name, do in ((label, do_baseline), *((name, do) for name, (do, _) in candidates.items())):
            started = clock()
            do()
            seconds[name].append(clock() - started)

    benchmark.pedantic(round_of_all, rounds=rounds)
    for name, (_, goal) in candidates.items():
        pairs = list(zip(seconds[label], seconds[name], strict=True))
        ratios = tuple(other / base if goal.of_its_time else base / other for base, other in pairs)
        row = Measured(f"{name}, {work}", label, goal, median(seconds[label]), ratios)
        benchmark.extra_info[name] = str(row)
        TABLE.append(row)


def machine() -> str:
    """Processor, how many of them this process may use, and the interpreter."""
    models = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{models[0] if models else platform.processor()}, {cores} cores, Python {platform.python_version()}"


def _shown(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
