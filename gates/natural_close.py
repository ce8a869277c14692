"""Does the model stop thinking by itself often enough?"""

from gatepost.gate import Check, Checks, Evidence, Outcome, Reach, SampleSize, gate, minimum_count, share


def _check(closed: int | None, rows: int, limit: float) -> Check:
    return share("natural_close_rate", closed, rows, ">=", limit)


def _reach(size: SampleSize, *, min_natural_close_rate: float) -> list[Reach]:
    def passes(count: int) -> bool:
        return _check(count, size.rows, min_natural_close_rate).outcome is Outcome.PASS

    return [minimum_count("min_natural_close_rate", size.rows, passes)]


@gate(version=1, reads=["completions"], role="adequacy", reach=_reach)
def natural_close(evidence: Evidence, *, min_natural_close_rate: float) -> Checks:
    """The share of registered samples that closed their thinking by the cap, without a close being injected.

    Study B: closed at cap B iff the one-indexed close step is at most B, so that every rung is a view of the same
    paths. A row that is missing or not complete did not close.
    """
    closed = evidence.closed_samples
    yield _check(None if closed is None else len(closed), len(evidence.plan.keys), min_natural_close_rate)
