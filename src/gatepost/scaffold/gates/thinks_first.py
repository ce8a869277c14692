"""Does the model think before it answers?"""

from gatepost.gate import Check, Checks, Evidence, Outcome, Reach, SampleSize, gate, minimum_count, share


def _check(thought: int | None, rows: int, limit: float) -> Check:
    return share("thinking_share", thought, rows, ">=", limit)


def _reach(size: SampleSize, *, min_thinking_tokens: int, min_thinking_share: float) -> list[Reach]:
    """How many samples it takes; a share that none or all could meet is refused when the draft is frozen."""

    def passes(count: int) -> bool:
        return _check(count, size.rows, min_thinking_share).outcome is Outcome.PASS

    return [minimum_count("min_thinking_share", size.rows, passes)]


@gate(version=1, reads=["completions"], role="adequacy", reach=_reach)
def thinks_first(evidence: Evidence, *, min_thinking_tokens: int, min_thinking_share: float) -> Checks:
    """The share of registered samples that closed their thinking by the cap, after at least so many ids.

    A sample that is missing, was cut, or closed at once did not think first. Where nothing was recorded the share is
    unknown, which is inconclusive, and not zero.
    """
    closed = evidence.closed_samples
    thought = None
    if closed is not None:
        thought = sum(sample.continuation.thinking_tokens >= min_thinking_tokens for sample in closed.values())
    yield _check(thought, len(evidence.plan.keys), min_thinking_share)
