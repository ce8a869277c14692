"""Are the child seeds unique and stable?"""

from gatepost.gate import SEED_LIMIT, Check, Checks, Evidence, child_seed, every, gate


@gate(version=1, reads=[], role="validity")
def seeds(evidence: Evidence) -> Checks:
    """The seeds derived from (base seed, task id, sample index) are all different and all in [0, 2^31).

    Study B's rule. Engines that count children up from a parent's seed hand consecutive parents the same children,
    and so copies for samples (vllm-project/vllm#10980); a negative seed means "unseeded" to some.
    """
    plan = evidence.plan
    base = plan.stage.base_seed
    if base is None:
        yield Check("distinct_seeds", None, "==", len(plan.keys), note="no base seed is registered")
        return
    derived = [child_seed(base, *key) for key in plan.keys]
    distinct = len(set(derived))
    yield Check("distinct_seeds", distinct or None, "==", len(derived), k=distinct, n=len(derived))
    yield every("seeds_in_range", derived, lambda seed: 0 <= seed < SEED_LIMIT)
