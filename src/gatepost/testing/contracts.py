"""What every engine has to do, as test classes to subclass."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gatepost.engine import FINISH_REASONS, Engine, Request
from gatepost.engines.plain import to_plain
from gatepost.engines.wire import Facts, Prompts, decode_answer, encode
from gatepost.errors import EngineError
from gatepost.testing.builders import HOT, THINK_CLOSE, THINK_OPEN, Sampled, build_request, build_sampling, collect
from gatepost.verdict import JSON


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
