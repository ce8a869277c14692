"""Two stages: the registered close where thinking was used up, a second prefill after it, and neither anywhere else."""

from collections.abc import Sequence
from typing import Any

import pytest

from gatepost.evidence import Record, Row

from .builders import CLOSE, STOP, checks, closed, failed, forced, judge, outcomes, plan, row

ONE = plan(task_ids=["t"], samples_per_task=1, caps=(8,), cap=8, thinking="force_close")
KEY = ONE.keys[0]
USED_UP = [30] * 8
DUE, INJECTED, SECOND = "closed_by_force_where_due", "injected_ids_as_registered", "second_stages_as_due"
RULES = {DUE, INJECTED, SECOND}


def broken(one: Row, registered: Any = ONE) -> set[str]:
    return failed(judge("forced_close", Record(registered, rows=(one,))))


@pytest.mark.parametrize("one", [forced(KEY, USED_UP), forced(KEY, USED_UP, [50, 51, 52, 53], finish="length")])
def test_a_forced_close_as_registered_passes(one: Row) -> None:
    assert outcomes(judge("forced_close", Record(ONE, rows=(one,)))) == dict.fromkeys(RULES, "pass")
    assert judge("token_accounting", Record(ONE, rows=(one,))).outcome == "pass"


@pytest.mark.parametrize(
    ("ids", "finish", "due"),
    [
        (closed(7), "stop", False),
        (closed(8), "stop", False),  # a close in the last slot is in time
        ([30] * 6 + [STOP], "stop", False),
        ([30] * 7 + [STOP], "stop", False),  # a stop in the last slot is an end
        ([30] * 8, "length", True),
        (closed(9), "stop", True),  # the ninth id was sampled beyond the budget
        ([30] * 7, "abort", False),
    ],
)
def test_a_close_is_due_where_thinking_was_used_up(ids: Sequence[int], finish: str, due: bool) -> None:
    assert broken(row(KEY, ids, finish=finish)) == ({DUE} if due else set())


@pytest.mark.parametrize("thinking", [[30] * 7, [30] * 9, [30, CLOSE, *[50] * 6], [*[30] * 7, STOP]])
def test_a_forced_close_is_not_due_anywhere_else(thinking: Sequence[int]) -> None:
    assert broken(forced(KEY, thinking)) == {DUE}


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"injected_tokens": 1}, {INJECTED, SECOND}),  # the reprefilled prefix ends elsewhere too
        ({"injected_tokens": 0}, {INJECTED, SECOND}),
        ({"injected_start": 7}, RULES),
        ({"injected_start": None}, RULES),
        ({"injected_start": None, "injected_tokens": 0}, {DUE, SECOND}),
        ({"stage_two_seed": None}, {SECOND}),
        ({"stage_one_finish_reason": "stop"}, {SECOND}),
        ({"stage_one_finish_reason": None}, {SECOND}),
        ({"reprefilled_tokens": 0}, {SECOND}),
        ({"reprefilled_tokens": 14}, {SECOND}),  # prompt, thinking and close are 5 + 8 + 2
        ({"prompt_tokens": 6}, {SECOND}),
        ({"answer": []}, {SECOND}),
    ],
)
def test_what_was_injected_and_fed_again_has_to_add_up(changes: dict[str, Any], rules: set[str]) -> None:
    assert broken(forced(KEY, USED_UP, **changes)) == rules


def test_other_ids_than_the_registered_ones_fail() -> None:
    one = forced(KEY, USED_UP)
    one.token_ids[9] = 11
    assert broken(one) == {INJECTED}


@pytest.mark.parametrize("thinking", ["natural", "no_think", "engine_budget"])
def test_under_other_policies_nothing_is_injected(thinking: str) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, caps=(8,), cap=8, thinking=thinking)
    assert broken(row(KEY, USED_UP, finish="length"), registered) == set()
    assert broken(forced(KEY, USED_UP), registered) == {DUE, INJECTED}
    assert "rows_within_budget" in failed(judge("token_accounting", Record(registered, rows=(forced(KEY, USED_UP),))))
    assert broken(row(KEY, closed(4), stage_two_seed=1), registered) == {SECOND}


def test_missing_rows_are_not_vouched_for() -> None:
    two = plan(task_ids=["t"], samples_per_task=2, caps=(8,), cap=8, thinking="force_close")
    check = checks(judge("forced_close", Record(two, rows=(forced(KEY, USED_UP),))))[DUE]
    assert (check.outcome, check.k, check.n) == ("fail", 1, 2)


@pytest.mark.parametrize("record", [Record(ONE), Record(plan(task_ids=()), rows=())])
def test_nothing_recorded_and_nothing_registered_are_inconclusive(record: Record) -> None:
    assert judge("forced_close", record).outcome == "inconclusive"
