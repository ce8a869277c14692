"""Cases e1 and e2: reasons that hide a limit, and rows that never became rows."""

from collections.abc import Sequence
from typing import Any

import pytest

from gatepost.engine import Prompt
from gatepost.evidence import Record, Row
from gatepost.fingerprint import RowKey

from .builders import CLOSE, STOP, checks, closed, failed, forced, judge, outcomes, plan, row, rows_of

ONE = plan(task_ids=["t"], samples_per_task=1, caps=(8,), cap=8)
KEY = ONE.keys[0]
RULES = {
    "registered_rows",
    "unregistered_rows",
    "rows_in_registered_order",
    "complete_rows",
    "rows_within_budget",
    "rows_that_end_at_their_first_stop",
    "finish_reasons_as_recomputed",
}


def one(ids: Sequence[int], finish: str | None, registered: Any = ONE) -> set[str]:
    return failed(judge("token_accounting", Record(registered, rows=(row(KEY, ids, finish=finish),))))


def test_sound_rows_pass_every_rule() -> None:
    registered = plan()
    verdict = judge("token_accounting", Record(registered, rows=rows_of(registered, [1, 8, 16, None])))
    assert outcomes(verdict) == dict.fromkeys(RULES, "pass")


@pytest.mark.parametrize(
    ("ids", "finish", "broken"),
    [
        # thinking, capped at 8 ids
        ([30] * 8, "length", set()),
        ([30] * 7, "length", {"finish_reasons_as_recomputed"}),
        ([30] * 9, "length", {"rows_within_budget"}),
        ([30] * 7 + [STOP], "stop", set()),  # an end in the last slot is a real end
        ([30] * 7 + [STOP], "length", {"finish_reasons_as_recomputed"}),
        ([30] * 8 + [STOP], "stop", {"rows_within_budget"}),
        ([STOP], "stop", set()),
        ([30] * 8, "stop", {"finish_reasons_as_recomputed"}),
        ([30, 31, 10], "stop", {"finish_reasons_as_recomputed"}),  # a stop that nobody registered
        # answers, at most 4 ids and a stop after the close
        (closed(8), "stop", set()),
        (closed(9), "stop", {"rows_within_budget"}),
        ([30, CLOSE, STOP], "stop", set()),
        ([30, CLOSE], "stop", {"finish_reasons_as_recomputed"}),
        ([30, CLOSE], "length", {"finish_reasons_as_recomputed"}),
        ([30, CLOSE, 50, 51, 52], "length", {"finish_reasons_as_recomputed"}),
        ([30, CLOSE, 50, 51, 52, 53], "length", set()),
        ([30, CLOSE, 50, 51, 52, 53], "stop", {"finish_reasons_as_recomputed"}),
        ([30, CLOSE, 50, 51, 52, STOP], "stop", set()),
        ([30, CLOSE, 50, 51, 52, 53, STOP], "stop", set()),
        ([30, CLOSE, 50, 51, 52, 53, 54], "length", {"rows_within_budget"}),
        ([30, CLOSE, 50, 51, 52, 53, 54, STOP], "stop", {"rows_within_budget"}),
        # a row ends at its first stop
        ([30, CLOSE, 50, STOP, STOP], "stop", {"rows_that_end_at_their_first_stop"}),
        ([30, STOP, CLOSE, 50, STOP], "stop", {"rows_that_end_at_their_first_stop"}),
        ([], "stop", {"rows_within_budget", "finish_reasons_as_recomputed"}),
        ([], "length", {"rows_within_budget", "finish_reasons_as_recomputed"}),
    ],
)
def test_both_sides_of_every_budget(ids: list[int], finish: str, broken: set[str]) -> None:
    assert one(ids, finish) == broken


@pytest.mark.parametrize(
    ("answer", "finish", "broken"),
    [
        (range(50, 66), "tool_calls", {"complete_rows", "finish_reasons_as_recomputed"}),
        (range(50, 66), "stop", {"finish_reasons_as_recomputed"}),
        (range(50, 66), "length", set()),
        ([*range(50, 65), STOP], "stop", set()),
        (range(50, 60), "length", {"finish_reasons_as_recomputed"}),  # a context that ends below the registered limit
        ([*range(50, 70), STOP], "stop", {"rows_within_budget"}),
    ],
    ids=["relabelled", "cut_called_stop", "cut", "end_in_last_slot", "context_ceiling", "over_allowance"],
)
def test_a_finish_reason_cannot_hide_the_limit(answer: Sequence[int], finish: str, broken: set[str]) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, max_answer_tokens=16)
    assert one([30, CLOSE, *answer], finish, registered) == broken


@pytest.mark.parametrize("finish", ["abort", "error", "tool_calls", "content_filter", "STOP", "", None])
@pytest.mark.parametrize("ids", [[30] * 8, closed(4), [30, 31], []])
def test_an_unknown_reason_makes_no_row(finish: str | None, ids: list[int]) -> None:
    assert {"complete_rows", "finish_reasons_as_recomputed"} <= one(ids, finish)


def test_rows_that_a_server_gave_up_stay_in_the_denominator() -> None:
    registered = plan()
    rows = (
        row(registered.keys[0], range(30, 37), finish="abort"),
        row(registered.keys[1], range(30, 35), finish=None),
        row(registered.keys[2], [30, CLOSE, 50, STOP]),
        row(registered.keys[3], [], finish="error"),
    )
    verdict = judge("token_accounting", Record(registered, rows=rows))
    complete = checks(verdict)["complete_rows"]
    assert (complete.outcome, complete.k, complete.n) == ("fail", 1, 4)
    # What is left out is not forgotten either: the rate of closes is one of four registered rows, not of one.
    only = judge("natural_close", Record(registered, rows=rows[2:3]), min_natural_close_rate=0.95)
    every = judge("natural_close", Record(registered, rows=rows), min_natural_close_rate=0.95)
    assert [(check.outcome, check.k, check.n) for check in (*only.checks, *every.checks)] == [("fail", 1, 4)] * 2


def changed(change: str) -> tuple[Row, ...]:
    rows = list(rows_of(plan(), [4, 4, 4, 4]))
    match change:
        case "missing":
            del rows[1]
        case "none":
            rows.clear()
        case "duplicate":
            rows.insert(2, rows[1])
        case "duplicate at the end":
            rows.append(rows[0])
        case "one for another":
            rows[1] = rows[0]
        case "extra":
            rows.append(row(RowKey("t2", 2), closed(4)))
        case "stranger":
            rows.append(row(RowKey("t3", 0), closed(4)))
        case "swapped":
            rows[1], rows[2] = rows[2], rows[1]
        case "reversed":
            rows.reverse()
    return tuple(rows)


@pytest.mark.parametrize(
    ("change", "registered", "broken"),
    [
        ("missing", 3, RULES - {"unregistered_rows", "rows_in_registered_order"}),
        ("none", 0, RULES - {"unregistered_rows", "rows_in_registered_order"}),
        ("duplicate", 3, RULES - {"unregistered_rows", "rows_in_registered_order"}),
        ("duplicate at the end", 3, RULES - {"unregistered_rows"}),
        ("one for another", 2, RULES - {"unregistered_rows", "rows_in_registered_order"}),
        ("extra", 4, {"unregistered_rows"}),
        ("stranger", 4, {"unregistered_rows"}),
        ("swapped", 4, {"rows_in_registered_order"}),
        ("reversed", 4, {"rows_in_registered_order"}),
    ],
)
def test_every_registered_row_once_and_in_order(change: str, registered: int, broken: set[str]) -> None:
    verdict = judge("token_accounting", Record(plan(), rows=changed(change)))
    assert failed(verdict) == broken
    assert (checks(verdict)["registered_rows"].k, checks(verdict)["registered_rows"].n) == (registered, 4)


def test_a_nested_stage_is_accounted_at_the_cap_that_was_sampled() -> None:
    lower = plan(cap=8)
    assert judge("token_accounting", Record(lower, rows=rows_of(lower, [4, 8, 12, None]))).outcome == "pass"


@pytest.mark.parametrize("record", [Record(ONE), Record(plan(task_ids=()), rows=())])
def test_nothing_recorded_and_nothing_registered_are_inconclusive(record: Record) -> None:
    assert judge("token_accounting", record).outcome == "inconclusive"


FORCED = plan(task_ids=["t"], samples_per_task=1, caps=(8,), cap=8, thinking="force_close")


@pytest.mark.parametrize(
    ("thinking", "answer", "finish", "broken"),
    [
        (8, [50, STOP], "stop", set()),
        (8, [STOP], "stop", set()),
        (8, [50, 51, 52, 53], "length", set()),
        (8, [50, 51, 52, STOP], "stop", set()),
        (8, [50, 51, 52, 53, STOP], "stop", set()),
        (8, [50, 51, 52, 53, 54], "length", {"rows_within_budget"}),
        (8, [50, 51, 52], "length", {"finish_reasons_as_recomputed"}),
        (8, [50, 51, 52, 53], "stop", {"finish_reasons_as_recomputed"}),
        (8, [50, STOP], "length", {"finish_reasons_as_recomputed"}),
        (8, [50, CLOSE, 51, STOP], "stop", set()),  # how thinking ended is another question
        (9, [50, STOP], "stop", {"rows_within_budget"}),
    ],
)
def test_injected_ids_are_in_no_budget(thinking: int, answer: list[int], finish: str, broken: set[str]) -> None:
    row = forced(KEY, [30] * thinking, answer, finish=finish)
    assert failed(judge("token_accounting", Record(FORCED, rows=(row,)))) == broken


@pytest.mark.parametrize(
    ("ids", "finish", "broken"),
    [
        ([50, STOP], "stop", set()),
        ([STOP], "stop", set()),
        ([50, 51, 52, 53], "length", set()),
        ([50, 51, 52, 53, STOP], "stop", set()),
        ([50, 51, 52, 53, 54], "length", {"rows_within_budget"}),
        ([50, 51, 52], "length", {"finish_reasons_as_recomputed"}),
        ([], "stop", {"rows_within_budget", "finish_reasons_as_recomputed"}),
    ],
)
def test_without_thinking_every_id_is_answer(ids: list[int], finish: str, broken: set[str]) -> None:
    assert one(ids, finish, plan(task_ids=["t"], samples_per_task=1, caps=(8,), cap=8, thinking="no_think")) == broken


@pytest.mark.parametrize(
    ("lengths", "outcome", "k"),
    [({"t1": 5, "t2": 5}, "pass", 4), ({"t1": 5, "t2": 4}, "fail", 2), ({"t1": 5}, "fail", 2), ({}, "fail", 0)],
)
def test_rows_are_those_of_the_recorded_prompts(lengths: dict[str, int], outcome: str, k: int) -> None:
    registered = plan()
    prompts = tuple(Prompt(name, "", (1,) * length) for name, length in lengths.items())
    record = Record(registered, rows=rows_of(registered, [4] * 4), prompts=prompts)
    check = checks(judge("token_accounting", record))["prompt_tokens_as_rendered"]
    assert (check.outcome, check.k, check.n) == (outcome, k, 4)
