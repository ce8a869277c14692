"""Distinct ids and the commonest n-gram of arrays: the counts of ``gatepost.periodicity``."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost import periodicity
from gatepost.audit.loops import max_ngram_count, tail_unique_ratio
from tests.unit.test_periodicity import NGRAMS

SIZE = 2**22 - 1
ALIKE_MODULO_2_64 = [0, 0, 0, 2**64 // SIZE**2, 2**64 // SIZE % SIZE, 2**64 % SIZE, SIZE - 1]
"""Two trigrams whose codes, counted in base ``SIZE``, lie 2^64 apart."""

LETTERS = [st.integers(0, 2), st.integers(-2, 2), st.sampled_from([0, 2**21 - 1, 2**31 - 1, -(2**31)])]


@pytest.mark.parametrize(
    ("ids", "n", "count"),
    [
        *NGRAMS,
        ([0, 1, 1, 0], 2, 1),  # in order
        ([2**31 - 1, 0, 2**31 - 1, 0], 2, 2),
        ([0, 0, 0, 2**31 - 1, 0, 0, 0, 2**31 - 2], 4, 1),
        ([7] * 100, 90, 11),
        (ALIKE_MODULO_2_64, 3, 1),
    ],
)
def test_max_ngram_count(ids: list[int], n: int, count: int) -> None:
    assert max_ngram_count(np.array(ids, np.int32), n) == periodicity.max_ngram_count(ids, n) == count


@given(st.one_of(st.lists(letters, max_size=60) for letters in LETTERS), st.integers(1, 7))
def test_the_same_count_of_any_ids(ids: list[int], n: int) -> None:
    assert max_ngram_count(np.array(ids, np.int32), n) == periodicity.max_ngram_count(ids, n)


def test_no_gram_has_no_ids() -> None:
    with pytest.raises(ValueError, match=r"^n is 0, expected 1 or more$"):
        max_ngram_count(np.zeros(3, np.int32), 0)


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(1, 20))
def test_distinct_ids_of_the_tail(ids: list[int], tail: int) -> None:
    assert tail_unique_ratio(np.array(ids, np.int32), tail) == periodicity.unique_ratio(ids[-tail:])
