"""Was anything evicted from the cache and computed again?"""

from gatepost.gate import Check, Checks, Evidence, gate


@gate(version=1, reads=["scheduler"], role="validity")
def no_preemption(evidence: Evidence) -> Checks:
    """The engine's own counter of preemptions is zero.

    A fit that was computed before generation does not excuse it: prompts can fit and answers outgrow the cache, and
    what is computed again need not come out the same (vllm-project/vllm#15763). An engine that does not count says
    nothing.
    """
    yield Check("preemptions", (evidence.scheduler or {}).get("preemptions"), "==", 0)
