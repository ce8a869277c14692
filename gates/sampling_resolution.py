"""Are all sampling values the registered ones?"""

from gatepost.gate import UNKNOWN_FACTS, Check, Checks, Evidence, gate


@gate(version=1, reads=["engine"], role="validity")
def sampling_resolution(evidence: Evidence) -> Checks:
    """Every registered value is the one that the engine applies, and the engine applies no other.

    A value left unsaid comes from the model's folder, the library or the server, whichever is asked
    (huggingface/transformers#38549, vllm-project/vllm#15281).
    """
    registered = vars(evidence.plan.protocol.sampling)
    applied = (evidence.engine or UNKNOWN_FACTS).sampling
    for name, value in registered.items():
        yield Check(name, None if applied is None else applied.get(name), "==", value)
    unregistered = None if applied is None else sorted(applied.keys() - registered.keys())
    yield Check("unregistered_values", unregistered, "==", [])
