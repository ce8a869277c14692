"""Small records for tests of gates: what a gate would find after a step that sampled."""

from array import array
from collections.abc import Sequence
from dataclasses import replace

from gatepost.engine import EngineFacts, Prompt
from gatepost.evidence import Grade, Plan, Record, Row
from gatepost.fingerprint import RowKey
from gatepost.protocol import ModelPin, Protocol
from gatepost.stages import Rung, Scope, Stage
from gatepost.testing.builders import THINK_CLOSE, THINK_OPEN, build_sampling

_OPEN_ID, _CLOSE_ID, _STOP_ID, _THOUGHT_ID, _ANSWER_ID = 7, 8, 2, 30, 50
_DIGEST = "sha256:" + "0" * 64


def build_record(
    close_steps: Sequence[int | None],
    *,
    cap_tokens: int = 16,
    samples_per_task: int = 1,
    correct: Sequence[bool | None] | None = None,
) -> Record:
    """A record of one nested stage at its one rung, whose rows end as they are said to, in the order of the plan.

    Args:
        close_steps: one entry a sample: its thinking closes with that id, counted from one, and an id of answer and a
            stop id follow; ``None`` for a sample that was cut at the cap. A step past the cap is not possible.
        cap_tokens: the rung, in ids of thinking, the closing one included.
        samples_per_task: how many of them in a row are samples of one task.
        correct: whether the answer of each sample is right, ``None`` for one that does not parse; without it, the
            channel ``grades`` was not recorded.

    Channels are fields of the record: ``dataclasses.replace(record, engine=...)`` sets another one. Raises
    ``ValueError`` for steps that no engine could give, or lists that do not fit.
    """
    if len(close_steps) % samples_per_task:
        raise ValueError(f"{len(close_steps)} samples, expected a multiple of {samples_per_task} a task")
    if wrong := [step for step in close_steps if step is not None and not 1 <= step <= cap_tokens]:
        raise ValueError(f"a close at id {wrong[0]}, expected one from 1 to the cap of {cap_tokens}")
    task_ids = tuple(f"task-{index}" for index in range(len(close_steps) // samples_per_task))
    plan = _plan(task_ids, cap_tokens, samples_per_task)
    rows = tuple(_row(plan, key, step) for key, step in zip(plan.keys, close_steps, strict=True))
    prompts = tuple(Prompt(task_id, "", (1, _OPEN_ID)) for task_id in task_ids)
    record = Record(plan, engine=EngineFacts(kind="scripted", versions={}), prompts=prompts, rows=rows)
    if correct is None:
        return record
    graded = zip(plan.keys, correct, strict=True)
    return replace(
        record, grades={key: Grade(key, None if right is None else "answer", bool(right)) for key, right in graded}
    )


def _plan(task_ids: tuple[str, ...], cap_tokens: int, samples_per_task: int) -> Plan:
    rung = Rung(cap_tokens, {})
    stage = Stage("selection", Scope.NESTED, None, ("selection",), samples_per_task, None, None, 1, "graded", ())
    model = ModelPin(
        repository="small",
        path=None,
        revision="0" * 40,
        tokenizer_revision="0" * 40,
        files={},
        think_open=(THINK_OPEN, _OPEN_ID),
        think_close=(THINK_CLOSE, _CLOSE_ID),
        model_eos_id=_STOP_ID,
        tokenizer_eos_id=_STOP_ID,
    )
    protocol = Protocol(
        digest=_DIGEST,
        id="small",
        study="small",
        domain_version=1,
        model=model,
        engine={"kind": "scripted", "options": {}, "packages": {}},
        sampling=build_sampling(stop_ids=(_STOP_ID,)),
        max_answer_tokens=4,
        thinking="natural",
        force_close_ids=(),
        seed_rule="blake2b64",
        rungs=(rung,),
        stages=(stage,),
        labels={},
        splits={"selection": "selection.jsonl"},
        parents={},
        bound=(),
        document={},
    )
    return Plan(protocol, stage, rung, _DIGEST, task_ids)


def _row(plan: Plan, key: RowKey, close_step: int | None) -> Row:
    """A row with the registered seed."""
    seeds = plan.seeds(key)
    if close_step is None:
        ids = [_THOUGHT_ID] * plan.sampled_think_tokens
    else:
        ids = [_THOUGHT_ID] * (close_step - 1) + [_CLOSE_ID, _ANSWER_ID, _STOP_ID]
    return Row(
        key=key,
        seed=0 if seeds is None else seeds.first,
        prompt_tokens=2,
        token_ids=array("i", ids),
        forward_input_lengths=array("i", [2] + [1] * (len(ids) - 1)),
        finish_reason="length" if close_step is None else "stop",
        claims={},
    )
