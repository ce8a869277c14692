from typing import Any

import pytest

from gatepost.evidence import Record
from gatepost.reach import SampleSize

from .builders import checks, gate, judge, plan

NINETEEN = plan(task_ids=["t"], samples_per_task=48)


def step(mode: Any, tokens: Any, steps: Any, padded: int = 19) -> dict[str, Any]:
    return {"mode": mode, "tokens": tokens, "padded_tokens": padded, "steps": steps}


def check(histogram: Any, limit: float = 0.05, **scheduler: Any) -> Any:
    record = Record(NINETEEN, scheduler={"max_num_seqs": 19, "dispatch": histogram, **scheduler})
    return checks(judge("dispatch", record, max_uncovered_step_share=limit))["uncovered_step_share"]


@pytest.mark.parametrize(
    ("histogram", "outcome", "k", "n"),
    [
        ([step("FULL", 19, 100)], "pass", 0, 100),
        ([step("FULL", 19, 95), step("NONE", 19, 5)], "pass", 5, 100),
        ([step("FULL", 19, 94), step("NONE", 19, 6)], "fail", 6, 100),
        ([step("FULL", 19, 94), step("PIECEWISE", 7, 6)], "fail", 6, 100),
        ([step("FULL", 19, 94), step(None, 7, 6)], "fail", 6, 100),
        ([step("FULL", 19, 100), step("NONE", 20, 900)], "pass", 0, 100),  # with prompt ids: wider than decoding gets
        ([step("FULL", 16, 50), step("FULL", 19, 50), step("full", 1, 10)], "fail", 10, 110),
        ([step("NONE", 19, 100)], "fail", 100, 100),
    ],
)
def test_the_share_of_steps_without_a_full_graph(histogram: Any, outcome: str, k: int, n: int) -> None:
    found = check(histogram)
    assert (found.outcome, found.k, found.n) == (outcome, k, n)


def test_speculation_widens_decoding() -> None:
    histogram = [step("FULL", 19, 95), step("NONE", 38, 5), step("NONE", 39, 5)]
    assert check(histogram).n == 95
    assert check(histogram, speculative_tokens=1).n == 100


def test_where_the_width_is_unknown_every_step_counts() -> None:
    assert check([step("FULL", 19, 95), step("NONE", 20, 5)], max_num_seqs=None).n == 100


def test_the_note_counts_steps_by_mode() -> None:
    histogram = [step("FULL", 19, 90), step("FULL", 8, 6), step("PIECEWISE", 3, 3), step("NONE", 2, 1)]
    assert check(histogram).note == "FULL 96, NONE 1, PIECEWISE 3"


@pytest.mark.parametrize(
    "histogram",
    [
        None,
        [],
        {},
        [step("NONE", 4096, 3)],  # nothing but prompts
        [step("FULL", 19, None)],
        [step("FULL", 19, 95), {"mode": "FULL", "tokens": 19}],
        [step("FULL", 19, 0)],
        ["FULL"],
    ],
)
def test_no_histogram_of_decode_steps_is_inconclusive(histogram: Any) -> None:
    assert check(histogram).outcome == "inconclusive"
    record = Record(NINETEEN)
    assert judge("dispatch", record, max_uncovered_step_share=1.0).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("limit", "meets", "misses"),
    [(-0.1, False, True), (0.0, True, True), (0.05, True, True), (0.999, True, True), (1.0, True, False)],
)
def test_reach(limit: float, meets: bool, misses: bool) -> None:
    reach = gate("dispatch").reach
    assert reach is not None
    (found,) = reach(SampleSize(12, 4), max_uncovered_step_share=limit)
    assert (found.minimum, found.meets, found.misses) == (None, meets, misses)
