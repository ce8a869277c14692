"""Case g1: the same prompts and seeds in another order, and a repeat that does not test it."""

import pytest

from gatepost.fingerprint import RowKey
from gatepost.repeats import Run, first_differences, order_stability

IDS = {"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9], "d": [1, 1, 2]}


def run(order: str = "abcd", **changed: list[int]) -> Run:
    return {RowKey(task, 0): {**IDS, **changed}[task] for task in order}


def test_another_order_makes_one_of_four_differ() -> None:
    other = run("dcba", b=[4, 5, 7])
    reordered, stable = order_stability(run(), other, min_stable_share=1.0)
    assert (reordered.outcome, stable.outcome, stable.observed) == ("pass", "fail", 0.75)
    assert (stable.k, stable.n, stable.note) == (3, 4, "b/0 differs from id 2")
    assert first_differences(run(), other) == {RowKey("b", 0): 2}
    assert [check.outcome for check in order_stability(run(), other, min_stable_share=0.75)] == ["pass", "pass"]


def test_a_repeat_in_the_same_order_does_not_test_reordering() -> None:
    assert [check.outcome for check in order_stability(run(), run(), min_stable_share=1.0)] == ["fail", "pass"]


@pytest.mark.parametrize(
    ("first", "second", "index"),
    [
        (run(), run("dcba"), None),
        (run(), run(b=[4, 5]), 2),  # one ends earlier
        (run(), run(b=[4, 5, 6, 0]), 3),
        (run(), run(b=[]), 0),
        (run(), run("acd"), 0),
        (run("acd"), run(), 0),
    ],
)
def test_the_first_difference_of_a_sample(first: Run, second: Run, index: int | None) -> None:
    assert first_differences(first, second) == ({} if index is None else {RowKey("b", 0): index})
