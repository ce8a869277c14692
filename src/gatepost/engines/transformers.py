"""Hugging Face Transformers, batch one and unpadded: the engine of study B.

This module needs neither torch nor Transformers; constructing the engine does, and happens in an engine's child alone.
So the packages have been listed before, and a missing one is one clear error.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gatepost.engine import Chunk, Completion, EngineFacts, EngineSpec, Prompt, Request, SamplingParams
from gatepost.engines.adapter import refuse_unless_taken
from gatepost.engines.model_folder import locate
from gatepost.engines.plain import from_plain
from gatepost.engines.thinking_budget import complete, refuse_unless_implemented, refuse_unless_it_fits
from gatepost.errors import DataError, EngineError
from gatepost.verdict import JSON

if TYPE_CHECKING:
    from gatepost.engines.causal_lm import CausalLM

DTYPES = ("float32", "bfloat16")
ATTENTION = ("sdpa", "eager")


@dataclass(frozen=True)
class TransformersOptions:
    """What a protocol has to register for this engine; none has a default.

    Attributes:
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: of weights and activations, ``float32`` or ``bfloat16``.
        attention: attention kernel, ``sdpa`` or ``eager``.
        use_cache: decode with a KV cache. Without it every forward call is fed the whole sequence again.
        max_model_len: context length in tokens; no request may go past it.
        threads: CPU threads of one operation. The last bits of sums depend on it.
        deterministic: refuse operations without a deterministic implementation, and sample on the CPU.
    """

    device: str
    dtype: str
    attention: str
    use_cache: bool
    max_model_len: int
    threads: int
    deterministic: bool

    @classmethod
    def read(cls, registered: Mapping[str, JSON]) -> "TransformersOptions":
        """Read what is registered. Raises ``EngineError`` (``refused``) for a missing or impossible option."""
        try:
            options = from_plain(cls, dict(registered), where="options")
        except DataError as error:
            raise EngineError(str(error), kind="refused") from error
        for name, is_possible, expected in (
            ("device", re.fullmatch(r"cpu|cuda(:\d+)?", options.device), "cpu, cuda or cuda:N"),
            ("dtype", options.dtype in DTYPES, " or ".join(DTYPES)),
            ("attention", options.attention in ATTENTION, " or ".join(ATTENTION)),
            ("max_model_len", options.max_model_len > 0, "at least 1"),
            ("threads", options.threads > 0, "at least 1"),
        ):
            if not is_possible:
                value = getattr(options, name)
                raise EngineError(f"options: {name} {value!r}, expected {expected}", kind="refused")
        return options


class TransformersEngine:
    """Follows ``gatepost.engine.Engine``."""

    def __init__(self, spec: EngineSpec) -> None:
        """Load model and tokenizer.

        Raises:
            EngineError: ``refused``, for options, a model folder or a device that cannot be had as registered.
            ModuleNotFoundError: torch or Transformers is not installed.
        """
        refuse_unless_implemented(spec, ("natural", "no_think"))
        if spec.adapter is not None:
            refuse_unless_taken("transformers", spec.options)
        self._options, source = TransformersOptions.read(spec.options), locate(spec)

        from gatepost.engines import causal_lm

        self._model: CausalLM | None = causal_lm.CausalLM(self._options, source)
        self._thinking = spec.thinking == "natural"
        self._facts = replace(self._model.facts(spec), sampling=self._resolved(spec.sampling))

    def facts(self) -> EngineFacts:
        """What was loaded. ``sampling`` becomes unknown once a request came with other values than the spec's."""
        return self._facts

    def render(self, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Prompt]:
        """Render with the model's chat template. It writes the special tokens itself; none is added."""
        tokenizer, thinking = self._open().tokenizer, self._thinking
        rendered = {name: tokenizer.render(messages, thinking=thinking) for name, messages in conversations.items()}
        return [Prompt(task_id, text, token_ids) for task_id, (text, token_ids) in rendered.items()]

    def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
        """Sample one request after the other."""
        batch, model = list(requests), self._open()
        refuse_unless_it_fits(batch, self._options.max_model_len)
        samplers = [model.sampler(request.sampling) for request in batch]
        if any(self._resolved(request.sampling) != self._facts.sampling for request in batch):
            self._facts = replace(self._facts, sampling=None)
        for request, sampler in zip(batch, samplers, strict=True):
            yield from complete(
                request,
                model.sample(request.token_ids, sampler, request.seed),
                take_lengths=model.take_lengths,
                decode=model.tokenizer.decode,
                is_closed=not self._thinking,
            )

    def close(self) -> None:
        """Let go of the model. Device memory that the process still holds goes with the process."""
        self._model = None

    def _resolved(self, params: SamplingParams) -> dict[str, JSON]:
        """Sampling values, read back from the objects that apply them."""
        return {**self._open().sampler(params).resolved(), "stop_ids": list(params.stop_ids)}

    def _open(self) -> "CausalLM":
        if self._model is None:
            raise EngineError("the engine is closed", kind="refused")
        return self._model
