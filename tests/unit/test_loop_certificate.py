"""Where a loop began, and how much of it was waste: small enough to check by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.periodicity import LoopCertificate, Period, loop_certificate, tail_period


def certify(ids: list[int], *, tail: int = 8, max_period: int = 4, min_match: float = 0.99) -> LoopCertificate | None:
    return loop_certificate(ids, tail=tail, max_period=max_period, min_match=min_match)


@pytest.mark.parametrize(
    ("ids", "certificate"),
    [
        ([5, 6] * 8, (2, 0, 1.0, 14)),
        ([1, 2, 3, *[5, 6] * 8], (2, 3, 1.0, 14)),
        ([1, 2, 6, *[5, 6] * 8], (2, 2, 1.0, 15)),  # the id before happens to fit
        ([1, 2, 3, *[5] * 9], (1, 3, 1.0, 8)),
        ([9, 9, 9, 1, 2, 3, *[5] * 9], (1, 6, 1.0, 8)),  # an earlier run of its own is not this loop
        ([1, 2, 3, 5, 6, 5, 6, 5, 6, 5], None),  # seven ids of it, in a tail of eight
        ([5, 6, 7, 8, 9] * 4, None),  # a period beyond the limit
        ([5, 6] * 3, None),  # shorter than the tail
        ([], None),
    ],
)
def test_the_loop_starts_at_its_first_copy(ids: list[int], certificate: tuple[float, ...] | None) -> None:
    assert certify(ids) == certificate


def test_one_odd_id_inside_does_not_end_the_loop() -> None:
    copies = [*[1, 2] * 200, 9, 2, *[1, 2] * 200]
    assert certify([*range(100, 150), *copies], tail=400) == (2, 50, 798 / 800, 800)
    assert certify([*range(100, 150), *copies], tail=400, min_match=1.0) == (2, 451, 1.0, 399)


def test_slack_is_not_spent_on_ids_before_the_loop() -> None:
    # At 0.9 a tenth of 800 compared ids may differ; none of the 50 before the loop is counted in for that.
    assert certify([*range(100, 150), *[1, 2] * 401], min_match=0.9) == (2, 50, 1.0, 800)


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(8, 20))
def test_anyone_can_check_it_again(before: list[int], cycle: list[int], copies: int) -> None:
    ids = before + cycle * copies
    found = certify(ids)
    assert found is not None
    tail = ids[found.start :]
    matches = sum(map(int.__eq__, tail[found.period :], tail))
    assert found.start <= len(before)
    assert found.wasted_tokens == len(tail) - found.period
    assert found.match_rate == matches / found.wasted_tokens >= 0.99


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([5, 6] * 8, "2 at 1.0000"),
        ([5, 6, 5, 6, 5, 6, 7, 6], "none up to 4, nearest 2 at 0.8333"),
        ([5, 6], "none up to 4: fewer ids than the tail"),
    ],
)
def test_no_answer_without_its_search_limit(ids: list[int], text: str) -> None:
    assert str(tail_period(ids, tail=8, max_period=4, min_match=0.99)) == text


@pytest.mark.parametrize(("ids", "rate"), [([5, 6] * 8, 1.0), ([5, 6, 5, 6, 5, 6, 7, 6], 5 / 6), ([], 0.0)])
def test_the_match_rate_of_nothing_is_none(ids: list[int], rate: float) -> None:
    assert tail_period(ids, tail=8, max_period=4, min_match=0.99).match_rate == rate


@pytest.mark.parametrize("ids", [[2**31 - 1, 0] * 8, [0, 2**24] * 8, [-1, 255] * 8, [256, 65_536] * 8])
def test_every_byte_of_an_id_counts(ids: list[int]) -> None:
    assert tail_period(ids, tail=16, max_period=3, min_match=1.0) == Period(16, 3, 2, 14, 14)
