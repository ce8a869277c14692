"""Is this the frozen plan?"""

from gatepost.gate import Check, Checks, Evidence, gate


@gate(version=1, reads=[], role="validity")
def protocol_binding(evidence: Evidence) -> Checks:
    """The record carries the digest of the protocol that judges it.

    Both reference studies bind every receipt to their protocol; a record made under any other plan, however close,
    says nothing about this one.
    """
    yield Check("protocol_digest", evidence.plan.recorded_digest, "==", evidence.plan.protocol.digest)
