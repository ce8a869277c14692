"""A running vLLM engine, driven step by step. Imported in an engine's child alone.

It is vLLM's ``LLMEngine`` with the engine core in this process. Requests are added and aborted through it; steps are
taken from its core, whose outputs hold the new ids as they are, instead of through ``LLMEngine.step``, which makes of
each id of each request an object, a copy and a line of statistics: some 3 % of the time of a small model's step.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import vllm
from vllm import EngineArgs, LLMEngine
from vllm.exceptions import VLLMValidationError
from vllm.lora.request import LoRARequest
from vllm.platforms import current_platform
from vllm.v1.engine import EngineCoreEventType

from gatepost.engine import Adapter, EngineFacts, EngineSpec, SamplingParams
from gatepost.engines import torch_environment, vllm_facts, vllm_sampling
from gatepost.engines.adapter import digests as adapter_digests
from gatepost.engines.chat_tokenizer import ChatTokenizer
from gatepost.engines.model_folder import Source
from gatepost.engines.vllm_graphs import GraphDispatch
from gatepost.engines.vllm_options import VLLMOptions, refuse_unknown
from gatepost.errors import EngineError
from gatepost.verdict import JSON

ADAPTER_ID = 1
"""vLLM's number for the one adapter; 0 would mean none."""

IDLE_STEPS = 10_000
"""So many steps in a row without an id mean that no request can ever be scheduled; they take about a second."""


class Output(NamedTuple):
    """What one step gave for one request: new ids, and why it ended, if it did."""

    key: str
    token_ids: Sequence[int]
    finish_reason: str | None


class VLLMCore:
    """The engine, its tokenizer and its counters.

    Attributes:
        tokenizer: the one that the engine loaded.
        max_model_len: context length in tokens that the engine accepts now.
    """

    def __init__(self, options: VLLMOptions, source: Source, adapter: Adapter | None) -> None:
        """Load the model, allocate the cache, and load the adapter, if there is one.

        Raises:
            EngineError: ``refused``, for an argument that this vLLM has not, values or an adapter that it rejects, or
                another device.
        """
        self._options, self._source = options, source
        self._arguments = options.engine_arguments(source)
        refuse_unknown(self._arguments, EngineArgs.__dataclass_fields__, vllm_version=vllm.__version__)
        if current_platform.device_type != options.device:
            # The CUDA build names no device where it finds no driver.
            found = f"runs on {current_platform.device_type!r}" if current_platform.device_type else "finds no device"
            raise EngineError(
                f"options: device {options.device!r}, but this vLLM {vllm.__version__} {found}", kind="refused"
            )
        self._adapter_files = None if adapter is None else adapter_digests(Path(adapter.path))
        self._adapter = None if adapter is None else LoRARequest(adapter.name, ADAPTER_ID, adapter.path)
        self._engine = _start(self._arguments)
        if self._adapter is not None:
            _load_adapter(self._engine, self._adapter)
        self._config = self._engine.vllm_config
        self._scheduler = self._engine.engine_core.engine_core.scheduler
        self._runner = getattr(getattr(self._engine.model_executor, "driver_worker", None), "model_runner", None)
        self._dispatch = GraphDispatch(self._runner, decode_query_tokens=vllm_facts.decode_query_tokens(self._config))
        self._counts = {"preemptions": 0, "steps": 0, "sampled_tokens": 0}
        self.tokenizer = ChatTokenizer(self._engine.get_tokenizer())
        self.max_model_len: int = self._config.model_config.max_model_len

    def facts(self, spec: EngineSpec) -> EngineFacts:
        """Everything that can be read back from the running engine. Asked before the first request."""
        config = self._config
        device = config.device_config.device
        return EngineFacts(
            kind=spec.kind,
            versions={},
            device=str(device),
            device_name=torch_environment.device_name(device),
            dtype=vllm_facts.dtype(config),
            attention=vllm_facts.attention(self._runner),
            use_cache=bool(self._scheduler.kv_cache_config.kv_cache_groups),
            max_model_len=self.max_model_len,
            model_files=self._source.digests(),
            revision=self._source.revision,
            tokenizer_revision=self._source.tokenizer_revision,
            markers={marker: self.tokenizer.one_id(marker) for marker in spec.markers},
            model_eos_ids=vllm_facts.model_eos_ids(config),
            tokenizer_eos_id=self.tokenizer.eos_id,
            cuda_graphs=vllm_facts.cuda_graphs(self._options, config, self._dispatch),
            kv_cache=vllm_facts.kv_cache(config, self._scheduler),
            scheduler={**vllm_facts.scheduler_settings(config), **dict.fromkeys((*self._counts, "dispatch"))},
            environment={
                **vllm_facts.environment(config, self._runner, self._arguments),
                "parameters_by_dtype": self._engine.apply_model(vllm_facts.parameters_by_dtype)[0],
            },
            adapter_files=self._adapter_files,
        )

    def counters(self) -> Mapping[str, JSON]:
        """Counted since the start: preemptions, steps, sampled ids, and the graphs that the steps ran on."""
        return {**self._counts, "dispatch": self._dispatch.histogram()}

    def resolved(self, params: SamplingParams, *, thinking_token_budget: int | None) -> dict[str, JSON]:
        """Sampling values, read back from the request that the engine would make of them.

        Raises:
            EngineError: ``refused``, for values that this engine rejects.
        """
        asked = vllm_sampling.build(params, seed=0, max_tokens=1, thinking_token_budget=thinking_token_budget)
        try:
            request = self._engine.input_processor.process_inputs(
                "resolved", {"prompt_token_ids": [0]}, asked, self._engine.get_supported_tasks()
            )
        except vllm_sampling.REJECTIONS as error:
            raise EngineError(f"sampling: {error}", kind="refused") from error
        return vllm_sampling.resolved(request.sampling_params)

    def add(
        self,
        request_id: str,
        token_ids: Sequence[int],
        sampling: SamplingParams,
        *,
        seed: int | None,
        max_tokens: int,
        thinking_token_budget: int | None = None,
        with_adapter: bool = False,
    ) -> str:
        """Queue a request; returns the key that its outputs will bear."""
        params = vllm_sampling.build(
            sampling, seed=seed, max_tokens=max_tokens, thinking_token_budget=thinking_token_budget
        )
        prompt, adapter = {"prompt_token_ids": list(token_ids)}, self._adapter if with_adapter else None
        key: str = self._engine.add_request(request_id, prompt, params, lora_request=adapter)
        return key

    def outputs(self) -> Iterator[Output]:
        """What the steps give, step after step, without an end.

        Raises:
            EngineError: ``out_of_memory``, when the cache has no room for any of the requests that wait.
        """
        idle_steps = 0
        while idle_steps < IDLE_STEPS:
            outputs = self._engine.engine_core.get_output().outputs
            self._counts["steps"] += 1
            idle_steps = 0 if outputs else idle_steps + 1
            for output in outputs:
                self._count(output)
                reason = None if output.finish_reason is None else str(output.finish_reason)
                yield Output(output.request_id, output.new_token_ids, reason)
        raise EngineError(
            f"{IDLE_STEPS} steps without a new id: the KV cache has no room for any request that waits",
            kind="out_of_memory",
        )

    def drop(self, *keys: str) -> None:
        """Let go of requests, whether they run, wait or have ended."""
        self._engine.abort_request(list(keys), internal=True)

    def shut_down(self) -> None:
        """Stop the engine core and its workers."""
        self._engine.engine_core.shutdown()

    def _count(self, output: Any) -> None:
        # The same events that vLLM counts in its metric vllm:num_preemptions.
        preempted = sum(event.type == EngineCoreEventType.PREEMPTED for event in output.events or ())
        self._counts["preemptions"] += preempted
        self._counts["sampled_tokens"] += len(output.new_token_ids)


def _start(arguments: Mapping[str, JSON]) -> LLMEngine:
    """Construct the engine. Raises ``EngineError`` (``refused``) for arguments that cannot be had."""
    taken = copy.deepcopy(dict(arguments))  # vLLM puts objects into nested ones, and the facts tell what was passed
    try:
        engine_args = EngineArgs(**{**taken, **_reasoning(arguments.get("reasoning_config"))})
    except (KeyError, *vllm_sampling.REJECTIONS) as error:  # KeyError: a graph mode that does not exist
        raise EngineError(f"options: vLLM {vllm.__version__} refuses {error}", kind="refused") from error
    try:
        return LLMEngine.from_engine_args(engine_args)
    except (ValueError, VLLMValidationError) as error:
        raise EngineError(f"vLLM {vllm.__version__} refuses: {error}", kind="refused") from error


def _load_adapter(engine: LLMEngine, adapter: LoRARequest) -> None:
    """Load the adapter before the first request does, which would be an error in the middle of a run."""
    try:
        loaded = engine.add_lora(adapter) and ADAPTER_ID in engine.list_loras()
    except Exception as error:  # an unreadable file, an unknown module, a rank too high: vLLM has many classes for it
        raise EngineError(f"vLLM {vllm.__version__} refuses the adapter: {error}", kind="refused") from error
    if not loaded:
        raise EngineError(f"vLLM {vllm.__version__} did not load the adapter {adapter.lora_name!r}", kind="refused")


def _reasoning(config: JSON) -> dict[str, Any]:
    """The one nested config that vLLM takes as an object and not as a dict."""
    if config is None:
        return {}
    from vllm.config.reasoning import ReasoningConfig

    return {"reasoning_config": ReasoningConfig(**config)}
