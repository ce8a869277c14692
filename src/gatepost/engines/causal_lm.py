"""A causal language model and its tokenizer, loaded exactly as registered. Imported in an engine's child alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from gatepost.engine import EngineFacts, EngineSpec, SamplingParams
from gatepost.engines import torch_environment
from gatepost.engines.chat_tokenizer import ChatTokenizer
from gatepost.engines.decoding import Decoder, Sampler
from gatepost.engines.model_folder import Source
from gatepost.errors import EngineError

if TYPE_CHECKING:
    from gatepost.engines.transformers import TransformersOptions


class CausalLM:
    """Model, tokenizer and decode loop."""

    def __init__(self, options: "TransformersOptions", source: Source) -> None:
        """Load from local files only. Raises ``EngineError`` (``refused``) where the model is not as registered."""
        self._options, self._source = options, source
        device = torch_environment.set_up(options.device, threads=options.threads, deterministic=options.deterministic)
        self.tokenizer = ChatTokenizer(AutoTokenizer.from_pretrained(source.tokenizer, local_files_only=True))
        model: Any = AutoModelForCausalLM.from_pretrained(
            source.model,
            dtype=getattr(torch, options.dtype),
            attn_implementation=options.attention,
            use_safetensors=True,
            local_files_only=True,
        )
        self._model = model.to(device).eval()
        empty: Any = GenerationConfig
        # The decode loop never reads it. An empty one makes sure that no method of the model does either.
        self._model.generation_config = empty()
        self._config = self._model.config.get_text_config()
        self._decoder = Decoder(self._model, use_cache=options.use_cache, deterministic=options.deterministic)
        self._refuse_other_than_registered()

    def facts(self, spec: EngineSpec) -> EngineFacts:
        """Everything that can be read back from the loaded objects."""
        eos = self._config.eos_token_id
        return EngineFacts(
            kind=spec.kind,
            versions={},
            device=str(self._model.device),
            device_name=torch_environment.device_name(self._model.device),
            dtype=str(self._model.dtype).removeprefix("torch."),
            attention=self._config._attn_implementation,
            use_cache=self._options.use_cache,
            max_model_len=self._options.max_model_len,
            model_files=self._source.digests(),
            revision=self._source.revision,
            tokenizer_revision=self._source.tokenizer_revision,
            markers={marker: self.tokenizer.one_id(marker) for marker in spec.markers},
            model_eos_ids=None if eos is None else [eos] if isinstance(eos, int) else list(eos),
            tokenizer_eos_id=self.tokenizer.eos_id,
            environment={
                **torch_environment.switches(),
                "sampling_device": str(self._decoder.sampling_device),
                "parameters_by_dtype": self._parameters_by_dtype(),
            },
        )

    def sampler(self, params: SamplingParams) -> Sampler:
        """The objects that apply the sampling values."""
        return Sampler(params)

    def sample(self, prompt: Sequence[int], sampler: Sampler, seed: int) -> Iterator[int]:
        """The endless continuation of a prompt."""
        return self._decoder.sample(prompt, sampler, seed)

    def take_lengths(self) -> tuple[int, ...]:
        """Input lengths in tokens of the forward calls since this was last asked."""
        return self._decoder.take_lengths()

    def _refuse_other_than_registered(self) -> None:
        positions = getattr(self._config, "max_position_embeddings", None)
        if positions is not None and self._options.max_model_len > positions:
            raise EngineError(
                f"options: max_model_len {self._options.max_model_len}, but the model has {positions} positions",
                kind="refused",
            )

    def _parameters_by_dtype(self) -> dict[str, int]:
        """Parameter counts: some models keep a few weights in another type than the one asked for."""
        counts: Counter[str] = Counter()
        for parameter in self._model.parameters():
            counts[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
        return dict(sorted(counts.items()))
