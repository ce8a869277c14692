"""Where a continuation ends, by study B's rule."""

import pytest

from gatepost.engine import Chunk, Completion, Request
from gatepost.engines.thinking_budget import CHUNK_TOKENS, ThinkingBudget, complete, refuse_unless_it_fits
from gatepost.errors import EngineError
from gatepost.testing import build_sampling

STOP, CLOSE = 2, 8


def _request(**changes: object) -> Request:
    values = {
        "request_id": "r",
        "token_ids": (5, 6, 7),
        "seed": 0,
        "stage_two_seed": None,
        "sampling": build_sampling(stop_ids=(STOP,)),
        "max_think_tokens": 4,
        "max_answer_tokens": 3,
        "think_close_id": CLOSE,
    }
    return Request(**{**values, **changes})


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ([50, 51, 52, 53], "length"),
        ([50, 51, 52, CLOSE, 60, 61, 62], "length"),
        ([CLOSE, 60, STOP], "stop"),
        ([CLOSE, 60, 61, 62], "length"),
        ([CLOSE, 60, 61, STOP], "stop"),  # in the very last slot, which is no cut
        ([50, STOP], "stop"),
        ([50, 51, 52, STOP], "stop"),
        ([CLOSE, CLOSE, CLOSE, CLOSE], "length"),  # closes after the first are answer
    ],
)
def test_the_row_ends_where_the_rule_says(ids: list[int], reason: str) -> None:
    budget = ThinkingBudget(_request())
    reasons = [budget.finish_reason_after(token_id) for token_id in ids]
    assert reasons == [None] * (len(ids) - 1) + [reason]


def test_a_close_in_the_last_slot_is_in_time() -> None:
    budget = ThinkingBudget(_request())
    assert [budget.finish_reason_after(token_id) for token_id in (50, 51, 52, CLOSE, 60)] == [None] * 5


def test_no_room_for_an_answer_ends_at_the_close() -> None:
    assert ThinkingBudget(_request(max_answer_tokens=0)).finish_reason_after(CLOSE) == "length"


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ([50, 51, 52], "length"),
        ([50, 51, STOP], "stop"),
        ([STOP], "stop"),
        ([CLOSE, 50, 51], "length"),  # a close without an open is answer
        ([50, 51, CLOSE], "length"),
    ],
)
def test_where_the_prompt_closes_thinking_all_is_answer(ids: list[int], reason: str) -> None:
    """Three answer tokens may follow, whatever the thinking budget is."""
    for max_think_tokens in (1, 4):
        budget = ThinkingBudget(_request(max_think_tokens=max_think_tokens), is_closed=True)
        assert [budget.finish_reason_after(token_id) for token_id in ids] == [None] * (len(ids) - 1) + [reason]


def test_chunks_carry_what_came_since_the_last() -> None:
    count = 2 * CHUNK_TOKENS + 3
    lengths: list[int] = []

    def sampled():
        while True:
            lengths.append(1)
            yield 50

    def take_lengths() -> tuple[int, ...]:
        taken = tuple(lengths)
        lengths.clear()
        return taken

    request = _request(max_think_tokens=count)
    events = list(complete(request, sampled(), take_lengths=take_lengths, decode=lambda ids: f"{len(ids)} ids"))
    chunks = [event for event in events if isinstance(event, Chunk)]
    assert [len(chunk.token_ids) for chunk in chunks] == [CHUNK_TOKENS, CHUNK_TOKENS, 3]
    assert [len(chunk.forward_input_lengths or ()) for chunk in chunks] == [CHUNK_TOKENS, CHUNK_TOKENS, 3]
    assert isinstance(events[-1], Completion)
    assert (events[-1].finish_reason, events[-1].text) == ("length", f"{count} ids")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"token_ids": ()}, "0 prompt, 4 thinking and 3 answer tokens"),
        ({"max_think_tokens": 0}, "3 prompt, 0 thinking and 3 answer tokens"),
        ({"max_answer_tokens": -1}, "-1 answer tokens"),
        ({"request_id": "r"}, "request r: comes twice"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 2**31}, "seed 2147483648"),
        ({"with_adapter": True}, "request other: asks for the adapter, but the engine has none"),
        ({"max_think_tokens": 5}, r"3 \+ 5 \+ 3 tokens, expected at most max_model_len 10"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], problem: str) -> None:
    refuse_unless_it_fits([_request()], 10)
    with pytest.raises(EngineError, match=problem) as caught:
        refuse_unless_it_fits([_request(), _request(**{"request_id": "other", **changes})], 10)
    assert caught.value.kind == "refused"


def test_an_adapter_may_be_asked_for_where_there_is_one() -> None:
    refuse_unless_it_fits([_request(with_adapter=True), _request(request_id="other")], 10, adapter=True)
