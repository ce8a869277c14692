"""Run a stage's registered gates over what was recorded: the same call live and in replay."""

from collections.abc import Callable

from gatepost.evidence import Record
from gatepost.gate import Gate
from gatepost.ladder import Judgement
from gatepost.stages import GateEntry

GateOf = Callable[[GateEntry], Gate]


def judge(record: Record, gate_of: GateOf, *, before_generation: bool = False) -> Judgement:
    """Judge a record by every gate of its stage, or only by those that can judge before generation.

    Gates run in name order over a view that holds only the channels each declared. Raises ``UserCodeError`` for the
    first that raises, or yields anything but checks.
    """
    plan = record.plan
    verdicts = []
    for entry in plan.stage.gates:
        gate = gate_of(entry)
        if gate.before_generation or not before_generation:
            verdicts.append(gate.judge(record, entry.thresholds))
    return Judgement(plan.rung.name if plan.rung else None, tuple(verdicts))
