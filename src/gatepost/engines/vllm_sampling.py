"""Sampling values as vLLM has them: every one passed, and read back from what was made of them.

Imported in an engine's child alone.
"""

from typing import Any

from vllm import SamplingParams as VLLMSamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import RequestOutputKind, SamplingType

from gatepost.engine import SamplingParams
from gatepost.errors import EngineError
from gatepost.verdict import JSON

_NOT_SAMPLING = frozenset(
    {
        "seed",
        "max_tokens",
        "stop_token_ids",
        "thinking_token_budget",
        "ignore_eos",
        "detokenize",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "output_kind",
        "skip_clone",
    }
)
"""Fields that are told under another name, come from the request, or change nothing of what is sampled."""

REJECTIONS = (TypeError, ValueError, VLLMValidationError)
"""How vLLM says no to values: its own error is a ``ValueError`` in 0.24 and none in 0.32."""


def build(
    params: SamplingParams, *, seed: int | None, max_tokens: int, thinking_token_budget: int | None = None
) -> VLLMSamplingParams:
    """The parameters of one request.

    vLLM says greedy as temperature 0, and then takes the other values for off.

    Raises:
        EngineError: ``refused``, for values that vLLM rejects, or a budget that this version does not know.
    """
    # Only the registered ids stop: a tokenizer's end of sequence is not one of them unless it was registered.
    values: dict[str, Any] = {
        "n": 1,
        "temperature": 0.0 if params.greedy else params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "min_p": params.min_p,
        "repetition_penalty": params.repetition_penalty,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "seed": seed,
        "stop": [],
        "stop_token_ids": list(params.stop_ids),
        "ignore_eos": True,
        "max_tokens": max_tokens,
        "min_tokens": 0,
        "logit_bias": None,
        "allowed_token_ids": None,
        "bad_words": [],
        "logprobs": None,
        "prompt_logprobs": None,
        "detokenize": False,
        "output_kind": RequestOutputKind.FINAL_ONLY,
    }
    if thinking_token_budget is not None:
        values["thinking_token_budget"] = thinking_token_budget
    try:
        return VLLMSamplingParams(**values)
    except REJECTIONS as error:
        raise EngineError(f"sampling: {error}", kind="refused") from error


def resolved(params: VLLMSamplingParams) -> dict[str, JSON]:
    """The sampling values of parameters that the engine holds, and any other value that is not neutral there."""
    values: dict[str, JSON] = {
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "min_p": params.min_p,
        "repetition_penalty": params.repetition_penalty,
        "greedy": params.sampling_type == SamplingType.GREEDY,
        "stop_ids": [*params.stop_token_ids, *([] if params.eos_token_id is None else [params.eos_token_id])],
    }
    neutral = VLLMSamplingParams()
    for name in params.__struct_fields__:
        known = name in values or name in _NOT_SAMPLING or name.startswith("_")
        # What is off is None in one version and False or empty in another.
        if not known and (getattr(params, name) or None) != (getattr(neutral, name) or None):
            values[name] = str(getattr(params, name))
    return values
