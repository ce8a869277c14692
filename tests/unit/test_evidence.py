from array import array
from typing import Any

import pytest

from gatepost.engine import EngineFacts, Prompt
from gatepost.evidence import AFTER_GENERATION, CONTENT_CHANNELS, Evidence, Record, Tasks, UndeclaredChannelError
from gatepost.fingerprint import RowKey
from gatepost.stages import Scope
from tests.gates.builders import closed, plan, row, rows_of

FULL = Record(
    plan(),
    engine=EngineFacts(kind="scripted", versions={}),
    tasks=Tasks((), ()),
    reach=(),
    prompts=(),
    rows=(),
    scheduler={},
    text={},
    grades={},
    scores=(),
    approvals=(),
)
VIEWS = {
    "prompts": "registered_prompts",
    "token_ids": "registered_rows",
    "completions": "complete_samples",
}


@pytest.mark.parametrize("declared", sorted(Evidence.CHANNELS))
def test_a_gate_sees_what_it_declared_and_nothing_else(declared: str) -> None:
    evidence = Evidence(FULL, [declared], gate="nosy")
    for channel in Evidence.CHANNELS:
        if channel == declared:
            assert getattr(evidence, channel) is not None
        else:
            message = f"gate nosy reads channel '{channel}' but declares {declared}"
            with pytest.raises(UndeclaredChannelError, match=message):
                getattr(evidence, channel)


@pytest.mark.parametrize(("channel", "view"), VIEWS.items())
def test_a_view_needs_its_channel(channel: str, view: str) -> None:
    assert getattr(Evidence(FULL, [channel], gate="g"), view) == {}
    assert getattr(Evidence(Record(plan()), [channel], gate="g"), view) is None
    with pytest.raises(UndeclaredChannelError):
        getattr(Evidence(FULL, sorted(Evidence.CHANNELS - {channel}), gate="g"), view)


def test_the_plan_is_always_readable() -> None:
    assert Evidence(FULL, [], gate="g").plan is FULL.plan


def test_content_comes_after_generation() -> None:
    assert CONTENT_CHANNELS < AFTER_GENERATION < Evidence.CHANNELS


def test_denominators_are_registered() -> None:
    assert plan().keys == (RowKey("t1", 0), RowKey("t1", 1), RowKey("t2", 0), RowKey("t2", 1))
    assert plan(samples_per_task=0).keys == plan(task_ids=()).keys == ()


@pytest.mark.parametrize(
    ("scope", "cap", "fixed", "applies", "sampled", "rung"),
    [
        (Scope.NESTED, 8, None, 8, 16, 16),
        (Scope.NESTED, 16, None, 16, 16, 16),
        (Scope.RUNG, 8, None, 8, 8, 8),
        (Scope.RUNG, 16, None, 16, 16, 16),
        (Scope.SELECTED, 8, None, 8, 8, 8),
        (Scope.ONCE, None, 4, 4, 4, 16),
    ],
)
def test_the_cap_that_applies_and_the_one_that_was_sampled_under(
    scope: Scope, cap: int | None, fixed: int | None, applies: int, sampled: int, rung: int
) -> None:
    registered = plan(scope=scope, cap=cap, fixed_cap=fixed)
    assert (registered.max_think_tokens, registered.sampled_think_tokens) == (applies, sampled)
    assert registered.sampled_rung.max_think_tokens == rung


def view(name: str, **recorded: Any) -> Any:
    return getattr(Evidence(Record(plan(), **recorded), ["prompts", "token_ids", "completions"], gate="g"), name)


def test_a_row_stored_twice_and_one_never_registered_are_left_out() -> None:
    rows = rows_of(plan(), [4, 4, None, 4])
    stored = (rows[1], rows[0], rows[1], rows[2], row(("t9", 0), closed(4)), row(("t1", 2), closed(4)))
    assert view("registered_rows", rows=stored) == {rows[0].key: rows[0], rows[2].key: rows[2]}
    assert list(view("complete_samples", rows=stored)) == [rows[0].key, rows[2].key]
    assert list(view("closed_samples", rows=stored)) == [rows[0].key]
    prompts = tuple(Prompt(name, "", (7,)) for name in ("t1", "t2", "t1", "t3"))
    assert view("registered_prompts", prompts=prompts) == {"t2": prompts[1]}


@pytest.mark.parametrize("reason", [None, "abort", "error", "Stop", ""])
def test_only_a_complete_row_is_a_sample(reason: str | None) -> None:
    keys = plan().keys
    rows = (row(keys[0], closed(4), finish=reason), row(keys[1], closed(4)))
    assert list(view("registered_rows", rows=rows)) == [keys[0], keys[1]]
    assert list(view("complete_samples", rows=rows)) == [keys[1]]


def test_samples_are_taken_apart_by_their_own_prompt() -> None:
    rows = tuple(row(key, closed(3)) for key in plan().keys)
    prompts = (Prompt("t1", "", (7,)), Prompt("t2", "", (7, 9, 8)))
    samples = Record(plan(), rows=rows, prompts=prompts).samples
    assert samples is not None
    assert [sample.continuation.prompt_open for sample in samples] == [True, True, False, False]
    assert [sample.continuation.close_step for sample in samples] == [3, 3, None, None]
    imported = Record(plan(), rows=rows).samples
    assert imported is not None
    assert all(sample.continuation.prompt_open for sample in imported)


def test_rows_are_plain_arrays() -> None:
    assert row(("t1", 0), [1, 2], lengths=[5, 1]).forward_input_lengths == array("i", [5, 1])
