"""For tests of engines: the contract as a class to subclass, and builders of small specs and requests.

A test module for an engine of one's own needs two fixtures, ``fresh_engine`` being the same for one test each::

    @pytest.fixture(scope="module")
    def engine():
        with ChildSession(my_spec) as session:
            yield session

    class TestMyEngine(EngineContract):
        pass
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gatepost.engine import (
    FINISH_REASONS,
    Chunk,
    Completion,
    Engine,
    EngineFacts,
    EngineSpec,
    Prompt,
    Request,
    SamplingParams,
)
from gatepost.engines.plain import to_plain
from gatepost.engines.wire import Facts, Prompts, decode_answer, encode
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


class EngineContract:
    """What every engine has to do; subclass it with fixtures ``engine`` (shared) and ``fresh_engine`` (one test's).

    Attributes:
        conversations: what is rendered and sampled.
        observes_forwards: whether the engine sees the input lengths of its forward calls.
    """

    conversations: Mapping[str, Sequence[Mapping[str, str]]] = {
        "first": [{"role": "user", "content": "reverse the list"}],
        "second": [{"role": "user", "content": "sort the list and add one"}],
    }
    observes_forwards = True

    def test_facts_come_before_generation_sampling_included(self, fresh_engine: Engine) -> None:
        facts = fresh_engine.facts()
        assert facts.sampling == to_plain(build_sampling()), "the values of the spec, resolved"
        assert set(facts.markers) == {THINK_OPEN, THINK_CLOSE}
        assert None not in facts.markers.values()
        assert facts.model_eos_ids
        assert decode_answer(encode(Facts(facts))) == Facts(facts)

        collect(fresh_engine, self.requests(fresh_engine, sampling=build_sampling()))
        assert fresh_engine.facts().sampling == facts.sampling
        collect(fresh_engine, self.requests(fresh_engine, sampling=build_sampling(top_k=7)))
        assert fresh_engine.facts().sampling is None, "requests did not carry the values of the spec"

    def test_prompts_leave_one_thinking_block_open(self, engine: Engine) -> None:
        prompts, markers = engine.render(self.conversations), engine.facts().markers
        assert [prompt.task_id for prompt in prompts] == list(self.conversations)
        for prompt in prompts:
            assert prompt.token_ids.count(markers[THINK_OPEN] or 0) == 1
            assert markers[THINK_CLOSE] not in prompt.token_ids
        assert decode_answer(encode(Prompts(tuple(prompts)))) == Prompts(tuple(prompts))

    def test_every_request_is_completed_once_within_its_limits(self, engine: Engine) -> None:
        requests = [request for seed in range(4) for request in self.requests(engine, seed=seed)]
        sampled = collect(engine, requests)
        for request in requests:
            row = sampled[request.request_id]
            thinking, answer = _split(row.token_ids, request.think_close_id)
            assert 1 <= len(thinking) <= request.max_think_tokens
            assert len(answer) <= request.max_answer_tokens + 1  # and the stop id
            assert row.completion.finish_reason in FINISH_REASONS
            assert (row.completion.finish_reason == "stop") == (row.token_ids[-1] in request.sampling.stop_ids)
            assert row.completion.elapsed_seconds >= 0

    def test_forward_calls_are_observed(self, engine: Engine) -> None:
        for request in self.requests(engine):
            row = collect(engine, [request])[request.request_id]
            if not self.observes_forwards:
                assert row.forward_input_lengths is None
            else:
                assert row.forward_input_lengths is not None
                assert len(row.forward_input_lengths) == len(row.token_ids)
                assert row.forward_input_lengths[0] == len(request.token_ids)

    def test_a_seed_decides_its_own_sample_in_any_order(self, engine: Engine) -> None:
        requests = [request for seed in (1, 2) for request in self.requests(engine, seed=seed)]
        once, again = collect(engine, requests), collect(engine, requests[::-1])
        assert {name: row.token_ids for name, row in once.items()} == {n: row.token_ids for n, row in again.items()}

    def test_seeds_differ(self, engine: Engine) -> None:
        requests = [self.requests(engine, seed=seed, sampling=HOT)[0] for seed in range(4)]
        assert len({row.token_ids for row in collect(engine, requests).values()}) > 1

    def test_greedy_ignores_the_seed(self, engine: Engine) -> None:
        requests = [self.requests(engine, seed=seed, sampling=build_sampling(greedy=True))[0] for seed in (1, 2)]
        assert len({row.token_ids for row in collect(engine, requests).values()}) == 1

    def test_sampling_ends_at_a_stop_id(self, engine: Engine) -> None:
        request = self.requests(engine)[0]
        before = collect(engine, [request])[request.request_id].token_ids
        stop_id = before[len(before) // 2]
        stopping = replace(request, sampling=replace(request.sampling, stop_ids=(stop_id,)))
        row = collect(engine, [stopping])[request.request_id]
        assert row.token_ids == before[: before.index(stop_id) + 1]
        assert row.completion.finish_reason == "stop"

    def test_thinking_is_cut_at_its_limit(self, engine: Engine) -> None:
        request = self.requests(engine, max_think_tokens=1, sampling=build_sampling())[0]
        row = collect(engine, [request])[request.request_id]
        if row.token_ids[0] != request.think_close_id:
            assert (len(row.token_ids), row.completion.finish_reason) == (1, "length")

    def test_the_answer_is_cut_at_its_limit(self, engine: Engine) -> None:
        request = self.requests(engine, max_answer_tokens=3, sampling=build_sampling())[0]
        first = collect(engine, [request])[request.request_id].token_ids[0]
        closing_at_once = replace(request, think_close_id=first)  # whatever comes first is taken for the close
        row = collect(engine, [closing_at_once])[request.request_id]
        assert (len(row.token_ids), row.completion.finish_reason) == (1 + 3, "length")

    def test_a_request_past_the_context_is_refused_and_closing_twice_is_not(self, fresh_engine: Engine) -> None:
        request, limit = self.requests(fresh_engine)[0], fresh_engine.facts().max_model_len
        assert limit is not None, "an engine that knows no context length cannot refuse"
        assert _error_kind(fresh_engine, replace(request, max_think_tokens=limit)) == "refused"
        fresh_engine.close()
        fresh_engine.close()

    def requests(self, engine: Engine, *, seed: int = 1, **changes: JSON) -> list[Request]:
        """One request for each conversation."""
        facts = engine.facts()
        return [build_request(prompt, facts, seed=seed, **changes) for prompt in engine.render(self.conversations)]


class ForceCloseContract:
    """What an engine opened with ``force_close`` has to do; subclass with its ids and a fixture ``engine``."""

    force_close_ids: tuple[int, ...] = ()

    def test_used_up_thinking_is_closed_and_answered(self, engine: Engine) -> None:
        row, request = self._sample(engine), self._request(engine)
        retained = request.max_think_tokens + len(self.force_close_ids)
        answer = row.token_ids[retained:]
        assert row.injected_ids == row.token_ids[request.max_think_tokens : retained] == self.force_close_ids
        assert 1 <= len(answer) <= request.max_answer_tokens
        assert (row.completion.finish_reason == "length") == (len(answer) == request.max_answer_tokens)
        assert row.completion.stage_one_finish_reason == "length"
        assert row.completion.reprefilled_tokens == len(request.token_ids) + retained

    def test_an_end_of_its_own_is_kept(self, engine: Engine) -> None:
        first = self._sample(engine).token_ids[0]
        closed = self._sample(engine, think_close_id=first)
        assert 1 <= len(closed.token_ids) <= 1 + self._request(engine).max_answer_tokens
        stopped = self._sample(engine, sampling=replace(HOT, stop_ids=(first,)))
        assert (stopped.token_ids, stopped.completion.finish_reason) == ((first,), "stop")
        for row in (closed, stopped):
            assert (row.token_ids[0], row.injected_ids) == (first, ())
            assert (row.completion.stage_one_finish_reason, row.completion.reprefilled_tokens) == (None, 0)

    def test_each_stage_has_its_seed(self, engine: Engine) -> None:
        rows = [self._sample(engine, seed=one, stage_two_seed=two).token_ids for one, two in ((1, 5), (1, 6), (2, 5))]
        think = self._request(engine).max_think_tokens
        assert rows[0][:think] == rows[1][:think] != rows[2][:think]
        assert rows[0][think:] != rows[1][think:]

    def _request(self, engine: Engine, **changes: JSON) -> Request:
        (prompt,) = engine.render({"first": [{"role": "user", "content": "reverse the list"}]})
        values = {"stage_two_seed": 5, "max_think_tokens": 3, "sampling": HOT, **changes}
        return build_request(prompt, engine.facts(), **values)

    def _sample(self, engine: Engine, **changes: JSON) -> Sampled:
        (row,) = collect(engine, [self._request(engine, **changes)]).values()
        return row


class AdapterContract:
    """What an engine opened with an adapter that changes something has to do; subclass with a fixture ``engine``."""

    def test_the_adapter_changes_the_samples_that_ask_for_it_and_no_other(self, engine: Engine) -> None:
        (prompt,) = engine.render({"first": [{"role": "user", "content": "reverse the list"}]})
        request = build_request(prompt, engine.facts(), sampling=HOT, stage_two_seed=5)
        off, on, again = (
            replace(request, request_id=name, with_adapter=name != "off") for name in ("off", "on", "again")
        )
        rows = {name: row.token_ids for name, row in collect(engine, [off, on, again]).items()}
        assert rows["off"] != rows["on"] == rows["again"]
        assert collect(engine, [off])["off"].token_ids == rows["off"]
        assert collect(engine, [on])["on"].token_ids == rows["on"]


def _split(token_ids: Sequence[int], close_id: int) -> tuple[Sequence[int], Sequence[int]]:
    """Thinking, its close included, and answer."""
    end = token_ids.index(close_id) + 1 if close_id in token_ids else len(token_ids)
    return token_ids[:end], token_ids[end:]


def _error_kind(engine: Engine, request: Request) -> str | None:
    try:
        collect(engine, [request])
    except EngineError as error:
        return error.kind
    return None
