"""Cases c3 and c4: how thinking ended, by the ids of the prompt and of the continuation."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatepost.thinking import Block, Continuation, Ending, leaves_thinking_open, take_apart

OPEN, CLOSE, STOP = 7, 8, 2


def taken_apart(prompt: list[int], ids: list[int], finish: str | None) -> Continuation:
    return take_apart(
        ids,
        prompt_open=leaves_thinking_open(prompt, OPEN, CLOSE),
        open_id=OPEN,
        close_id=CLOSE,
        stop_ids=[STOP],
        finish_reason=finish,
    )


@pytest.mark.parametrize(
    ("prompt", "ids", "finish", "ending", "thinking", "answer"),
    [
        ([7, 9], [30] * 12, "length", "thinking_unclosed", 12, None),
        ([7, 9], [30, 31, 2], "stop", "eos_before_close", 2, None),
        ([7, 9, 8, 9], [50, 51, 2], "stop", "answered", 0, (50, 51)),
        ([7, 9, 8, 9], [7, 30, 30, 8, 50, 2], "stop", "answered", 2, (50,)),
        ([3], [50, 51, 52, 2], "stop", "answered", 0, (50, 51, 52)),
        ([7, 9], [30, 31, 8, 2], "stop", "empty_answer", 2, ()),
        ([7, 9], [30, 31, 10], "stop", "stopped_inside_thinking", 3, None),
        # the same faults where they are easy to confuse
        ([7, 9], [30, 31, 2], "length", "eos_before_close", 2, None),  # an end in the last slot is a real end
        ([7, 9], [30, 31], "abort", "stopped_inside_thinking", 2, None),
        ([7, 9], [30, 31], None, "stopped_inside_thinking", 2, None),
        ([7, 9], [], "length", "thinking_unclosed", 0, None),
        ([7, 9], [2], "stop", "eos_before_close", 0, None),
        ([7, 9], [8], "length", "empty_answer", 0, ()),
        ([7, 9], [8, 2], "stop", "empty_answer", 0, ()),
        ([3], [], "length", "empty_answer", 0, ()),
        ([7, 9], [30, 2, 31], "length", "thinking_unclosed", 3, None),  # only a last id can have stopped it
        ([7, 9], [30, 8, 50, 2, 2], "stop", "answered", 1, (50, 2)),
    ],
)
def test_no_close_is_several_different_things(
    prompt: list[int], ids: list[int], finish: str | None, ending: str, thinking: int, answer: tuple[int, ...] | None
) -> None:
    found = taken_apart(prompt, ids, finish)
    assert (found.ending, found.thinking_tokens, found.answer_ids) == (ending, thinking, answer)


def test_orphan_closes_split_at_the_first() -> None:
    found = taken_apart([7, 9], [30, 31, 8] + [40, 41, 42, 8] * 6, "length")
    assert (found.thinking_tokens, found.orphan_closes, len(found.answer_ids or ())) == (2, 6, 24)
    assert found.close_step == 3
    assert not found.closed_once
    assert not found.closed_at(27)


def test_thinking_that_reopens_has_no_answer() -> None:
    found = taken_apart([7, 9], [30, 30, 30, 30, 8, 50, 51, 7, 60, 61, 62, 63, 64], "length")
    assert found.blocks == (Block(4, closed=True), Block(5, closed=False))
    assert (found.thinking_tokens, found.ending, found.answer_ids) == (9, Ending.UNCLOSED, None)
    assert (found.reopened, found.closed_once) == (1, False)


def test_an_open_inside_thinking_is_thinking_and_is_counted() -> None:
    found = taken_apart([7, 9], [7, 30, 8, 50, 2], "stop")
    assert found.blocks == (Block(2, closed=True),)
    assert (found.nested_opens, found.reopened, found.close_step) == (1, 0, 3)


@pytest.mark.parametrize(
    ("prompt", "leaves_open"),
    [([], False), ([1, 2], False), ([7], True), ([7, 9], True), ([7, 8], False), ([7, 8, 7], True), ([8], False)],
)
def test_the_last_marker_of_the_prompt_decides(prompt: list[int], leaves_open: bool) -> None:
    assert leaves_thinking_open(prompt, OPEN, CLOSE) is leaves_open


@pytest.mark.parametrize(("cap", "closed"), [(0, False), (3, False), (4, True), (5, True)])
def test_closed_at_a_cap_iff_the_one_indexed_step_is_at_most_the_cap(cap: int, closed: bool) -> None:
    assert taken_apart([7], [30, 30, 30, 8, 50, 2], "stop").closed_at(cap) is closed


LETTERS = {"o": OPEN, "c": CLOSE, "s": STOP, "x": 30, "y": 50}


def by_pattern(letters: str, prompt_open: bool, finish: str | None) -> dict[str, Any]:
    """The same facts from a regular expression over letters: o opens, c closes, s stops."""
    body = letters.removesuffix("s")
    stopped = body != letters
    text = "o" * prompt_open + body
    blocks = [match for match in re.finditer(r"o([^c]*)(c?)|c", text) if match[0] != "c"]
    first = next((match for match in blocks if match[2]), None)
    close_step = first.end() - prompt_open if first else None
    inside = bool(blocks) and not blocks[-1][2]
    answer = None if inside else body[close_step or 0 :]
    if inside:
        unstopped = "thinking_unclosed" if finish == "length" else "stopped_inside_thinking"
        ending = "eos_before_close" if stopped else unstopped
    else:
        ending = "answered" if answer else "empty_answer"
    return {
        "ending": ending,
        "blocks": tuple(Block(len(match[1]), bool(match[2])) for match in blocks),
        "close_step": close_step,
        "answer_ids": None if answer is None else tuple(LETTERS[letter] for letter in answer),
        "orphan_closes": body.count("c") - sum(bool(match[2]) for match in blocks),
        "reopened": max(len(blocks) - 1, 0),
        "nested_opens": sum(match[1].count("o") for match in blocks),
        "prompt_open": prompt_open,
    }


@settings(max_examples=500)
@given(st.text("ocsxy", max_size=14), st.booleans(), st.sampled_from(["stop", "length", "abort", None]))
def test_against_a_regular_expression(letters: str, prompt_open: bool, finish: str | None) -> None:
    found = take_apart(
        [LETTERS[letter] for letter in letters],
        prompt_open=prompt_open,
        open_id=OPEN,
        close_id=CLOSE,
        stop_ids=(STOP, 3),
        finish_reason=finish,
    )
    assert vars(found) == by_pattern(letters, prompt_open, finish)


@given(st.text("ocsxy", max_size=14), st.booleans())
def test_every_id_is_accounted_for_once(letters: str, prompt_open: bool) -> None:
    found = by_pattern(letters, prompt_open, "stop")
    taken = take_apart(
        [LETTERS[letter] for letter in letters],
        prompt_open=prompt_open,
        open_id=OPEN,
        close_id=CLOSE,
        stop_ids=(STOP,),
        finish_reason="stop",
    )
    assert taken.thinking_tokens == sum(block.tokens for block in found["blocks"])
    for cap in range(15):
        assert taken.closed_at(cap) <= taken.closed_at(cap + 1)
    if taken.closed_once and prompt_open:
        assert taken.close_step == taken.thinking_tokens + 1
