"""Cases c3, d1, d4, e1 and e2, and the published counts of study A, at a small scale."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest

from gatepost.evidence import Record, Row
from gatepost.reach import Reach, SampleSize
from gatepost.stages import Scope
from gatepost.verdict import Check

from .builders import CLOSE, OPEN, STOP, checks, closed, failed, forced, gate, judge, outcomes, plan, row

LIMITS: dict[str, Any] = {
    "tail_tokens": 8,
    "max_period_tokens": 4,
    "min_match_rate": 0.99,
    "contact_margin_tokens": 1,
    "answer_limit_tokens": 4,
    "max_unresolved_share": 0.05,
    "max_answer_limit_share": 0.05,
    "max_loop_share": 0.25,
}
LOOP, WANDERING = [30, 31] * 8, list(range(100, 116))
ANSWER, CUT = [50, STOP], [50, 51, 52, 53]


def termination(rows: Sequence[Row], registered: Any, **limits: Any) -> dict[str, Check]:
    return checks(judge("termination", Record(registered, rows=tuple(rows)), **{**LIMITS, **limits}))


def counts(found: dict[str, Check]) -> tuple[int | None, ...]:
    """(loops, unresolved, answers cut)"""
    return tuple(found[name].k for name in ("loop_share", "unresolved_share", "answer_limit_share"))


def one(ids: Sequence[int], finish: str = "stop", *, cap: int = 16, prompt_tokens: int = 5, **limits: Any) -> Any:
    """The counts of a single sample."""
    registered = plan(task_ids=["t"], samples_per_task=1, caps=(cap,), cap=cap, options={"max_model_len": 4096})
    sample = row(registered.keys[0], ids, finish=finish, prompt_tokens=prompt_tokens)
    return counts(termination([sample], registered, **limits))


def study_a(loops: int, unresolved: int, cut: int) -> dict[str, Check]:
    """12 tasks, 4 samples each. Loops and unresolved ones are closed by force, and ``cut`` of them answer too long."""
    registered = plan(
        task_ids=[f"t{index:02}" for index in range(12)],
        samples_per_task=4,
        caps=(16,),
        scope=Scope.RUNG,
        thinking="force_close",
        max_answer_tokens=4,
    )
    keys = iter(registered.keys)
    thoughts = chain([LOOP] * loops, [WANDERING] * unresolved)
    pairs = [(next(keys), thought) for thought in thoughts]
    rows = [
        forced(key, ids, CUT if index < cut else ANSWER, finish="length" if index < cut else "stop")
        for index, (key, ids) in enumerate(reversed(pairs))
    ]
    rows += [row(key, closed(9)) for key in keys]
    return termination(rows, registered)


@pytest.mark.parametrize(
    ("loops", "unresolved", "cut", "rates"),
    [(38, 10, 6, (0.7917, 0.2083, 0.125)), (40, 8, 4, (0.8333, 0.1667, 0.0833))],
    ids=["49k", "61k"],
)
def test_the_published_probes_are_inadequate(loops: int, unresolved: int, cut: int, rates: tuple[float, ...]) -> None:
    found = study_a(loops, unresolved, cut)
    assert counts(found) == (loops, unresolved, cut)
    shares = [found[name] for name in ("loop_share", "unresolved_share", "answer_limit_share")]
    assert tuple(round(check.observed, 4) for check in shares) == rates
    assert {check.outcome for check in shares} == {"fail"}
    assert found["complete_rows"].note == "0 natural, 48 touched the budget"


@pytest.mark.parametrize(
    ("loops", "unresolved", "cut", "broken"),
    [
        (12, 2, 2, set()),  # a quarter of the samples may loop, and less than a twentieth may do the rest
        (13, 2, 2, {"loop_share"}),
        (12, 3, 2, {"unresolved_share"}),
        (12, 2, 3, {"answer_limit_share"}),
        (0, 0, 0, set()),
    ],
)
def test_both_sides_of_every_share(loops: int, unresolved: int, cut: int, broken: set[str]) -> None:
    found = study_a(loops, unresolved, cut)
    assert {name for name, check in found.items() if check.outcome == "fail"} == broken
    assert {check.outcome for name, check in found.items() if name not in broken} == {"pass"}


def test_a_share_at_its_strict_limit_fails() -> None:
    registered = plan(task_ids=["t"], samples_per_task=20)
    rows = [row(key, closed(4)) for key in registered.keys]
    rows[0] = row(registered.keys[0], WANDERING, finish="length")
    assert termination(rows, registered)["unresolved_share"].outcome == "fail"
    rows[0] = row(registered.keys[0], [30, CLOSE, *CUT], finish="length")
    assert termination(rows, registered)["answer_limit_share"].outcome == "fail"
    rows[0] = row(registered.keys[0], LOOP, finish="length")
    assert termination(rows, registered, max_loop_share=0.05)["loop_share"].outcome == "pass"


@pytest.mark.parametrize(
    ("ids", "finish", "margin", "found"),
    [
        (WANDERING, "length", 1, (0, 1, 0)),
        (LOOP, "length", 1, (1, 0, 0)),
        ([*WANDERING[:15], CLOSE, *ANSWER], "stop", 1, (0, 1, 0)),  # one below the budget counts
        ([*WANDERING[:14], CLOSE, *ANSWER], "stop", 1, (0, 0, 0)),
        ([*LOOP[:15], CLOSE, *ANSWER], "stop", 1, (1, 0, 0)),
        ([*LOOP[:14], CLOSE, *ANSWER], "stop", 1, (0, 0, 0)),  # a loop that touched nothing is not searched for
        ([*LOOP[:14], CLOSE, *ANSWER], "stop", 2, (1, 0, 0)),
        ([*LOOP[:15], CLOSE, *ANSWER], "stop", 0, (0, 0, 0)),
        ([*LOOP[:14], STOP], "stop", 1, (0, 0, 0)),
        ([*LOOP[:15], STOP], "stop", 1, (1, 0, 0)),
    ],
)
def test_a_contact_comes_within_the_margin_of_the_budget(
    ids: list[int], finish: str, margin: int, found: tuple[int, ...]
) -> None:
    assert one(ids, finish, contact_margin_tokens=margin) == found


@pytest.mark.parametrize(
    ("answer", "finish", "prompt_tokens", "cut"),
    [
        (range(50, 65), "stop", 5, 0),  # 15 ids and a stop in the last slot, which is an end
        (range(50, 66), "stop", 5, 1),
        (range(50, 70), "stop", 5, 1),  # ended by itself, in a call with a larger limit
        (range(50, 60), "length", 5, 1),
        (range(50, 60), "stop", 4083, 0),
        (range(50, 60), "stop", 4084, 1),  # the context ends below the limit: 4084 + 2 + 10
    ],
)
def test_a_finish_reason_cannot_hide_an_answer_that_was_cut(
    answer: Sequence[int], finish: str, prompt_tokens: int, cut: int
) -> None:
    ids = [30, CLOSE, *answer, *([STOP] if finish == "stop" else [])]
    assert one(ids, finish, prompt_tokens=prompt_tokens, answer_limit_tokens=16) == (0, 0, cut)


def test_what_a_server_relabelled_was_cut_all_the_same() -> None:
    registered = plan(task_ids=["t"], samples_per_task=4, options={"max_model_len": 64})
    answers = [
        ([*range(50, 66)], "tool_calls", 5),
        ([*range(50, 65), STOP], "stop", 5),
        ([*range(50, 60)], "length", 52),
        ([*range(50, 70), STOP], "stop", 5),
    ]
    rows = [
        row(key, [30, CLOSE, *ids], finish=finish, prompt_tokens=prompt_tokens)
        for key, (ids, finish, prompt_tokens) in zip(registered.keys, answers, strict=True)
    ]
    found = termination(rows, registered, answer_limit_tokens=16)
    assert (found["answer_limit_share"].k, found["answer_limit_share"].n) == (3, 4)
    assert found["complete_rows"].outcome == "inconclusive"


def test_rows_that_never_became_rows_leave_the_answer_open() -> None:
    registered = plan(task_ids=["t"], samples_per_task=4)
    ends = [(range(30, 37), "abort"), (range(30, 35), None), ([30, CLOSE, 50, STOP], "stop"), ([], "error")]
    rows = [row(key, ids, finish=finish) for key, (ids, finish) in zip(registered.keys, ends, strict=True)]
    for recorded in (rows, rows[2:3], [*rows[2:], rows[2]]):
        verdict = judge("termination", Record(registered, rows=tuple(recorded)), **LIMITS)
        assert verdict.outcome == "inconclusive"
        assert failed(verdict) == set()
        assert checks(verdict)["unresolved_share"].n == 4
    complete = termination(rows, registered)["complete_rows"]
    assert (complete.k, complete.n, complete.note) == (1, 4, "1 natural, 0 touched the budget")


def test_a_failure_among_complete_rows_stays_one() -> None:
    registered = plan(task_ids=["t"], samples_per_task=2)
    rows = (row(registered.keys[0], WANDERING, finish="length"),)
    assert judge("termination", Record(registered, rows=rows), **LIMITS).outcome == "fail"


COUNTER = [
    *range(1000, 1100),
    *chain.from_iterable(
        [*range(200, 212), *(100 + int(digit) for digit in str(number)), *range(220, 224)] for number in range(1, 41)
    ),
]
GRID = ([48, 44] * 15 + [48, 10]) * 16
D1 = {"tail_tokens": 400, "max_period_tokens": 64}
D4 = {"tail_tokens": 256, "max_period_tokens": 64}


def test_a_running_counter_stays_unresolved() -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, caps=(811,), cap=811)
    found = termination([row(registered.keys[0], COUNTER, finish="length")], registered, **D1)
    assert counts(found) == (0, 1, 0)
    assert found["unresolved_share"].note == "closest: none up to 64, nearest 18 at 0.9372"
    assert found["loop_share"].note == "periods up to 64: none; 0 ids only repeat"


@pytest.mark.parametrize(
    ("ids", "finish", "limit", "expected"),
    [
        ([0] * 300, "length", 600, (1, 0, 0)),  # one token for ever
        ([30, CLOSE, *GRID, 60, 61, STOP], "stop", 600, (0, 0, 0)),  # a table that was asked for, and finished
        ([30, CLOSE, *GRID], "length", 512, (0, 0, 1)),  # ids cannot tell data from degeneration
        ([70, 71, *[45] * 16, CLOSE, *ANSWER], "stop", 600, (0, 0, 0)),  # a run of separators
    ],
    ids=["one_token", "finished_grid", "grid_cut_at_limit", "separator_run"],
)
def test_only_contacts_are_searched_for_loops(
    ids: list[int], finish: str, limit: int, expected: tuple[int, ...]
) -> None:
    assert one(ids, finish, cap=300, answer_limit_tokens=limit, **D4) == expected


@pytest.mark.parametrize(
    ("tail", "found", "note"),
    [
        (16, (1, 0, 0), "periods up to 4: [2]; 14 ids only repeat"),
        (17, (0, 1, 0), "periods up to 4: none; 0 ids only repeat"),
    ],
)
def test_a_thought_shorter_than_the_tail_is_no_loop(tail: int, found: tuple[int, ...], note: str) -> None:
    assert one(LOOP, "length", tail_tokens=tail) == found
    registered = plan(task_ids=["t"], samples_per_task=1)
    judged = termination([row(registered.keys[0], LOOP, finish="length")], registered, tail_tokens=tail)
    assert judged["loop_share"].note == note


@pytest.mark.parametrize(
    ("ids", "budget", "found"),
    [
        # Closes without an open are answer; it runs on to the limit.
        ([30, 31, CLOSE, *[40, 41, 42, CLOSE] * 6], 20, (0, 0, 1)),
        # A second block counts as thinking too, and nothing between the two as an answer that ended.
        ([30, 30, 30, CLOSE, 50, 51, OPEN, *range(60, 65)], 6, (0, 1, 1)),
        ([30, 30, 30, CLOSE, 50, 51, OPEN, *range(60, 64)], 6, (0, 0, 1)),
    ],
)
def test_closes_and_opens_after_the_first_block(ids: list[int], budget: int, found: tuple[int, ...]) -> None:
    assert one(ids, "length", cap=budget) == found


def test_reopened_after_a_forced_close_touches_both_limits() -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, caps=(4,), cap=4, thinking="force_close")
    rows = [forced(registered.keys[0], [30] * 4, [50, 51, OPEN, 60, 61, 62, 63, 64], finish="length")]
    assert counts(termination(rows, registered)) == (0, 1, 1)


@pytest.mark.parametrize(("answer", "cut"), [([50, 51, 52, STOP], 0), ([50, 51, 52, 53, STOP], 1)])
def test_injected_ids_are_no_answer(answer: list[int], cut: int) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, thinking="force_close")
    assert counts(termination([forced(registered.keys[0], LOOP, answer)], registered)) == (1, 0, cut)


@pytest.mark.parametrize(
    ("cap", "ids", "finish", "found"),
    [
        (16, [*LOOP[:12], CLOSE, *ANSWER], "stop", (0, 0, 0)),
        (8, [*LOOP[:12], CLOSE, *ANSWER], "stop", (1, 0, 0)),  # at the lower rung, the first 8 ids are all there is
        (8, [*WANDERING[:8], *LOOP[:4], CLOSE, *CUT], "length", (0, 1, 0)),  # and no answer
        (16, [*WANDERING[:8], *LOOP[:4], CLOSE, *CUT], "length", (0, 0, 1)),
        (8, [*WANDERING[:6], CLOSE, *CUT], "length", (0, 0, 1)),
    ],
)
def test_a_lower_rung_sees_no_more_than_its_cap(cap: int, ids: list[int], finish: str, found: tuple[int, ...]) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, caps=(8, 16), cap=cap)
    assert counts(termination([row(registered.keys[0], ids, finish=finish)], registered)) == found


def test_without_thinking_only_the_answer_can_touch_a_limit() -> None:
    registered = plan(task_ids=["t"], samples_per_task=2, thinking="no_think")
    rows = [row(registered.keys[0], ANSWER), row(registered.keys[1], CUT, finish="length")]
    assert counts(termination(rows, registered)) == (0, 0, 1)


@pytest.mark.parametrize(
    "record", [Record(plan()), Record(plan(task_ids=()), rows=()), Record(plan(scope=Scope.ONCE, cap=None), rows=())]
)
def test_nothing_recorded_and_nothing_registered_are_inconclusive(record: Record) -> None:
    assert set(outcomes(judge("termination", record, **LIMITS)).values()) == {"inconclusive"}


@pytest.mark.parametrize(
    ("limits", "counted"),
    [
        ({}, (2, 2, 12)),
        ({"max_unresolved_share": 0.0}, (None, 2, 12)),  # strict: not even none is less
        ({"max_answer_limit_share": 1.0}, (2, 47, 12)),
        ({"max_loop_share": 0.0}, (2, 2, 0)),
        ({"max_loop_share": 1.0}, (2, 2, 48)),
    ],
)
def test_reach(limits: dict[str, float], counted: tuple[int | None, ...]) -> None:
    reach = gate("termination").reach
    assert reach is not None
    found: list[Reach] = list(reach(SampleSize(12, 4), **{**LIMITS, **limits}))
    assert tuple(entry.minimum for entry in found) == counted
    assert [entry.meets for entry in found] == [count is not None for count in counted]
    assert [entry.misses for entry in found] == [count != 48 for count in counted]
