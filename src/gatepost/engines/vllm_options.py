"""What a protocol registers for vLLM, and the engine arguments that come of it. Needs no vLLM.

Every option is an engine argument of vLLM under vLLM's own name, with three exceptions: ``device``, which chooses
nothing and is compared with what the installed build runs on; ``cudagraph_mode``, a field of vLLM's compilation config;
and ``chunk_tokens``, gatepost's own. An argument that vLLM decides for itself unless told is ``null`` or left out:
``null`` means that it is not passed, and the facts say what came of it.
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self

from gatepost.engines.model_folder import Source
from gatepost.engines.plain import from_plain, to_plain
from gatepost.errors import DataError, EngineError
from gatepost.verdict import JSON

GRAPH_OPTIONS = ("cudagraph_mode", "cudagraph_capture_sizes", "max_cudagraph_capture_size")
"""Options that go into vLLM's compilation config."""

SET_BY_GATEPOST = frozenset(
    {
        "model",
        "tokenizer",
        "revision",
        "tokenizer_revision",
        "generation_config",
        "compilation_config",
        "disable_log_stats",
        "skip_tokenizer_init",
    }
)
"""Arguments that follow from the rest of the plan, or that a run would be unreadable without."""


@dataclass(frozen=True)
class VLLMOptions:
    """The options that have to be registered, and some that may be; see the module docstring.

    Attributes:
        device: ``cpu`` or ``cuda``.
        load_format: ``auto`` loads weights, ``dummy`` makes up some and needs none.
        cudagraph_capture_sizes: decode widths in tokens to capture; ``None`` leaves the list to vLLM.
        max_cudagraph_capture_size: where vLLM's own list has to end; it may end below, at a step of its ladder.
        cudagraph_mode: such as ``FULL_AND_PIECEWISE``.
        chunk_tokens: ids per chunk. A killed child loses at most one less for each row that it was sampling, so with 1
            it loses none; each chunk costs some 30 microseconds.
        further: any other argument that the installed vLLM knows.
    """

    device: str
    dtype: str
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    tensor_parallel_size: int
    enforce_eager: bool
    enable_prefix_caching: bool
    async_scheduling: bool
    seed: int
    load_format: str
    chunk_tokens: int
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    max_cudagraph_capture_size: int | None = None
    cudagraph_mode: str | None = None
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    further: Mapping[str, JSON] = field(default_factory=dict)

    @classmethod
    def read(cls, registered: Mapping[str, JSON]) -> Self:
        """Read the registered options. Raises ``EngineError`` (``refused``) for a missing or an impossible one."""
        own = {option.name for option in dataclasses.fields(cls)} - {"further"}
        further = {name: value for name, value in registered.items() if name not in own and value is not None}
        if taken := SET_BY_GATEPOST & further.keys():
            names = ", ".join(sorted(taken))
            raise EngineError(f"options: {names} cannot be registered, gatepost sets it", kind="refused")
        named = {name: value for name, value in registered.items() if name in own}
        try:
            options = from_plain(cls, {**named, "further": further}, where="options", defaults=True)
        except DataError as error:
            raise EngineError(str(error), kind="refused") from error
        for name, is_possible, expected in (
            ("device", options.device in ("cpu", "cuda"), "cpu or cuda"),
            ("load_format", options.load_format in ("auto", "dummy"), "auto or dummy"),
            ("chunk_tokens", options.chunk_tokens > 0, "at least 1"),
        ):
            if not is_possible:
                value = getattr(options, name)
                raise EngineError(f"options: {name} {value!r}, expected {expected}", kind="refused")
        return options

    def engine_arguments(self, source: Source) -> dict[str, JSON]:
        """The arguments that are passed to vLLM, and no other."""
        passed = {name: value for name, value in to_plain(self).items() if value is not None}
        for name in ("device", "chunk_tokens", "further"):
            del passed[name]
        graphs = {name: passed.pop(name) for name in GRAPH_OPTIONS if name in passed}
        return {
            **passed,
            **self.further,
            "compilation_config": graphs,
            "model": str(source.model),
            "tokenizer": str(source.tokenizer),
            # Else vLLM takes sampling defaults from the model's folder.
            "generation_config": "vllm",
            # Else the engine core counts no preemptions.
            "disable_log_stats": False,
        }


def refuse_unknown(arguments: Collection[str], known: Collection[str], *, vllm_version: str) -> None:
    """Raise ``EngineError`` (``refused``) for arguments that the installed vLLM has not; it would not say so itself."""
    if unknown := sorted(set(arguments) - set(known)):
        raise EngineError(f"options: vLLM {vllm_version} has no engine argument {', '.join(unknown)}", kind="refused")
