"""Which samples of a plan use its LoRA adapter: the rules that freezing holds a plan to.

1. With an adapter every stage that samples says which of its samples use it, and one of them does. Else none says so.
2. A contrast samples each task three times: without the adapter, with it, and with it again. Its samples are of two
   models, so no rate of them is judged, and none is scored: the gate ``adapter_applied`` alone compares them.
3. A stage that draws all samples with the adapter has it compared with the registered one, by the gate ``model_pin``.
"""

from gatepost.errors import RegistrationError
from gatepost.judge import GateOf
from gatepost.protocol import Protocol
from gatepost.stages import Stage

CONTRAST_SAMPLES = 3
"""Of each task: without the adapter, with it, and with it again."""

CHOICES = ("on", "off", "contrast")


def check(protocol: Protocol, gate_of: GateOf) -> None:
    """Raise ``RegistrationError`` for the first rule that the protocol breaks."""
    for stage in protocol.stages:
        if stage.adapter is not None and (protocol.adapter is None or not stage.samples):
            problem = "the stage samples nothing" if protocol.adapter else "there is no table [adapter]"
            raise RegistrationError(f"stage {stage.name}: adapter is {stage.adapter!r}, but {problem}")
        if stage.adapter is None and protocol.adapter is not None and stage.samples:
            raise RegistrationError(f"stage {stage.name}: adapter is missing, expected one of {', '.join(CHOICES)}")
        _check_gates(stage, gate_of)
        for scored in stage.scores:
            if protocol.stage(scored).adapter == "contrast":
                raise RegistrationError(f"stage {stage.name}: scores {scored}, a contrast of two models")
    if protocol.adapter is not None and all(stage.adapter in (None, "off") for stage in protocol.stages):
        raise RegistrationError("adapter: no stage uses it; leave it out, or have one use it")


def _check_gates(stage: Stage, gate_of: GateOf) -> None:
    where, names = f"stage {stage.name}: adapter is {stage.adapter!r}", [entry.name for entry in stage.gates]
    if (stage.adapter == "contrast") is not ("adapter_applied" in names):
        expected = "listed by every contrast, and by nothing else"
        raise RegistrationError(f"{where}, and its gates are {', '.join(names)}; expected adapter_applied {expected}")
    if stage.adapter == "on" and "model_pin" not in names:
        raise RegistrationError(f"{where}, and its gates are {', '.join(names)}; expected model_pin among them")
    if stage.adapter != "contrast":
        return
    if stage.samples_per_task != CONTRAST_SAMPLES:
        raise RegistrationError(f"{where} with samples_per_task {stage.samples_per_task}, expected {CONTRAST_SAMPLES}")
    if rates := [entry.name for entry in stage.gates if gate_of(entry).role == "adequacy"]:
        raise RegistrationError(f"{where}, but the gate {rates[0]} judges all samples as if of one model")
