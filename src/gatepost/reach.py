"""Whether a registered sample could meet a threshold, and could miss it."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SampleSize:
    """The registered size of a sample: ``rows`` = ``tasks`` x ``samples_per_task``."""

    tasks: int
    samples_per_task: int

    @property
    def rows(self) -> int:
        """Registered samples: the denominator of every rate."""
        return self.tasks * self.samples_per_task


@dataclass(frozen=True)
class Reach:
    """Whether a threshold can be met and missed by a sample of the registered size.

    Attributes:
        name: of the threshold.
        minimum: the smallest count that meets it (or the largest, for a maximum); ``None`` if no count does.
        of: the largest count there can be.
        meets, misses: whether some sample passes, whether some sample fails.
    """

    name: str
    minimum: int | None
    of: int
    meets: bool
    misses: bool


@dataclass(frozen=True)
class RegisteredReach:
    """The reach of one threshold of one gate of one stage, for the registered sample."""

    stage: str
    gate: str
    size: SampleSize
    reach: Reach

    def __str__(self) -> str:
        counts = "no count" if self.reach.minimum is None else f"{self.reach.minimum} of {self.reach.of}"
        return f"{self.stage}: {self.gate}.{self.reach.name}: {counts} ({self.size.rows} samples)"


def minimum_count(name: str, of: int, passes: Callable[[int], bool]) -> Reach:
    """Reach of a minimum on one count in 0..``of``: with a count that passes, every larger one has to pass."""
    smallest = bisect_left(range(of + 1), True, key=passes)
    return Reach(name, smallest if smallest <= of else None, of, meets=smallest <= of, misses=smallest > 0)


def maximum_count(name: str, of: int, passes: Callable[[int], bool]) -> Reach:
    """Reach of a maximum on one count in 0..``of``: with a count that passes, every smaller one has to pass."""
    passing = bisect_left(range(of + 1), True, key=lambda count: not passes(count))
    return Reach(name, passing - 1 if passing else None, of, meets=passing > 0, misses=passing <= of)


def counts_in_band(of: int, low: float, high: float) -> range:
    """The counts whose share of ``of`` lies in [``low``, ``high``]; there are none of nothing."""
    if not of:
        return range(0)
    counts = range(of + 1)
    return range(
        bisect_left(counts, low, key=lambda count: count / of), bisect_right(counts, high, key=lambda count: count / of)
    )
