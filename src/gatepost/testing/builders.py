"""Small specs and requests for tests of engines, and what an engine says of them, gathered."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gatepost.engine import Chunk, Completion, Engine, EngineFacts, EngineSpec, Prompt, Request, SamplingParams
from gatepost.engines.wire import decode_answer, encode
from gatepost.errors import EngineError
from gatepost.verdict import JSON

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"


def build_spec(kind: str = "scripted", *, options: Mapping[str, JSON] | None = None, **changes: JSON) -> EngineSpec:
    """An engine spec with short deadlines; the scripted engine needs nothing more.

    Args:
        kind: registered name, or ``module:Class``.
        options: the engine's options.
        changes: any other field of ``EngineSpec``.
    """
    spec = EngineSpec(
        kind=kind,
        model_path=kind,
        revision=None,
        tokenizer_revision=None,
        options=options or {},
        markers=(THINK_OPEN, THINK_CLOSE),
        sampling=build_sampling(),
        thinking="natural",
        force_close_ids=(),
        start_timeout_seconds=120.0,
        idle_timeout_seconds=60.0,
    )
    return replace(spec, **changes)


def build_sampling(**changes: JSON) -> SamplingParams:
    """Study B's sampling, with nothing that stops, and ``changes`` to it."""
    sampling = SamplingParams(
        temperature=0.6, top_p=0.95, top_k=20, min_p=0.0, repetition_penalty=1.0, greedy=False, stop_ids=()
    )
    return replace(sampling, **changes)


HOT = build_sampling(temperature=2.0, top_p=1.0, top_k=0)  # two seeds hardly ever agree


def build_request(prompt: Prompt, facts: EngineFacts, *, seed: int = 1, **changes: JSON) -> Request:
    """A request for one short continuation of a rendered prompt, stopping at the model's own end of sequence.

    Args:
        prompt: rendered by the engine.
        facts: of the engine, for the ids of its markers.
        seed: of this sample.
        changes: any other field of ``Request``.
    """
    close_id = facts.markers.get(THINK_CLOSE)
    if close_id is None:
        raise EngineError(f"engine {facts.kind!r}: {THINK_CLOSE} is not one id", kind="refused")
    request = Request(
        request_id=f"{prompt.task_id}/{seed}",
        token_ids=prompt.token_ids,
        seed=seed,
        stage_two_seed=None,
        sampling=build_sampling(stop_ids=tuple(facts.model_eos_ids or ())),
        max_think_tokens=24,
        max_answer_tokens=8,
        think_close_id=close_id,
    )
    return replace(request, **changes)


@dataclass(frozen=True)
class Sampled:
    """All that an engine said of one request.

    Attributes:
        token_ids: of its chunks, in order.
        injected_ids: those of them that the policy put there.
        forward_input_lengths: likewise, in tokens; ``None`` if any chunk had none.
        completion: its one completion.
    """

    token_ids: tuple[int, ...]
    injected_ids: tuple[int, ...]
    forward_input_lengths: tuple[int, ...] | None
    completion: Completion


def collect(engine: Engine, requests: Sequence[Request]) -> dict[str, Sampled]:
    """Generate, and gather what came by request id. AssertionError for a stream that breaks the contract."""
    chunks: dict[str, list[Chunk]] = {request.request_id: [] for request in requests}
    sampled: dict[str, Sampled] = {}
    for event in engine.generate(requests):
        assert decode_answer(encode(event)) == event, "an event has to survive the pipe unchanged"
        assert event.request_id in chunks, f"{event.request_id} was not asked for"
        assert event.request_id not in sampled, f"{event.request_id} was complete already"
        if isinstance(event, Chunk):
            chunks[event.request_id].append(event)
        else:
            sampled[event.request_id] = _gather(chunks[event.request_id], event)
    assert sampled.keys() == chunks.keys(), "exactly one completion for each request"
    return sampled


def _gather(chunks: Iterable[Chunk], completion: Completion) -> Sampled:
    chunks = list(chunks)
    assert chunks, f"{completion.request_id}: at least one chunk comes before the completion"
    lengths = [chunk.forward_input_lengths for chunk in chunks]
    return Sampled(
        token_ids=tuple(token_id for chunk in chunks for token_id in chunk.token_ids),
        injected_ids=tuple(token_id for chunk in chunks if chunk.injected for token_id in chunk.token_ids),
        forward_input_lengths=None if None in lengths else tuple(n for part in lengths for n in part or ()),
        completion=completion,
    )
