"""The selection: which rung the ladder ended at, the outcome at each, and the receipts that this follows from.

Nothing that happens after a selection is part of it: a stage that only a selection opens cannot change what opened it.
"""

from collections.abc import Mapping

from gatepost.ladder import Decision, Judgements, Step, audit
from gatepost.protocol import Protocol
from gatepost.stages import Scope
from gatepost.verdict import JSON, conjunction


def selection_is_made(decision: Decision) -> bool:
    """Whether the rungs are closed: one was selected, whatever follows, or all were rejected."""
    return decision.rung is not None or decision.state == "exhausted"


def selection_of(protocol: Protocol, judgements: Judgements, receipts: Mapping[Step, str]) -> dict[str, JSON] | None:
    """The selection that follows from judgements, or ``None`` while the rungs are open.

    Args:
        receipts: step -> digest of its receipt, of every step that has judgements.

    Raises ``OrderError`` for a judgement that the ladder never asked for.
    """
    decision = audit(protocol, judgements)
    if not selection_is_made(decision):
        return None
    before = [step for step in judgements if protocol.stage(step.stage).scope is not Scope.SELECTED]
    outcomes = []
    for rung in protocol.rungs:
        at_rung = [
            judgement.outcome
            for step in before
            for judgement in judgements[step]
            if judgement.rung == rung.name and step.rung in (None, rung.name)
        ]
        if at_rung:
            outcomes.append({"rung": rung.name, "outcome": str(conjunction(at_rung))})
    return {
        "schema": "gatepost/selection/1",
        "protocol": protocol.digest,
        "receipts": {str(step): receipts[step] for step in before},
        "pass": decision.rung is not None,
        "selected": decision.rung,
        "label": decision.label if decision.state == "exhausted" else "SELECTED",
        "rungs": outcomes,
    }
