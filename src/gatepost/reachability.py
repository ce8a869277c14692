"""Can every threshold be met and missed? Proved by counting, before any model call."""

from collections.abc import Iterable, Iterator, Mapping

from gatepost.errors import RegistrationError
from gatepost.judge import GateOf
from gatepost.protocol import Protocol
from gatepost.reach import RegisteredReach, SampleSize


def registered_reach(protocol: Protocol, gate_of: GateOf, split_sizes: Mapping[str, int]) -> Iterator[RegisteredReach]:
    """The reach of every threshold that depends on a sample.

    Args:
        split_sizes: tasks per split.

    Raises ``RegistrationError`` for a gate that judges samples by thresholds and cannot say what reaches them, and
    ``UserCodeError`` for one that fails at saying it.
    """
    for stage in protocol.stages:
        judged = protocol.sampling_stages(stage)
        if not judged:
            continue
        tasks = min(split_sizes[stage.splits[0]], stage.max_tasks or split_sizes[stage.splits[0]])
        size = SampleSize(tasks, judged[0].samples_per_task)  # the same of all stages that one stage scores
        for entry in stage.gates:
            gate = gate_of(entry)
            if gate.before_generation or not gate.thresholds:
                continue
            if gate.reach is None:
                raise RegistrationError(
                    f"stage {stage.name}: gate {gate.name} judges samples by {', '.join(gate.thresholds)} "
                    "but declares no reach, so nobody can tell whether it could pass or fail"
                )
            for reach in gate.reaches(size, entry.thresholds, where=f"for stage {stage.name}"):
                yield RegisteredReach(stage.name, gate.name, size, reach)


def require_reachable(reaches: Iterable[RegisteredReach]) -> None:
    """Raise ``RegistrationError`` naming the threshold that no sample could meet, or none could miss."""
    for entry in reaches:
        if entry.reach.meets and entry.reach.misses:
            continue
        problem = "no sample could meet it" if not entry.reach.meets else "no sample could miss it"
        needed = "" if entry.reach.minimum is None else f", it takes {entry.reach.minimum} of {entry.reach.of}"
        raise RegistrationError(
            f"stage {entry.stage}: gate {entry.gate}: {entry.reach.name}: {problem} with {entry.size.rows} samples "
            f"of {entry.size.tasks} tasks{needed}"
        )
