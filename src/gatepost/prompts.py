"""Which prompts are registered: what a bound manifest says of them, and what a plan that has one must hold to.

A manifest says of each task, in each arm, which record is posed and what it has to be rendered to. The gate
``prompt_identity`` compares that with what the engine rendered, before anything is sampled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from gatepost.engine import Prompt
from gatepost.errors import RegistrationError
from gatepost.fingerprint import ids_sha256
from gatepost.protocol import Protocol

GATE = "prompt_identity"


@dataclass(frozen=True)
class PromptIdentity:
    """What tells one rendered prompt from any other. Digests are SHA-256, as hex digits.

    Attributes:
        arm: in which the task is posed; ``None`` in a study without arms.
        input_record_sha256: of the task's record, as canonical JSON.
        rendered_prompt_sha256: of the rendered text, in UTF-8.
        prompt_token_ids_sha256: of the ids that the model is fed, see ``fingerprint.ids_sha256``.
        prompt_tokens: how many ids these are.
    """

    task_id: str
    arm: str | None
    input_record_sha256: str
    rendered_prompt_sha256: str
    prompt_token_ids_sha256: str
    prompt_tokens: int

    @property
    def posed(self) -> tuple[str, str | None]:
        """What a manifest has one line for."""
        return self.task_id, self.arm


def identity_of(prompt: Prompt, arm: str | None, record_sha256: str) -> PromptIdentity:
    """The identity of a prompt that was rendered in an arm from a record of that digest."""
    return PromptIdentity(
        task_id=prompt.task_id,
        arm=arm,
        input_record_sha256=record_sha256,
        rendered_prompt_sha256=sha256(prompt.text.encode()).hexdigest(),
        prompt_token_ids_sha256=ids_sha256(prompt.token_ids),
        prompt_tokens=len(prompt.token_ids),
    )


def check_manifest(
    protocol: Protocol, manifest: Sequence[PromptIdentity] | None, records_of: Callable[[str], Mapping[str, str]]
) -> None:
    """Refuse a gate that has nothing to compare with, a manifest that no gate compares, and one of other prompts.

    Args:
        manifest: what the bound manifest says; ``None`` where none is bound.
        records_of: a split's tasks in order, each with the digest of its record.

    Raises ``RegistrationError`` naming stage, task and arm.
    """
    judging = [stage for stage in protocol.stages if any(entry.name == GATE for entry in stage.gates)]
    if manifest is not None and not judging:
        raise RegistrationError(f"prompts.manifest: no stage lists the gate {GATE}, so nothing compares it")
    registered = {line.posed: line for line in manifest or ()}
    for stage in judging:
        where = f"stage {stage.name}: lists the gate {GATE}"
        if manifest is None:
            raise RegistrationError(f"{where}, but there is no prompts.manifest to compare with")
        if not stage.samples:
            raise RegistrationError(f"{where}, but samples nothing")
        arm = "without an arm" if stage.arm is None else f"in arm {stage.arm}"
        for task_id, found in list(records_of(stage.splits[0]).items())[: stage.max_tasks]:
            line = registered.get((task_id, stage.arm))
            if line is None:
                raise RegistrationError(f"{where}, but prompts.manifest has no line for task {task_id!r} {arm}")
            if line.input_record_sha256 != found:
                raise RegistrationError(
                    f"prompts.manifest: task {task_id!r} {arm}: input_record_sha256 is {line.input_record_sha256}, "
                    f"the record in split {stage.splits[0]!r} has {found}"
                )
