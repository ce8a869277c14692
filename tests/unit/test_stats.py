import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatepost.stats import LOWER_BOUNDS, clopper_pearson_lower, wilson_lower

counts = st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


# Twenty digits from the score interval's closed form and from the regularised incomplete beta function, both in
# 60-digit arithmetic and apart from this code.
@pytest.mark.parametrize(
    ("k", "n", "wilson", "clopper_pearson"),
    [
        (0, 48, 0.0, 0.0),
        (1, 48, 0.0036871109775106498021, 0.00052731525342312043963),
        (39, 48, 0.68060132850715302757, 0.67370697604328660018),
        (48, 48, 0.9258998703338824921, 0.92602721465271978967),
        (57, 72, 0.68430736580640665117, 0.67977048887062836843),
        (58, 72, 0.6996724105411146911, 0.69533106670131668261),
        (59, 72, 0.71519658260801758286, 0.71105659159707154909),
        (2, 1000, 0.00054864358812072707439, 0.00024230111687723204686),
        (500, 1000, 0.46906960036810418072, 0.46854917297179194719),
    ],
)
def test_reference_values(k: int, n: int, wilson: float, clopper_pearson: float) -> None:
    assert wilson_lower(k, n, 0.95) == pytest.approx(wilson, rel=1e-14)
    assert clopper_pearson_lower(k, n, 0.95) == pytest.approx(clopper_pearson, rel=3e-16)


def test_no_success_bounds_nothing() -> None:
    for bound in LOWER_BOUNDS.values():
        assert str(bound(0, 48, 0.95)) == "0.0"


@given(counts, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_wilson_bound_solves_the_score_equation(sample: tuple[int, int], confidence: float) -> None:
    (k, n), z = sample, NormalDist().inv_cdf((1 + confidence) / 2)
    bound = wilson_lower(k, n, confidence)
    assert 0 <= bound <= k / n
    assert (k / n - bound) ** 2 == pytest.approx(z * z * bound * (1 - bound) / n, rel=1e-9, abs=1e-15)


@settings(deadline=None)
@given(counts.filter(lambda sample: sample[0] > 0), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_clopper_pearson_bound_is_right_to_the_last_bit(sample: tuple[int, int], confidence: float) -> None:
    k, n = sample
    tail = Fraction((1 - confidence) / 2)

    def at_least_k(rate: float) -> Fraction:
        p = Fraction(rate)
        return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))

    bound = clopper_pearson_lower(k, n, confidence)
    assert at_least_k(bound) <= tail <= at_least_k(math.nextafter(bound, 1))


@settings(deadline=None)
@given(counts.filter(lambda sample: sample[0] < sample[1]), st.sampled_from(sorted(LOWER_BOUNDS)))
def test_more_successes_bound_higher_and_more_confidence_lower(sample: tuple[int, int], method: str) -> None:
    (k, n), bound = sample, LOWER_BOUNDS[method]
    assert bound(k, n, 0.95) < bound(k + 1, n, 0.95)
    assert bound(k + 1, n, 0.99) < bound(k + 1, n, 0.95)
    assert bound(k + 1, n + 1, 0.95) < bound(k + 1, n, 0.95)


@pytest.mark.parametrize("method", sorted(LOWER_BOUNDS))
@pytest.mark.parametrize(
    ("k", "n", "confidence"),
    [(0, 0, 0.95), (-1, 4, 0.95), (5, 4, 0.95), (2, 4, 0), (2, 4, 1), (2, 4, -0.5), (2, 4, 95), (2, 4, math.nan)],
)
def test_what_is_no_sample_or_no_confidence_is_refused(method: str, k: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        LOWER_BOUNDS[method](k, n, confidence)
