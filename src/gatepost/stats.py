"""Confidence bounds by name, and nothing that a protocol does not name."""

import math
from decimal import Decimal, localcontext
from statistics import NormalDist


def wilson_lower(k: int, n: int, confidence: float) -> float:
    """Lower end of the two-sided Wilson score interval for ``k`` successes in ``n`` trials.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    ``confidence`` is two-sided (0.95 uses z = 1.959963984540054). At ``k = 0`` the bound is exactly 0, where the
    textbook formula leaves floating noise.
    """
    _require(k, n, confidence)
    if k == 0:
        return 0.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, z2 = k / n, z * z
    centre = rate + z2 / (2 * n)
    spread = z * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return (centre - spread) / (1 + z2 / n)


def clopper_pearson_lower(k: int, n: int, confidence: float) -> float:
    """Lower end of the two-sided Clopper-Pearson ("exact") interval.

    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934): the rate at
    which ``k`` or more successes in ``n`` have probability (1 - confidence) / 2. Found by bisection on the
    binomial tail, to the last bit, without a special function library.
    """
    _require(k, n, confidence)
    if k == 0:
        return 0.0
    tail = Decimal((1 - confidence) / 2)
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        if _upper_tail(k, n, middle) < tail:
            low = middle
        else:
            high = middle
    return low


LOWER_BOUNDS = {"wilson": wilson_lower, "clopper_pearson": clopper_pearson_lower}
"""Method name -> function, as protocols name them."""


def _upper_tail(k: int, n: int, rate: float) -> Decimal:
    """P(X >= k) for X ~ Binomial(n, rate).

    In decimal arithmetic, since a receipt is recomputed on other machines: its results are the same everywhere,
    those of a C library's logarithm are not.
    """
    with localcontext(prec=50):
        p = Decimal(rate)
        q = 1 - p
        term = total = math.comb(n, k) * p**k * q ** (n - k)
        for successes in range(k, n):
            term *= (n - successes) * p / ((successes + 1) * q)
            total += term
        return total


def _require(k: int, n: int, confidence: float) -> None:
    if not 0 <= k <= n or n == 0:
        raise ValueError(f"counts {k}/{n}: expected 0 <= k <= n and n > 0")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence}: expected strictly between 0 and 1")
