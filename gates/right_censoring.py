"""Is the rung a view of the same paths as every other rung?"""

from gatepost.gate import Check, Checks, Evidence, Sample, every, gate


@gate(version=1, reads=["completions"], role="validity")
def right_censoring(evidence: Evidence) -> Checks:
    """Closes lie within what was sampled and only add up from rung to rung, and nothing on record contradicts them.

    Study B samples once, to the top cap, and calls a path closed at cap B iff its one-indexed close step is at most B.
    Records made elsewhere are held against the ids: unclosed rows have been stored with no thinking at all.
    """
    plan, samples = evidence.plan, evidence.complete_samples
    cap = plan.max_think_tokens
    if samples is None or cap is None:
        yield Check("closes_within_sampled_cap", None, "==", 1.0, n=len(plan.keys), note="no samples or no cap")
        return
    top = plan.sampled_think_tokens
    yield every(
        "closes_within_sampled_cap",
        plan.keys,
        lambda key: key in samples and (samples[key].own_close_step or 0) <= top,
    )
    yield every("claims_as_recomputed", plan.keys, lambda key: key in samples and _agrees(samples[key]))
    caps = sorted({rung.max_think_tokens for rung in plan.protocol.rungs if rung.max_think_tokens < cap} | {cap})
    closed = [sum(sample.closed_at(at) for sample in samples.values()) for at in caps]
    note = ", ".join(f"{count} closed at {at}" for at, count in zip(caps, closed, strict=True))
    yield Check("closed_rows", closed[-1], ">=", max(closed), k=closed[-1], n=len(plan.keys), note=note)


def _agrees(sample: Sample) -> bool:
    """Whether what somebody else's record says of a sample's thinking is what its ids say."""
    found, claims = sample.continuation, sample.row.claims
    recomputed = {
        "natural_close": found.closed_once and sample.own_close_step is not None,
        "close_step": found.close_step,
        "think_tokens": found.thinking_tokens,
    }
    return all(claims[name] == value for name, value in recomputed.items() if name in claims)
