"""The scripted engine does what its script says, and its text can be taken back to ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.engine import EngineFacts
from gatepost.engines import scripted_text
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import EngineError
from gatepost.testing import Sampled, build_request, build_sampling, build_spec, collect

CLOSE = scripted_text.IDS["</think>"]


def _sample(*rules: dict[str, object], seed: int = 1, max_think_tokens: int = 40) -> Sampled:
    engine = ScriptedEngine(build_spec(options={"rules": list(rules)}))
    (prompt,) = engine.render({"task": [{"role": "user", "content": "reverse"}]})
    request = build_request(prompt, engine.facts(), seed=seed, max_think_tokens=max_think_tokens)
    return collect(engine, [request])[request.request_id]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives(text: str) -> None:
    assert scripted_text.decode(scripted_text.encode(text)) == text


@given(st.lists(st.sampled_from(list(scripted_text.IDS.values()))))
def test_every_sequence_of_words_survives(ids: list[int]) -> None:
    assert scripted_text.encode(scripted_text.decode(ids)) == ids


def test_the_two_ends_of_sequence_differ() -> None:
    facts = ScriptedEngine(build_spec()).facts()
    assert facts.tokenizer_eos_id not in (facts.model_eos_ids or [])


def test_the_close_comes_at_the_scripted_step() -> None:
    row = _sample({"think_tokens": [7, 7], "answers": ["First: cat"]})
    assert row.token_ids.index(CLOSE) + 1 == 7
    assert row.completion.text.endswith("</think>\nFirst: cat")
    assert row.completion.finish_reason == "stop"


def test_a_range_of_steps_depends_on_the_seed() -> None:
    steps = {_sample({"think_tokens": [2, 30]}, seed=seed).token_ids.index(CLOSE) for seed in range(8)}
    assert len(steps) > 1
    assert steps <= set(range(1, 30))


def test_a_loop_can_be_scripted() -> None:
    row = _sample({"think_tokens": None, "think_text": " wait so"}, max_think_tokens=20)
    assert row.token_ids == tuple(scripted_text.encode(" wait so" * 10))
    assert row.completion.finish_reason == "length"


def test_an_answer_can_run_on() -> None:
    row = _sample({"think_tokens": [1, 1], "answers": ["First: cat"], "stop": False})
    assert row.completion.text == "</think>\nFirst: cat cat cat cat cat cat"
    assert row.completion.finish_reason == "length"


def test_an_end_of_sequence_can_come_inside_thinking() -> None:
    row = _sample({"think_text": " wait<|endoftext|>", "think_tokens": [9, 9]})
    assert row.completion.text == " wait"
    assert row.completion.finish_reason == "stop"


@pytest.mark.parametrize("reason", ["abort", "error", None, "tool_calls"])
def test_a_finish_reason_is_passed_on_unjudged(reason: str | None) -> None:
    """Case e2: aborted and unfinished rows reach the gates as they are."""
    assert _sample({"finish_reason": reason}).completion.finish_reason == reason


def test_an_uncached_engine_can_be_scripted() -> None:
    """Case f1."""
    row = _sample({"think_tokens": [6, 6], "forwards": "growing"})
    assert row.forward_input_lengths is not None
    start = row.forward_input_lengths[0]
    assert row.forward_input_lengths == tuple(range(start, start + len(row.token_ids)))


def test_the_first_rule_that_matches_decides() -> None:
    rules = [
        {"match": "other/*", "answers": ["no"]},
        {"match": "task/*", "answers": ["First: dog"]},
        {"answers": ["no"]},
    ]
    assert _sample(*rules).completion.text.endswith("First: dog")
    with pytest.raises(EngineError, match="no rule matches"):
        _sample({"match": "other/*"})


def test_facts_can_be_scripted() -> None:
    options = {"facts": {"kv_cache": {"kv_cache_size_tokens": 996_864, "block_size": 528}, "use_cache": False}}
    facts = ScriptedEngine(build_spec(options=options)).facts()
    assert isinstance(facts, EngineFacts)
    assert facts.kv_cache == {"kv_cache_size_tokens": 996_864, "block_size": 528}
    assert facts.use_cache is False


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_len": 4}, "unknown max_len"),
        ({"rules": [{"thinks": 4}]}, r"rules\[0\]: unknown thinks"),
        ({"facts": {"colour": "red"}}, "facts: unknown colour"),
        ({"facts": {"use_cache": "yes"}}, "use_cache: found 'yes'"),
        ({"start_fault": "sulk"}, "fault 'sulk' is unknown"),
        ({"start_fault": "kill"}, "needs an engine in a child"),
    ],
)
def test_options_are_strict(options: dict[str, object], problem: str) -> None:
    with pytest.raises(EngineError, match=problem) as caught:
        ScriptedEngine(build_spec(options=options))
    assert caught.value.kind == "refused"


def test_sampling_is_unknown_once_a_request_differs_from_the_spec() -> None:
    engine = ScriptedEngine(build_spec())
    (prompt,) = engine.render({"task": [{"role": "user", "content": "reverse"}]})
    collect(engine, [build_request(prompt, engine.facts(), sampling=build_sampling(), max_think_tokens=3)])
    assert engine.facts().sampling is not None
    collect(engine, [build_request(prompt, engine.facts(), sampling=build_sampling(top_k=7))])
    assert engine.facts().sampling is None
