"""Small records to judge: two tasks, two samples each, caps 8 and 16, markers 7 and 8, stop id 2."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from gatepost.engine import EngineFacts, Prompt, SamplingParams
from gatepost.evidence import Grade, Plan, Record, Row
from gatepost.fingerprint import RowKey
from gatepost.gate import Gate
from gatepost.gatefiles import Gates
from gatepost.protocol import AdapterPin, ModelPin, Protocol
from gatepost.seeds import child_seed
from gatepost.stages import Rung, Scope, Stage
from gatepost.verdict import Check, Verdict

OPEN, CLOSE, STOP = 7, 8, 2
FORCE_CLOSE = (CLOSE, 10)
DIGEST = "sha256:" + "0" * 64
ADAPTER_FILES = {"adapter_config.json": "c" * 64, "adapter_model.safetensors": "d" * 64}

MODEL: dict[str, Any] = {
    "repository": "example/model",
    "path": None,
    "revision": "a" * 40,
    "tokenizer_revision": "b" * 40,
    "files": {},
    "think_open": ("<think>", OPEN),
    "think_close": ("</think>", CLOSE),
    "model_eos_id": STOP,
    "tokenizer_eos_id": 3,
}
SAMPLING: dict[str, Any] = {
    "temperature": 0.6,
    "top_p": 0.95,
    "top_k": 20,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "greedy": False,
    "stop_ids": (STOP,),
}


@cache
def installed() -> Gates:
    return Gates()


def gate(name: str) -> Gate:
    return installed().get(name, 1, where="test")


def judge(name: str, record: Record, **thresholds: Any) -> Verdict:
    """The verdict of a shipped gate, with exactly its thresholds."""
    gate(name).require_thresholds(thresholds, where="test")
    return gate(name).judge(record, thresholds)


def checks(verdict: Verdict) -> dict[str, Check]:
    """Checks by name; no gate uses a name twice."""
    assert len({check.name for check in verdict.checks}) == len(verdict.checks)
    return {check.name: check for check in verdict.checks}


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {name: str(check.outcome) for name, check in checks(verdict).items()}


def failed(verdict: Verdict) -> set[str]:
    return {name for name, outcome in outcomes(verdict).items() if outcome == "fail"}


def plan(
    *,
    task_ids: Sequence[str] = ("t1", "t2"),
    samples_per_task: int = 2,
    caps: Sequence[int] = (8, 16),
    cap: int | None = 16,
    scope: Scope = Scope.NESTED,
    fixed_cap: int | None = None,
    max_answer_tokens: int = 4,
    base_seed: int | None = 11,
    splits: Sequence[str] = ("selection",),
    parents: Sequence[str] = (),
    model: Mapping[str, Any] | None = None,
    sampling: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    rung_options: Mapping[int, Mapping[str, Any]] | None = None,
    packages: Mapping[str, str] | None = None,
    thinking: str = "natural",
    adapter: str | None = None,
    recorded_digest: str = DIGEST,
) -> Plan:
    """The registered side; ``cap`` is the rung at which is judged, ``None`` outside the ladder."""
    rungs = {max_tokens: Rung(max_tokens, (rung_options or {}).get(max_tokens, {})) for max_tokens in caps}
    stage = Stage("stage", scope, None, tuple(splits), samples_per_task, None, fixed_cap, base_seed, "graded", ())
    stage = replace(stage, adapter=adapter)
    protocol = Protocol(
        digest=DIGEST,
        id="example",
        study="example",
        domain_version=1,
        model=ModelPin(**{**MODEL, **(model or {})}),
        engine={"kind": "scripted", "options": options or {}, "packages": packages or {}},
        sampling=SamplingParams(**{**SAMPLING, **(sampling or {})}),
        max_answer_tokens=max_answer_tokens,
        thinking=thinking,
        force_close_ids=FORCE_CLOSE if thinking == "force_close" else (),
        seed_rule="blake2b64",
        rungs=tuple(rungs.values()),
        stages=(stage,),
        labels={},
        splits={split: f"{split}.jsonl" for split in splits},
        parents={parent: f"{parent}.jsonl" for parent in parents},
        bound=(),
        document={},
        adapter=None if adapter is None else AdapterPin("tuned", "adapters/tuned", DIGEST, ADAPTER_FILES),
    )
    return Plan(protocol, stage, None if cap is None else rungs[cap], recorded_digest, tuple(task_ids))


def facts(**known: Any) -> EngineFacts:
    return EngineFacts(**{"kind": "scripted", "versions": {}, **known})


def row(
    key: RowKey | tuple[str, int],
    ids: Iterable[int],
    *,
    finish: str | None = "stop",
    lengths: Iterable[int] | None = None,
    prompt_tokens: int = 5,
    seed: int | None = None,
    claims: Mapping[str, Any] | None = None,
    **second_stage: Any,
) -> Row:
    """A row with the seed that study B derives, unless another is given."""
    key = RowKey(*key)
    return Row(
        key=key,
        seed=child_seed(11, *key) if seed is None else seed,
        prompt_tokens=prompt_tokens,
        token_ids=array("i", ids),
        forward_input_lengths=None if lengths is None else array("i", lengths),
        finish_reason=finish,
        claims=claims or {},
        **second_stage,
    )


def forced(
    key: RowKey | tuple[str, int], thinking: Sequence[int], answer: Sequence[int] = (50, STOP), **changes: Any
) -> Row:
    """A row whose thinking was used up and closed by force."""
    fields = {
        "stage_two_seed": child_seed(11, *key, "stage2"),
        "stage_one_finish_reason": "length",
        "injected_start": len(thinking),
        "injected_tokens": len(FORCE_CLOSE),
        "reprefilled_tokens": 5 + len(thinking) + len(FORCE_CLOSE),
        **changes,
    }
    return row(key, [*thinking, *FORCE_CLOSE, *answer], **fields)


def closed(step: int, answer: Sequence[int] = (50,)) -> list[int]:
    """Ids that close thinking at a one-indexed step, answer and stop."""
    return [30] * (step - 1) + [CLOSE, *answer, STOP]


def rows_of(registered: Plan, close_steps: Sequence[int | None]) -> tuple[Row, ...]:
    """One row per registered sample: closed at that step, or cut at the sampled cap for ``None``."""
    return tuple(
        row(key, [30] * registered.sampled_think_tokens, finish="length") if step is None else row(key, closed(step))
        for key, step in zip(registered.keys, close_steps, strict=True)
    )


def grades_of(registered: Plan, correct: Sequence[bool | None]) -> dict[RowKey, Grade]:
    """One grade per registered sample; ``None`` for an answer that does not parse."""
    return {
        key: Grade(key, None if right is None else "cat", bool(right))
        for key, right in zip(registered.keys, correct, strict=True)
    }


def prompts_of(registered: Plan, ids: Sequence[int] = (1, 1, OPEN, 9)) -> tuple[Prompt, ...]:
    return tuple(Prompt(task_id, "", tuple(ids)) for task_id in registered.task_ids)
