"""Did someone else say GO for this step?"""

from gatepost.gate import Check, Checks, Evidence, gate


@gate(version=1, reads=["approvals"], role="validity")
def approval(evidence: Evidence) -> Checks:
    """As many registered reviewers as the protocol asks for signed its digest and the name of this step.

    Whoever freezes a plan and also lets it run is no second pair of eyes, so the author's signature is none. Reviewers
    are told apart by key material: one key under two names is one reviewer.
    """
    plan, approvals = evidence.plan, evidence.approvals
    registered, needed = plan.protocol.approvals, plan.protocol.approvals_needed(plan.stage.name)
    if registered is None or not needed or approvals is None:
        yield Check("approvals", None, ">=", 1, note="none are registered for this stage, or none were recorded")
        return
    reviewers = set(registered.reviewers.values()) - {registered.author}
    this = (plan.protocol.digest, str(plan.step))
    given = [other for other in approvals if (other.protocol, other.step) == this and other.key in reviewers]
    keys = {other.key for other in given if other.holds}
    if all(other.holds is not None for other in approvals):
        yield Check("approvals", len(keys), ">=", needed, k=len(keys), n=needed)
        yield Check("approvals_that_are_none", len(approvals) - len(keys), "==", 0)
    else:
        note = "signatures cannot be checked here: pip install 'gatepost[approval]'"
        yield Check("approvals", None, ">=", needed, note=note)
        yield Check("approvals_that_are_none", None, "==", 0, note=note)
