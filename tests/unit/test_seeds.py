import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.errors import RegistrationError
from gatepost.seeds import SEED_LIMIT, check, child_seed, require_distinct, sample_seeds
from tests import protocols


def test_the_rule_written_out() -> None:
    digest = hashlib.blake2b(b"2026071252\x00selection-00000\x002", digest_size=8).digest()
    assert child_seed(2026071252, "selection-00000", 2) == int.from_bytes(digest, "big") % 2**31


def hashed(*parts: object) -> int:
    """The rule, written down a second time."""
    message = b"\x00".join(str(part).encode() for part in parts)
    return int.from_bytes(hashlib.blake2b(message, digest_size=8).digest(), "big") % 2**31


@given(st.integers(0, 2**53), st.text("ab", max_size=3), st.integers(0, 9))
def test_seeds_of_one_stage(base: int, task: str, index: int) -> None:
    first, second = sample_seeds("blake2b64", base, task, index)
    assert (first, second) == (hashed(base, task, index), hashed(base, task, index, "stage2"))


@given(st.integers(0, 2**53), st.text("ab", max_size=3), st.integers(0, 9))
def test_seeds_of_two_stages_are_counted_up_in_the_first(base: int, task: str, index: int) -> None:
    first, second = sample_seeds("blake2b64_two_stage", base, task, index)
    assert first == (hashed(base, task, -1, "stage1") + index) % 2**31
    assert second == hashed(base, task, index, "stage2")


def test_counting_up_wraps_where_seeds_end() -> None:
    parent = hashed(11, "t", -1, "stage1")
    first, _ = sample_seeds("blake2b64_two_stage", 11, "t", 2**31 - parent)
    assert first == 0


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


TASKS = [f"t{index}" for index in range(60)]
TWO_STAGES = {**protocols.DOCUMENT["sampling"], "seed_rule": "blake2b64_two_stage"}


@pytest.mark.parametrize(
    ("base_seed", "samples", "max_tasks", "clash"),
    [
        (182822, 2, None, "samples t32/1 and t39/0 derive the same child seed 464144917"),
        (182822, 1, None, None),  # the parents are neighbours, and the first has no second child
        (182822, 2, 39, None),  # t39 is not sampled
        (182822, 2, 40, "samples t32/1 and t39/0 derive the same child seed 464144917"),
        (182823, 2, None, None),
    ],
)
def test_a_registration_whose_samples_would_share_a_seed(
    base_seed: int, samples: int, max_tasks: int | None, clash: str | None
) -> None:
    stage = protocols.stage("s", "nested", base_seed=base_seed, samples_per_task=samples, max_tasks=max_tasks)
    registered = protocols.protocol(stage, sampling=TWO_STAGES)
    if clash is None:
        check(registered, {"first": TASKS})
        return
    with pytest.raises(RegistrationError, match=f"^base seed: {clash}, expected all child seeds distinct"):
        check(registered, {"first": TASKS})


def test_stages_share_no_base_seed() -> None:
    stages = [protocols.stage(name, "rung", base_seed=seed) for name, seed in (("one", 5), ("two", 6), ("three", 5))]
    check(protocols.protocol(*stages[:2]), {"first": TASKS})
    with pytest.raises(RegistrationError) as refused:
        check(protocols.protocol(*stages), {"first": TASKS})
    assert str(refused.value) == "stage three: base_seed 5 is that of stage one, expected disjoint seeds"
