"""How many samples closed by themselves? The second version: a close at the very cap counts no longer."""

from gatepost.gate import Check, Checks, Evidence, Reach, SampleSize, gate, minimum_count, share


def _reach(size: SampleSize, *, min_close_share: float) -> list[Reach]:
    return [minimum_count("min_close_share", size.rows, lambda count: count / size.rows >= min_close_share)]


@gate(version=2, reads=["completions"], reach=_reach)
def toy_closes(evidence: Evidence, *, min_close_share: float) -> Checks:
    """The share of samples that closed before the cap, and how many there were."""
    cap, samples = evidence.plan.max_think_tokens, evidence.completions
    if cap is None or samples is None:
        yield Check("closed_before_cap", None, ">=", min_close_share)
        return
    closed = sum(sample.closed_at(cap - 1) for sample in samples)
    yield share("closed_before_cap", closed, len(evidence.plan.keys), ">=", min_close_share)
