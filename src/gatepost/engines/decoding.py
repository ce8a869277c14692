"""Sampling with torch: one sequence, one forward call per sampled id. Imported in the engine's child alone.

The logits processors are those of Transformers, applied in the order of its own ``generate``, but built from the
registered values and nothing else: a model folder's generation config is never looked at.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from gatepost.engine import SamplingParams
from gatepost.errors import EngineError
from gatepost.verdict import JSON


class _Part(NamedTuple):
    """One sampling value: the class that applies it, where that keeps it, and the value at which it is not built."""

    build: Callable[[Any], Any]
    attribute: str
    off: float


_PARTS: Mapping[str, _Part] = {
    "repetition_penalty": _Part(RepetitionPenaltyLogitsProcessor, "penalty", 1.0),
    "temperature": _Part(TemperatureLogitsWarper, "temperature", 1.0),
    "top_k": _Part(TopKLogitsWarper, "top_k", 0),
    "top_p": _Part(TopPLogitsWarper, "top_p", 1.0),
    "min_p": _Part(MinPLogitsWarper, "min_p", 0.0),
}
"""In the order of application."""


class Sampler:
    """Draws an id from logits. Greedy takes the largest after the processors, and has no temperature but 0 or 1."""

    def __init__(self, params: SamplingParams) -> None:
        """Build the processors. Raises ``EngineError`` (``refused``) for values that Transformers rejects."""
        self._greedy = params.greedy
        # Zero is how greedy is often registered. It has no processor, and dividing by it has no meaning.
        self._unbuilt_temperature = 0.0 if params.greedy and params.temperature == 0.0 else 1.0
        self._processors: Any = LogitsProcessorList()
        for name, part in _PARTS.items():
            value = getattr(params, name)
            if value == (self._unbuilt_temperature if name == "temperature" else part.off):
                continue
            try:
                self._processors.append(part.build(value))
            except ValueError as error:
                raise EngineError(f"sampling: {name} {value}: {error}", kind="refused") from error

    def resolved(self) -> dict[str, JSON]:
        """The sampling values, read back from the processors that were built; unbuilt ones are off."""
        values: dict[str, JSON] = {name: part.off for name, part in _PARTS.items()}
        values.update(greedy=self._greedy, temperature=self._unbuilt_temperature)
        for processor in self._processors:
            for name, part in _PARTS.items():
                if type(processor) is part.build:
                    values[name] = getattr(processor, part.attribute)
        return values

    def draw(self, ids: torch.Tensor, logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One id as a [1, 1] tensor, from the ids so far [1, n] and the last logits [1, vocabulary]."""
        scores: torch.Tensor = self._processors(ids, logits.to(torch.float32, copy=True))
        if torch.isnan(scores).any():  # argmax would take the first NaN for the largest
            raise FloatingPointError(f"logits are NaN after {ids.shape[-1]} tokens")
        if self._greedy:
            return scores.argmax(dim=-1, keepdim=True)
        return torch.multinomial(scores.softmax(dim=-1), num_samples=1, generator=generator)


class Decoder:
    """Feeds a causal language model, watches what it is really fed, and samples from what it says.

    Attributes:
        sampling_device: where logits are processed and ids drawn.
    """

    def __init__(self, model: Any, *, use_cache: bool, deterministic: bool) -> None:
        self._model, self._use_cache = model, use_cache
        # Top-p takes a cumulative sum, which has no deterministic implementation on CUDA.
        self.sampling_device = torch.device("cpu") if deterministic else model.device
        # Logits of a long prompt take gigabytes, and only the last ones are sampled from.
        takes_limit = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._arguments = {"use_cache": use_cache, **({"logits_to_keep": 1} if takes_limit else {})}
        self._lengths: list[int] = []
        model.register_forward_pre_hook(self._observe, with_kwargs=True)

    def sample(self, prompt: Sequence[int], sampler: Sampler, seed: int) -> Iterator[int]:
        """Endless continuation of a prompt. Drawing the next id makes exactly one forward call."""
        generator = torch.Generator(self.sampling_device).manual_seed(seed)
        ids = torch.tensor([prompt], device=self.sampling_device)
        fed, cache = ids, None
        while True:
            with torch.inference_mode():
                logits, cache = self._forward(fed, cache)
                drawn = sampler.draw(ids, logits, generator)
                ids = torch.cat([ids, drawn], dim=-1)
            yield int(drawn)
            fed = drawn if self._use_cache else ids

    def take_lengths(self) -> tuple[int, ...]:
        """Input lengths in tokens of the forward calls since this was last asked."""
        lengths, self._lengths = tuple(self._lengths), []
        return lengths

    def _forward(self, fed: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        output = self._model(input_ids=fed.to(self._model.device), past_key_values=cache, **self._arguments)
        if self._use_cache and output.past_key_values is None:
            raise EngineError("the model returned no cache, expected one with use_cache", kind="refused")
        return output.logits[:, -1, :].to(self.sampling_device), output.past_key_values if self._use_cache else None

    def _observe(self, _model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        ids = args[0] if args else kwargs.get("input_ids")
        fed = kwargs["inputs_embeds"] if ids is None else ids
        self._lengths.append(int(fed.shape[1]))  # [batch, tokens] or [batch, tokens, width]
