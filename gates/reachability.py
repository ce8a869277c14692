"""Can each threshold be met, and can it be missed?"""

from gatepost.gate import Check, Checks, Evidence, gate


@gate(version=1, reads=["reach"], role="validity")
def reachability(evidence: Evidence) -> Checks:
    """Every threshold of every stage has a sample of the registered size that meets it and one that misses it.

    Study B proves this on the CPU before any model call: 48 traces reach 39 closes, 32 usable and 6 mixed tasks.
    A threshold that nothing can miss decides nothing, and one that nothing can meet decides everything.
    """
    if not evidence.reach:
        yield Check("reachable_thresholds", None, ">=", 1, note="no threshold was counted")
        return
    for entry in evidence.reach:
        both = int(entry.reach.meets) + int(entry.reach.misses)
        name = f"{entry.stage}.{entry.gate}.{entry.reach.name}"
        yield Check(name, both, "==", 2, k=entry.reach.minimum, n=entry.reach.of, note="can be met, can be missed")
