"""Cases c3 and c4: a missing close is several different things, and so is one close too many."""

import pytest

from gatepost.evidence import Record
from gatepost.reach import SampleSize

from .builders import checks, closed, forced, gate, judge, plan, prompts_of, row, rows_of

ONE = plan(task_ids=["t"], samples_per_task=1)


@pytest.mark.parametrize(
    ("prompt", "ids", "finish", "regular"),
    [
        ([7, 9], [30] * 16, "length", True),  # cut off
        ([7, 9], [30, 31, 2], "stop", True),  # end of sequence inside thinking
        ([7, 9], [30, 31, 8, 50, 2], "stop", True),
        ([7, 9], [30, 31, 8, 2], "stop", True),  # closed, then nothing
        ([7, 9], [8, 50, 2], "stop", True),
        ([7, 9], [30, 31, 10], "stop", False),  # a task's stop string inside thinking
        ([7, 9], [30, 31, 8] + [40, 41, 42, 8] * 6, "length", False),  # orphan closes
        ([7, 9], [30, 30, 30, 30, 8, 50, 51, 7, 60, 61, 62, 63, 64], "length", False),  # reopened
        ([7, 9], [30, 8, 50, 7, 60, 8, 51, 2], "stop", False),  # reopened and closed
        ([7, 9], [7, 30, 8, 50, 2], "stop", False),  # a second open inside the first
        ([7, 9, 8, 9], [50, 51, 2], "stop", False),  # closed by the template
        ([7, 9, 8, 9], [7, 30, 30, 8, 50, 2], "stop", False),  # thinks although it was off
        ([3], [50, 51, 52, 2], "stop", False),  # the opener never came
        ([7, 9], [30, 31, 8, 50], "abort", False),  # not a row
        ([7, 9], [30, 31], None, False),
    ],
)
def test_what_a_study_can_count(prompt: list[int], ids: list[int], finish: str | None, regular: bool) -> None:
    record = Record(ONE, prompts=prompts_of(ONE, prompt), rows=(row(ONE.keys[0], ids, finish=finish),))
    verdict = judge("close_classification", record, max_irregular_rows=0)
    assert verdict.outcome == ("pass" if regular else "fail")


@pytest.mark.parametrize(("limit", "outcome"), [(0, "fail"), (1, "fail"), (2, "pass"), (3, "pass")])
def test_irregular_rows_are_counted_over_the_registered_ones(limit: int, outcome: str) -> None:
    registered = plan()
    rows = [*rows_of(registered, [4, None, 4, 4])[:3]]
    rows[0] = row(registered.keys[0], [30, 8, 50, 8, 2])
    check = checks(judge("close_classification", Record(registered, rows=tuple(rows)), max_irregular_rows=limit))[
        "irregular_rows"
    ]
    assert (check.outcome, check.observed, check.k, check.n) == (outcome, 2, 2, 4)  # one orphan, one missing
    assert check.note == (
        "answered 2, empty_answer 0, thinking_unclosed 1, eos_before_close 0, stopped_inside_thinking 0"
    )


def test_a_row_stored_twice_is_not_one_row() -> None:
    registered = plan()
    rows = rows_of(registered, [4, 4, 4, 4])
    verdict = judge("close_classification", Record(registered, rows=(*rows, rows[0])), max_irregular_rows=0)
    assert verdict.outcome == "fail"


def test_without_prompts_the_protocol_says_that_thinking_is_open() -> None:
    record = Record(ONE, rows=(row(ONE.keys[0], closed(3)),))
    assert judge("close_classification", record, max_irregular_rows=0).outcome == "pass"


@pytest.mark.parametrize("record", [Record(ONE), Record(plan(task_ids=()), rows=())])
def test_nothing_recorded_and_nothing_registered_are_inconclusive(record: Record) -> None:
    assert judge("close_classification", record, max_irregular_rows=9).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("limit", "largest", "meets", "misses"),
    [(-1, None, False, True), (0, 0, True, True), (47, 47, True, True), (48, 48, True, False), (49, 48, True, False)],
)
def test_reach(limit: int, largest: int | None, meets: bool, misses: bool) -> None:
    reach = gate("close_classification").reach
    assert reach is not None
    (found,) = reach(SampleSize(16, 3), max_irregular_rows=limit)
    assert (found.minimum, found.of, found.meets, found.misses) == (largest, 48, meets, misses)


@pytest.mark.parametrize(
    ("prompt", "ids", "finish", "regular", "thinks"),
    [
        ([7, 9, 8, 9], [50, 51, 2], "stop", True, 0),
        ([7, 9, 8, 9], [2], "stop", True, 0),
        ([7, 9, 8, 9], [50, 51, 52, 53], "length", True, 0),
        ([7, 9, 8, 9], [7, 30, 30, 8, 50, 2], "stop", False, 1),  # thinks although it was off
        ([7, 9, 8, 9], [50, 7, 30], "length", False, 1),
        ([7, 9, 8, 9], [50, 8, 51, 2], "stop", False, 0),  # an orphan close
        ([7, 9], [30, 31, 8, 50, 2], "stop", False, 1),  # the template left thinking on
        ([3], [50, 2], "stop", True, 0),
    ],
)
def test_with_thinking_off_a_thought_is_irregular(
    prompt: list[int], ids: list[int], finish: str, regular: bool, thinks: int
) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, thinking="no_think")
    record = Record(
        registered, prompts=prompts_of(registered, prompt), rows=(row(registered.keys[0], ids, finish=finish),)
    )
    check = checks(judge("close_classification", record, max_irregular_rows=0))["irregular_rows"]
    assert check.outcome == ("pass" if regular else "fail")
    assert (check.note or "").endswith(f"thinks although off {thinks}")


def test_without_prompts_the_protocol_says_that_thinking_is_off() -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, thinking="no_think")
    record = Record(registered, rows=(row(registered.keys[0], [50, 2]),))
    assert judge("close_classification", record, max_irregular_rows=0).outcome == "pass"


@pytest.mark.parametrize(
    ("answer", "regular"),
    [([50, 51, 2], True), ([50, 51, 7, 60, 61, 62, 63, 64], False), ([50, 8, 2], False), ([2], True)],
)
def test_forced_closes_are_counted_apart(answer: list[int], regular: bool) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, caps=(4,), cap=4, thinking="force_close")
    rows = (forced(registered.keys[0], [30] * 4, answer, finish="stop" if answer[-1] == 2 else "length"),)
    check = checks(judge("close_classification", Record(registered, rows=rows), max_irregular_rows=0))["irregular_rows"]
    assert check.outcome == ("pass" if regular else "fail")
    assert (check.note or "").endswith("closed by force 1")
