"""Is the rate of natural closes high enough beyond the noise of the sample?"""

from gatepost.gate import LOWER_BOUNDS, Check, Checks, Evidence, Outcome, Reach, SampleSize, gate, minimum_count


def _check(closed: int | None, rows: int, limit: float, method: str, confidence: float) -> Check:
    known = method in LOWER_BOUNDS and 0 < confidence < 1
    bound = LOWER_BOUNDS[method](closed, rows, confidence) if known and rows and closed is not None else None
    note = f"{method}, two-sided {confidence}"
    if not known:
        note += f": unknown, expected one of {', '.join(LOWER_BOUNDS)} and a confidence between 0 and 1"
    return Check("natural_close_lower_bound", bound, ">=", limit, k=closed, n=rows, note=note)


def _reach(size: SampleSize, *, min_lower_bound: float, method: str, confidence: float) -> list[Reach]:
    def passes(count: int) -> bool:
        return _check(count, size.rows, min_lower_bound, method, confidence).outcome is Outcome.PASS

    return [minimum_count("min_lower_bound", size.rows, passes)]


@gate(version=1, reads=["completions"], role="adequacy", reach=_reach)
def natural_close_bound(evidence: Evidence, *, min_lower_bound: float, method: str, confidence: float) -> Checks:
    """The lower confidence bound of the natural close rate, by the method that the protocol names.

    Study B confirms with the lower end of the two-sided 95 % Wilson interval. The bound is about a rate only as far
    as the samples are independent: nested views of one set of paths are not.
    """
    closed = evidence.closed_samples
    count = None if closed is None else len(closed)
    yield _check(count, len(evidence.plan.keys), min_lower_bound, method, confidence)
