import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.errors import RegistrationError
from gatepost.seeds import SEED_LIMIT, child_seed, require_distinct


def test_the_rule_written_out() -> None:
    digest = hashlib.blake2b(b"2026071252\x00selection-00000\x002", digest_size=8).digest()
    assert child_seed(2026071252, "selection-00000", 2) == int.from_bytes(digest, "big") % 2**31


@pytest.mark.parametrize(
    ("task", "index", "seed"), [("00000", 0, 1167961056), ("00000", 1, 1724762631), ("00015", 2, 630187358)]
)
def test_study_b_published_these_seeds_with_its_rows(task: str, index: int, seed: int) -> None:
    assert child_seed(2026071252, f"budget_selection-{task}", index) == seed


@given(st.integers(0, 2**53), st.text(), st.integers(0, 99))
def test_seeds_lie_where_every_engine_accepts_them(base: int, task: str, index: int) -> None:
    assert 0 <= child_seed(base, task, index) < SEED_LIMIT


@given(st.integers(0, 2**53), st.permutations(["a", "b", "c", "d"]))
def test_seeds_do_not_depend_on_the_order_of_tasks(base: int, order: list[str]) -> None:
    assert {task: child_seed(base, task, 0) for task in order} == {task: child_seed(base, task, 0) for task in "abcd"}


def test_stages_of_a_name_more_differ() -> None:
    assert len({child_seed(1, "t", 0), child_seed(1, "t", 0, 1), child_seed(1, "t", 1), child_seed(2, "t", 0)}) == 4


# Case g3: a child is its parent's seed plus its number, so parents closer than the number of children share them.
@pytest.mark.parametrize(
    ("parents", "clash"),
    [
        ([100, 101, 102, 103, 104], "samples 100/1 and 101/0 derive the same child seed 101"),
        ([100, 103], "samples 100/3 and 103/0 derive the same child seed 103"),
        ([100, 104, 108, 112, 116], None),
    ],
)
def test_seeds_counted_up_overlap(parents: list[int], clash: str | None) -> None:
    counted = [(f"{parent}/{child}", parent + child) for parent in parents for child in range(4)]
    if clash is None:
        require_distinct(counted)
        return
    with pytest.raises(RegistrationError, match=clash):
        require_distinct(counted)


def test_seed_zero_is_a_seed_like_any_other() -> None:
    require_distinct([("a", 0), ("b", 1)])
    with pytest.raises(RegistrationError, match="same child seed 0"):
        require_distinct([("a", 0), ("b", 0)])
