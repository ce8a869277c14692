"""Whether a threshold can be met and missed, on both sides of the least and the most."""

import pytest

from gatepost.reach import Reach, RegisteredReach, SampleSize, counts_in_band, maximum_count, minimum_count


@pytest.mark.parametrize(
    ("of", "limit", "minimum", "meets", "misses"),
    [
        (4, 0, 0, True, False),  # nothing misses it
        (4, 1, 1, True, True),
        (4, 4, 4, True, True),
        (4, 5, None, False, True),  # nothing meets it
        (0, 0, 0, True, False),
        (0, 1, None, False, True),
    ],
)
def test_a_minimum(of: int, limit: int, minimum: int | None, meets: bool, misses: bool) -> None:
    assert minimum_count("m", of, lambda count: count >= limit) == Reach("m", minimum, of, meets, misses)


@pytest.mark.parametrize(
    ("of", "limit", "largest", "meets", "misses"),
    [
        (4, 4, 4, True, False),
        (4, 3, 3, True, True),
        (4, 0, 0, True, True),
        (4, -1, None, False, True),
        (0, 0, 0, True, False),
        (0, -1, None, False, True),
    ],
)
def test_a_maximum(of: int, limit: int, largest: int | None, meets: bool, misses: bool) -> None:
    assert maximum_count("m", of, lambda count: count <= limit) == Reach("m", largest, of, meets, misses)


@pytest.mark.parametrize(
    ("of", "low", "high", "counts"),
    [
        (4, 0.25, 0.75, [1, 2, 3]),
        (4, 0.26, 0.74, [2]),
        (4, 0.0, 1.0, [0, 1, 2, 3, 4]),
        (4, 0.3, 0.4, []),
        (4, 1.0, 1.0, [4]),
        (4, 0.0, 0.0, [0]),
        (1, 0.5, 0.9, []),
        (0, 0.0, 1.0, []),
    ],
)
def test_counts_in_a_band(of: int, low: float, high: float, counts: list[int]) -> None:
    assert list(counts_in_band(of, low, high)) == counts


def test_how_reach_is_shown() -> None:
    size = SampleSize(tasks=3, samples_per_task=4)
    met = RegisteredReach("stage", "gate", size, Reach("min_rate", 10, 12, meets=True, misses=True))
    never = RegisteredReach("stage", "gate", size, Reach("min_rate", None, 12, meets=False, misses=True))
    assert str(met) == "stage: gate.min_rate: 10 of 12 (12 samples)"
    assert str(never) == "stage: gate.min_rate: no count (12 samples)"
