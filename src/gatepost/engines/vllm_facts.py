"""What a constructed vLLM engine is, read from its own objects. Imported in an engine's child alone.

Read with 0.24.0 and 0.32.0: every attribute is in both, or its absence is an unknown fact. Nothing is recomputed from a
formula of ours; where a number has to be derived (blocks per request), it is vLLM's own method that derives it.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import vllm
import vllm.envs as envs
from vllm.v1.kv_cache_interface import get_kv_cache_spec_kind, get_kv_cache_spec_sliding_window

from gatepost.engines import torch_environment
from gatepost.engines.vllm_graphs import GraphDispatch
from gatepost.engines.vllm_options import VLLMOptions
from gatepost.verdict import JSON

_GROWING_KINDS = ("full_attention", "mla_attention", "sink_full_attention", "unknown")
"""Cache groups in which a request holds more blocks the longer it gets."""

_UNTOLD_SUFFIXES = ("_KEY", "_TOKEN", "_IDENT", "_NAME")
"""Of environment variables: secrets, and names that are new in every process."""


def cuda_graphs(options: VLLMOptions, config: Any, dispatch: GraphDispatch) -> dict[str, JSON]:
    """Requested and resolved capture sizes in tokens, the graph mode and its parts, and what they leave uncovered."""
    compilation, mode = config.compilation_config, config.compilation_config.cudagraph_mode
    sizes = options.cudagraph_capture_sizes
    return {
        "requested_capture_sizes": None if sizes is None else list(sizes),
        "requested_max": options.max_cudagraph_capture_size,
        "requested_mode": options.cudagraph_mode,
        "resolved_capture_sizes": _list_or_none(compilation.cudagraph_capture_sizes),
        "resolved_max": compilation.max_cudagraph_capture_size,
        "mode": mode.name,
        "decode_mode": mode.decode_mode().name,
        "mixed_mode": mode.mixed_mode().name,
        "decode_query_tokens": decode_query_tokens(config),
        "uncovered_decode_widths": dispatch.uncovered_widths(config.scheduler_config.max_num_seqs),
        "adapter_cases": None if config.lora_config is None else dispatch.adapter_cases(),
    }


def decode_query_tokens(config: Any) -> int:
    """Tokens that one sequence takes in a decode step: the sampled one, and those that are speculated."""
    return 1 + int(config.num_speculative_tokens)


def kv_cache(config: Any, scheduler: Any) -> dict[str, JSON]:
    """The cache as it was allocated, sizes in tokens and blocks. Asked while no request runs."""
    cache, pool = config.cache_config, scheduler.kv_cache_manager.block_pool
    groups = [_group(group, config) for group in scheduler.kv_cache_config.kv_cache_groups]
    return {
        # vLLM's own number is the least over all groups, also over those that a request's tokens do not fill.
        "block_size": max(_growing_block_sizes(groups), default=cache.block_size),
        "num_blocks": scheduler.kv_cache_config.num_blocks,
        # An idle pool lacks what no request can ever have: the null block.
        "reserved_blocks": pool.num_gpu_blocks - pool.get_num_free_blocks(),
        "kv_cache_size_tokens": cache.kv_cache_size_tokens,
        "max_concurrency": cache.kv_cache_max_concurrency,
        "cache_dtype": str(cache.cache_dtype),
        "mamba_cache_mode": cache.mamba_cache_mode,
        "groups": groups,
    }


def _growing_block_sizes(groups: Iterable[Mapping[str, JSON]]) -> list[int]:
    """In tokens, of the groups in which a request holds more blocks the longer it gets."""
    return [group["block_size"] for group in groups if group["blocks_per_request"] is None]


def _group(group: Any, config: Any) -> dict[str, JSON]:
    """One cache group.

    ``blocks_per_request`` is the most that a request of any length holds: the state of a recurrent layer, the reach of
    a window. It is ``None`` where a request needs ``ceil(tokens / block_size)`` blocks instead.
    """
    spec = group.kv_cache_spec
    kind = get_kv_cache_spec_kind(spec).value
    grows = kind in _GROWING_KINDS or (kind == "mamba" and config.cache_config.mamba_cache_mode == "all")
    longest = -(-spec.max_memory_usage_bytes(config) // spec.page_size_bytes)
    return {
        "kind": kind,
        "block_size": spec.block_size,
        "layers": len(group.layer_names),
        "sliding_window": get_kv_cache_spec_sliding_window(spec),
        "blocks_per_request": None if grows else longest,
        "blocks_at_max_model_len": longest,
    }


def scheduler_settings(config: Any) -> dict[str, JSON]:
    """How requests are batched."""
    scheduler = config.scheduler_config
    return {
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "policy": str(scheduler.policy),
        "chunked_prefill": scheduler.enable_chunked_prefill,
        "async_scheduling": scheduler.async_scheduling,
        "prefix_caching": config.cache_config.enable_prefix_caching,
        "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
        "data_parallel_size": config.parallel_config.data_parallel_size,
        "speculative_tokens": config.num_speculative_tokens,
    }


def attention(runner: Any) -> str | None:
    """Names of the attention kernels, joined where layers differ; ``None`` if the runner is in another process."""
    groups: Iterable[Iterable[Any]] = getattr(runner, "attn_groups", ())
    return "+".join(sorted({group.backend.get_name() for part in groups for group in part})) or None


def environment(config: Any, runner: Any, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Every switch that changes numerics or scheduling, and the arguments that vLLM was given."""
    reasoning = getattr(config, "reasoning_config", None)
    return {
        **torch_environment.switches(),
        "vllm_version": vllm.__version__,
        "vllm_variables": _variables(),
        "batch_invariant": bool(envs.VLLM_BATCH_INVARIANT),
        "model_runner": None if runner is None else f"{type(runner).__module__}.{type(runner).__name__}",
        # Where the model lies on this machine is nobody's fact; what it is, its digests say.
        "engine_arguments": {name: arguments[name] for name in arguments if name not in ("model", "tokenizer")},
        "compilation_mode": str(getattr(config.compilation_config.mode, "name", None)),
        "reasoning_end_ids": _list_or_none(getattr(reasoning, "reasoning_end_token_ids", None)),
    }


def _variables() -> dict[str, JSON]:
    """vLLM's environment variables, as its user and vLLM itself set them."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith("VLLM_") and not name.endswith(_UNTOLD_SUFFIXES)
    }


def parameters_by_dtype(model: Any) -> dict[str, int]:
    """Parameter counts: some models keep a few weights in another type than the one asked for."""
    counts: Counter[str] = Counter()
    for parameter in model.parameters():
        counts[_dtype_name(parameter.dtype)] += parameter.numel()
    return dict(sorted(counts.items()))


def dtype(config: Any) -> str:
    """Of weights and activations, as vLLM resolved it."""
    return _dtype_name(config.model_config.dtype)


def model_eos_ids(config: Any) -> list[int] | None:
    """End-of-sequence ids of the model's own text config."""
    eos = getattr(config.model_config.hf_text_config, "eos_token_id", None)
    return None if eos is None else [eos] if isinstance(eos, int) else list(eos)


def _dtype_name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


def _list_or_none(values: Iterable[int] | None) -> list[int] | None:
    return None if values is None else list(values)
