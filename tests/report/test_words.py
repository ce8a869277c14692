"""Numbers, shares and lists as people read them."""

import pytest

from gatepost.html_report.model import listed, number, percent
from gatepost.html_report.sections import interval


@pytest.mark.parametrize(
    ("k", "n", "text"),
    [(0, 48, "0"), (48, 48, "100"), (1, 3000, "<0.1"), (2999, 3000, ">99.9"), (1, 3, "33.3"), (12, 48, "25")],
)
def test_a_percentage_is_0_or_100_where_it_is(k: int, n: int, text: str) -> None:
    assert percent(k, n) == f"{text}\u202f%"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (list("abcd"), "a, b, c and d"),
        (list("abcdef"), "a, b, c, d and 2 more"),
    ],
)
def test_lists_in_sentences(parts: list[str], text: str) -> None:
    assert listed(parts) == text


def test_numbers_for_people() -> None:
    assert [number(999), number(1000), number(1234567.26, 1)] == ["999", "1\u202f000", "1\u202f234\u202f567.3"]


def test_intervals_are_those_of_two_sides() -> None:
    assert interval(0, 48)[0] == 0.0
    assert interval(48, 48)[1] == 1.0
    low, high = interval(39, 48)
    assert (round(low, 4), round(high, 4)) == (0.6806, 0.8981)  # Wilson 1927, z = 1.96
    other_low, other_high = interval(9, 48)
    assert (other_low, other_high) == (pytest.approx(1 - high), pytest.approx(1 - low))
