"""The engine contract: what is requested, what the running engine resolved, what it returns.

An engine is one class with ``facts``, ``render``, ``generate`` and ``close``. It takes and gives plain data only,
so that it can live in a child process, and so that a receipt can hold everything it said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gatepost.verdict import JSON

FINISH_REASONS = ("stop", "length")
"""The only reasons that make a complete row. Anything else (abort, error, null, unknown) is not a row."""

THINKING_POLICIES = ("natural", "force_close", "engine_budget", "no_think")
"""How thinking is bounded. Samples of two policies never mix: a protocol registers one.

``natural``: a limit cuts the row. ``force_close``: two stages; a row that used up its budget gets the registered close
ids injected and its answer sampled after them. ``engine_budget``: the engine's own budget feature. ``no_think``: the
prompt closes the thinking channel.
"""


@dataclass(frozen=True)
class SamplingParams:
    """Every sampling value explicit; nothing is inherited from a model folder, a library or a server.

    ``top_k=0``, ``top_p=1.0``, ``min_p=0.0`` and ``repetition_penalty=1.0`` mean off, and have to be written.
    """

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    greedy: bool
    stop_ids: tuple[int, ...]


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter beside the model: a name for it, and the folder that holds its files."""

    name: str
    path: str


@dataclass(frozen=True)
class EngineSpec:
    """What is *requested* of an engine for one step.

    Attributes:
        kind: registered name of the engine, such as ``transformers``.
        model_path: local folder, or repository id, that holds weights and tokenizer.
        revision, tokenizer_revision: commit ids for a repository; ``None`` for a local folder.
        options: the engine's own arguments, every one registered; an unknown one is refused.
        markers: texts whose ids the engine must report (thinking markers, one-id answers).
        sampling: the values that requests will carry, so that facts can say what they resolve to before any does.
        thinking: one of ``THINKING_POLICIES``; an engine refuses what it does not implement.
        force_close_ids: what ``force_close`` injects; empty for every other policy.
        start_timeout_seconds: from process start to facts.
        idle_timeout_seconds: longest silence while generating.
        adapter: to be loaded beside the model, for the requests that ask for it; an engine refuses what it cannot load.
    """

    kind: str
    model_path: str
    revision: str | None
    tokenizer_revision: str | None
    options: Mapping[str, JSON]
    markers: tuple[str, ...]
    sampling: SamplingParams
    thinking: str
    force_close_ids: tuple[int, ...]
    start_timeout_seconds: float
    idle_timeout_seconds: float
    adapter: Adapter | None = None


@dataclass(frozen=True)
class EngineFacts:
    """What the constructed engine *is*, read back from it. A fact it cannot know is ``None``.

    Attributes:
        kind: the engine's registered name.
        versions: package -> installed version, listed before the engine's packages were imported.
        device, device_name: ``cpu`` or ``cuda:0``; the part's marketing name.
        dtype, attention: of the loaded weights (``float32``), of the attention kernel (``sdpa``).
        use_cache: whether the engine decodes with a KV cache.
        max_model_len: context length in tokens that the running engine accepts.
        model_files: file name -> SHA-256 hex digest, of what was loaded from a local folder.
        revision, tokenizer_revision: commits that were resolved, where the source has any.
        markers: text -> its one id in the loaded tokenizer; ``None`` when it is not exactly one id.
        model_eos_ids: end-of-sequence ids of the model's own config.
        tokenizer_eos_id: end-of-sequence id of the tokenizer.
        sampling: every value that shapes sampling, read from the objects that apply it.
        cuda_graphs, kv_cache, scheduler: engine-specific facts; ``None`` where the engine has no such part.
        environment: switches that change numerics, such as environment variables and thread counts.
        adapter_files: file name -> SHA-256 hex digest, of the adapter that was loaded.
    """

    kind: str
    versions: Mapping[str, str]
    device: str | None = None
    device_name: str | None = None
    dtype: str | None = None
    attention: str | None = None
    use_cache: bool | None = None
    max_model_len: int | None = None
    model_files: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    tokenizer_revision: str | None = None
    markers: Mapping[str, int | None] = field(default_factory=dict)
    model_eos_ids: Sequence[int] | None = None
    tokenizer_eos_id: int | None = None
    sampling: Mapping[str, JSON] | None = None
    cuda_graphs: Mapping[str, JSON] | None = None
    kv_cache: Mapping[str, JSON] | None = None
    scheduler: Mapping[str, JSON] | None = None
    environment: Mapping[str, JSON] = field(default_factory=dict)
    adapter_files: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Prompt:
    """One rendered prompt. ``token_ids`` are exactly what the model will be fed."""

    task_id: str
    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """One continuation to sample.

    Attributes:
        request_id: unique in the step.
        token_ids: the rendered prompt.
        seed: of this sample alone, in [0, 2^31).
        stage_two_seed: of the answer after a forced close; ``None`` for other policies.
        max_think_tokens: ids that may be sampled before thinking closes; the run is cut there.
        max_answer_tokens: ids that may be sampled after the close.
        think_close_id: the id that ends thinking.
        with_adapter: whether the adapter of the spec is applied, in both stages of a forced close.
    """

    request_id: str
    token_ids: tuple[int, ...]
    seed: int
    stage_two_seed: int | None
    sampling: SamplingParams
    max_think_tokens: int
    max_answer_tokens: int
    think_close_id: int
    with_adapter: bool = False


@dataclass(frozen=True)
class Chunk:
    """Ids as they come: what was sampled for a request since its last chunk.

    ``forward_input_lengths`` holds the input length in tokens of each forward call observed since then, or
    ``None`` where the engine cannot observe its forwards. ``injected`` ids were put there by the policy: they belong to
    the sequence and were not sampled.
    """

    request_id: str
    token_ids: tuple[int, ...]
    forward_input_lengths: tuple[int, ...] | None
    injected: bool = False


@dataclass(frozen=True)
class Completion:
    """The end of one request. Its ids are those of its chunks; only the rest is said here.

    ``text`` is the continuation decoded, special tokens included, a final stop id left out.
    ``finish_reason`` is passed on as the engine gave it; judging it is not the engine's business. After a forced
    close it is stage two's, and ``stage_one_finish_reason`` stage one's; ``reprefilled_tokens`` is the prefix in
    tokens that stage two fed again.
    """

    request_id: str
    finish_reason: str | None
    text: str
    elapsed_seconds: float
    stage_one_finish_reason: str | None = None
    reprefilled_tokens: int = 0


class Engine(Protocol):
    """A live engine. Constructed from an ``EngineSpec``; used from one thread; closed once."""

    def facts(self) -> EngineFacts:
        """What the running engine resolved. May be called again after generation, for counters."""
        ...

    def render(self, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Prompt]:
        """Render chat messages (task id -> messages) with the model's own template, thinking channel open."""
        ...

    def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
        """Sample every request; yields at least one chunk and exactly one completion for each."""
        ...

    def close(self) -> None:
        """Release the device. Calling it again does nothing."""
        ...
