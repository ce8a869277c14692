"""What is a whole number among facts that came as plain JSON, and what is none."""

from typing import Any

import pytest

from gatepost.counts import count_of, counts_of


@pytest.mark.parametrize(
    ("value", "at_least", "count"),
    [
        (0, 0, 0),
        (-1, 0, None),
        (1, 1, 1),
        (0, 1, None),
        (-1, -1, -1),
        (2**70, 0, 2**70),
        (True, 0, None),
        (1.0, 0, None),
        ("1", 0, None),
        ([1], 0, None),
        (None, 0, None),
    ],
)
def test_a_count(value: Any, at_least: int, count: int | None) -> None:
    assert count_of({"n": value}, "n", at_least=at_least) == count


def test_a_count_is_not_negative_unless_asked() -> None:
    assert [count_of({"n": value}, "n") for value in (-1, 0, 1)] == [None, 0, 1]


@pytest.mark.parametrize("facts", [None, {}, {"m": 1}, [], ["n"], "n", 1])
def test_without_the_fact_there_is_none(facts: Any) -> None:
    assert count_of(facts, "n") is None
    assert counts_of(facts, "n") is None


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ([], []),
        ([1, 2], [1, 2]),
        ([0, -1], [0, -1]),
        ([True], None),
        ([1, True], None),
        ([1, 1.0], None),
        ([1, None], None),
        ((1, 2), None),
        ("12", None),
        (1, None),
        (None, None),
    ],
)
def test_a_list_of_counts(value: Any, counts: list[int] | None) -> None:
    assert counts_of({"n": value}, "n") == counts
