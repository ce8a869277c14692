from typing import Any

import pytest

from gatepost.counts import count_of, counts_of
from gatepost.engine import Prompt
from gatepost.record import Record, Sample
from gatepost.stages import Scope
from tests.gates.builders import CLOSE, OPEN, STOP, closed, forced, plan, row


def sample(ids: list[int], prompt: tuple[int, ...] = (OPEN,), finish: str = "stop") -> Sample:
    prompts = (Prompt("t1", "", prompt),)
    samples = Record(plan(), rows=(row(("t1", 0), ids, finish=finish),), prompts=prompts).samples
    assert samples is not None
    return samples[0]


@pytest.mark.parametrize(
    ("prompt", "ids", "finish", "thinking", "stopped"),
    [
        ((OPEN,), closed(4), "stop", [30] * 3, True),
        ((OPEN,), [30, 31], "length", [30, 31], False),
        ((OPEN,), [30, 31, STOP], "stop", [30, 31], True),
        ((OPEN,), [STOP], "stop", [], True),
        ((OPEN,), [], "length", [], False),
        ((OPEN,), [30, CLOSE, 50, OPEN, 60, STOP], "stop", [30], True),  # the first block, and the last id
        ((OPEN,), [30, CLOSE, 50, OPEN, 60], "length", [30], False),
        ((OPEN,), [30, OPEN, 31, CLOSE], "length", [30, OPEN, 31], False),
        ((1,), [50, OPEN, 30, 31, CLOSE, 51, STOP], "stop", [30, 31], True),  # the model opens it
        ((1,), [50, OPEN, 30, 31], "length", [30, 31], False),
        ((OPEN, CLOSE), [50, STOP], "stop", [], True),
    ],
)
def test_thinking_ids_are_those_of_the_first_block(
    prompt: tuple[int, ...], ids: list[int], finish: str, thinking: list[int], stopped: bool
) -> None:
    found = sample(ids, prompt, finish)
    assert (list(found.thinking_ids), found.stopped) == (thinking, stopped)
    assert not found.continuation.blocks or len(thinking) == found.continuation.blocks[0].tokens


def test_an_injected_close_is_not_the_models_own() -> None:
    samples = Record(plan(), rows=(forced(("t1", 0), [30] * 16), row(("t1", 1), closed(4)))).samples
    assert samples is not None
    assert [found.continuation.close_step for found in samples] == [17, 4]
    assert [found.own_close_step for found in samples] == [None, 4]
    assert [found.closed_at(64) for found in samples] == [False, True]


def test_the_options_of_the_rung_that_samples_stand_over_the_protocols() -> None:
    rungs = {8: {"max_num_seqs": 19}, 16: {"max_num_seqs": 15}}
    options = {"max_num_seqs": 64, "seed": 0}
    assert plan(options=options, rung_options=rungs, scope=Scope.RUNG, cap=8).engine_options == {
        "max_num_seqs": 19,
        "seed": 0,
    }
    assert plan(options=options, rung_options=rungs, cap=8).engine_options["max_num_seqs"] == 15
    assert plan(options=options, scope=Scope.ONCE, cap=None).engine_options == options


@pytest.mark.parametrize(
    ("thinking", "scope", "reserve"),
    [("natural", Scope.NESTED, 20), ("natural", Scope.RUNG, 12), ("force_close", Scope.RUNG, 14)],
)
def test_the_reserve_is_everything_that_can_follow_a_prompt(thinking: str, scope: Scope, reserve: int) -> None:
    assert plan(thinking=thinking, scope=scope, cap=8).reserve_tokens == reserve


@pytest.mark.parametrize(
    ("scheduler", "registered", "widths"),
    [
        ({"max_num_seqs": 3}, {}, [1, 2, 3]),
        ({"max_num_seqs": 9}, {}, [1, 2, 3, 4]),  # four rows are registered
        ({"max_num_seqs": 2, "speculative_tokens": 2}, {}, [3, 6]),
        ({"max_num_seqs": 2}, {"speculative_config": {"num_speculative_tokens": 1}}, [2, 4]),
        ({"max_num_seqs": 2, "speculative_tokens": 0}, {"speculative_config": {"num_speculative_tokens": 1}}, [1, 2]),
        ({"max_num_seqs": 2}, {"speculative_config": {"method": "ngram"}}, None),
        ({"max_num_seqs": 0}, {}, None),
        ({}, {}, None),
        (None, {}, None),
    ],
)
def test_decode_widths(scheduler: dict[str, Any] | None, registered: dict[str, Any], widths: list[int] | None) -> None:
    found = plan(options=registered).decode_widths(scheduler)
    assert (None if found is None else list(found)) == widths
    assert plan(task_ids=(), options=registered).decode_widths(scheduler) is None


@pytest.mark.parametrize("value", [None, True, 1.0, "1", [1], -1])
def test_what_is_no_count_is_unknown(value: Any) -> None:
    assert count_of({"n": value}, "n") is None
    assert counts_of({"n": value}, "n") == (value if value == [1] else None)
    assert counts_of({"n": [1, value]}, "n") == ([1, value] if type(value) is int else None)


def test_counts() -> None:
    assert (count_of({"n": 0}, "n"), count_of({"n": 0}, "n", at_least=1), count_of([], "n")) == (0, None, None)
    assert (counts_of({"n": []}, "n"), counts_of({}, "n"), counts_of(None, "n")) == ([], None, None)
