"""Lower bounds of a rate: gatepost's by decimal arithmetic, SciPy's by Boost's incomplete beta function."""

import math

import pytest
from scipy.special import betainc
from scipy.stats import beta, binomtest

from gatepost.stats import LOWER_BOUNDS, clopper_pearson_lower, wilson_lower
from tests.every import EVERY

LARGEST = 160 if EVERY else 24
CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
GRID = [(k, n) for n in range(1, LARGEST + 1) for k in range(n + 1)]


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_clopper_pearson(confidence: float) -> None:
    successes = [(k, n) for k, n in GRID if k]
    expected = beta.ppf((1 - confidence) / 2, *zip(*((k, n - k + 1) for k, n in successes), strict=True))
    for (k, n), other in zip(successes, expected, strict=True):
        bound = clopper_pearson_lower(k, n, confidence)
        assert math.isclose(bound, other, rel_tol=1e-13), (k, n, bound, other)
        assert math.isclose(betainc(k, n - k + 1, bound), (1 - confidence) / 2, rel_tol=1e-12)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_wilson(confidence: float) -> None:
    for k, n in GRID:
        bound = wilson_lower(k, n, confidence)
        other = binomtest(k, n).proportion_ci(confidence, method="wilson").low
        assert math.isclose(bound, other, rel_tol=1e-12, abs_tol=1e-16), (k, n, bound, other)


@pytest.mark.parametrize("method", sorted(LOWER_BOUNDS))
@pytest.mark.parametrize(("k", "n"), [(1, 2000), (1000, 2000), (1999, 2000), (2000, 2000), (59, 72), (0, 2000)])
def test_large_samples(method: str, k: int, n: int) -> None:
    name = {"clopper_pearson": "exact", "wilson": "wilson"}[method]
    other = binomtest(k, n).proportion_ci(0.95, method=name).low
    assert math.isclose(LOWER_BOUNDS[method](k, n, 0.95), other, rel_tol=1e-12, abs_tol=2e-12)  # where theirs stops


def test_no_success() -> None:
    for n in range(1, LARGEST + 1):
        assert [str(bound(0, n, 0.95)) for bound in LOWER_BOUNDS.values()] == ["0.0", "0.0"]
