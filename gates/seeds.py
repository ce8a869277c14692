"""Are the child seeds unique and stable?"""

from gatepost.gate import SEED_LIMIT, Check, Checks, Evidence, RowKey, every, gate


@gate(version=1, reads=[], role="validity")
def seeds(evidence: Evidence) -> Checks:
    """The seeds derived from (base seed, task id, sample index) are all different and all in [0, 2^31).

    Study B's rule. Engines that count children up from a parent's seed hand consecutive parents the same children,
    and so copies for samples (vllm-project/vllm#10980); a negative seed means "unseeded" to some.
    The samples of a contrast are registered to share the seeds of the first of their task, and count as one draw.
    """
    plan = evidence.plan
    draws = dict.fromkeys(RowKey(key.task_id, plan.stage.draw(key.sample_index)) for key in plan.keys)
    registered = [seeds for draw in draws if (seeds := plan.seeds(draw)) is not None]
    if not registered:
        yield Check("distinct_seeds", None, "==", len(draws), note="no base seed is registered")
        return
    two_stages = plan.protocol.thinking == "force_close"
    derived = [seed for pair in registered for seed in (pair if two_stages else pair[:1])]
    distinct = len(set(derived))
    yield Check("distinct_seeds", distinct or None, "==", len(derived), k=distinct, n=len(derived))
    yield every("seeds_in_range", derived, lambda seed: 0 <= seed < SEED_LIMIT)
