"""Is this the registered model?"""

from gatepost.gate import UNKNOWN_FACTS, Check, Checks, Evidence, gate


@gate(version=1, reads=["engine"], role="validity")
def model_pin(evidence: Evidence) -> Checks:
    """What was loaded has the registered digests or commits, marker ids and ends of sequence.

    A local model is pinned by exactly its files, since a file more can change what a loader does; a repository by
    its commits, and an adapter beside either by its files. Both studies record the end of sequence of the model and of
    the tokenizer apart: in Qwen3.5 they differ, and which one stops is up to the sampling.
    """
    plan, facts = evidence.plan.protocol, evidence.engine or UNKNOWN_FACTS
    pin = plan.model
    if pin.files:
        yield Check("model_files", sorted(facts.model_files) or None, "==", sorted(pin.files))
        for name, digest in sorted(pin.files.items()):
            yield Check(f"sha256 of {name}", facts.model_files.get(name), "==", digest)
    else:
        yield Check("revision", facts.revision, "==", pin.revision)
        yield Check("tokenizer_revision", facts.tokenizer_revision, "==", pin.tokenizer_revision)
    if plan.adapter is not None:
        yield Check("adapter_files", facts.adapter_files, "==", plan.adapter.files)
    for name, (text, registered) in (("think_open_id", pin.think_open), ("think_close_id", pin.think_close)):
        resolved = facts.markers.get(text)
        if text in facts.markers and resolved is None:
            yield Check(name, "unresolved", "==", registered, note=f"{text} is not one id of the loaded tokenizer")
        else:
            yield Check(name, resolved, "==", registered)
    yield Check("model_eos_ids", facts.model_eos_ids, "==", [pin.model_eos_id])
    yield Check("tokenizer_eos_id", facts.tokenizer_eos_id, "==", pin.tokenizer_eos_id)
