"""Case g3: an engine that counts children up from each parent's seed hands neighbours the same children."""

import pytest

from gatepost.evidence import Record
from gatepost.fingerprint import RowKey
from gatepost.seeds import SEED_LIMIT, child_seed

from .builders import checks, judge, plan, row


def test_derived_seeds_are_distinct_and_in_range() -> None:
    verdict = judge("seeds", Record(plan(task_ids=["a", "b", "c"], samples_per_task=24, base_seed=2026071253)))
    assert verdict.outcome == "pass"
    assert (checks(verdict)["distinct_seeds"].k, checks(verdict)["distinct_seeds"].n) == (72, 72)


def test_two_samples_that_would_share_a_seed_fail() -> None:
    # By the birthday bound some of this many seeds collide in 2^31; which ones is a fact of the hash.
    many = 150_000
    verdict = judge("seeds", Record(plan(task_ids=["t"], samples_per_task=many)))
    distinct = len({child_seed(11, "t", index) for index in range(many)})
    assert distinct < many
    assert verdict.outcome == "fail"
    assert checks(verdict)["distinct_seeds"].k == distinct


@pytest.mark.parametrize(
    "record", [Record(plan(base_seed=None)), Record(plan(task_ids=())), Record(plan(samples_per_task=0))]
)
def test_no_seed_and_no_sample_are_inconclusive(record: Record) -> None:
    assert judge("seeds", record).outcome == "inconclusive"


def test_base_seed_zero_is_a_seed() -> None:
    assert judge("seeds", Record(plan(base_seed=0))).outcome == "pass"


@pytest.mark.parametrize(("parents", "distinct"), [(range(100, 105), 8), (range(100, 120, 4), 20)])
def test_seeds_counted_up_from_a_parent_are_not_the_derived_ones(parents: range, distinct: int) -> None:
    registered = plan(task_ids=[f"p{parent}" for parent in parents], samples_per_task=4)
    counted = [parent + child for parent in parents for child in range(4)]
    assert len(set(counted)) == distinct
    rows = tuple(row(key, [30], seed=seed) for key, seed in zip(registered.keys, counted, strict=True))
    bound = checks(judge("seed_binding", Record(registered, rows=rows)))["rows_with_derived_seed"]
    assert (bound.outcome, bound.k, bound.n) == ("fail", 0, 20)
    # Derivation from ids keeps them apart, whatever the parents are.
    assert judge("seeds", Record(registered)).outcome == "pass"


def test_seeds_are_bound_to_ids_and_not_to_positions() -> None:
    registered = plan()
    rows = tuple(row(key, [30]) for key in registered.keys)
    assert judge("seed_binding", Record(registered, rows=rows[::-1])).outcome == "pass"
    swapped = tuple(
        row(key, [30], seed=other.seed) for key, other in zip(registered.keys, rows[1:] + rows[:1], strict=True)
    )
    assert judge("seed_binding", Record(registered, rows=swapped)).outcome == "fail"


@pytest.mark.parametrize("special", [0, -1, SEED_LIMIT])
def test_a_special_seed_fails(special: int) -> None:
    registered = plan()
    rows = [row(key, [30]) for key in registered.keys]
    rows[3] = row(registered.keys[3], [30], seed=special)
    bound = checks(judge("seed_binding", Record(registered, rows=tuple(rows))))["rows_with_derived_seed"]
    assert (bound.outcome, bound.k, bound.n, bound.note) == ("fail", 3, 4, "first: t2/1")


@pytest.mark.parametrize("change", ["missing", "twice", "other"])
def test_every_registered_row_counts_once(change: str) -> None:
    registered = plan()
    rows = [row(key, [30]) for key in registered.keys]
    if change == "missing":
        del rows[1]
    elif change == "twice":
        rows.append(rows[1])
    else:
        rows[1] = row(RowKey("t1", 7), [30])
    bound = checks(judge("seed_binding", Record(registered, rows=tuple(rows))))["rows_with_derived_seed"]
    assert (bound.outcome, bound.k, bound.n) == ("fail", 3, 4)


@pytest.mark.parametrize("record", [Record(plan()), Record(plan(base_seed=None), rows=())])
def test_unrecorded_rows_and_unregistered_seeds_are_inconclusive(record: Record) -> None:
    assert judge("seed_binding", record).outcome == "inconclusive"


@pytest.mark.parametrize(("thinking", "derived"), [("natural", 2), ("force_close", 4)])
def test_a_contrast_draws_a_task_three_times_with_the_seeds_of_its_first_sample(thinking: str, derived: int) -> None:
    registered = plan(samples_per_task=3, adapter="contrast", thinking=thinking)
    check = checks(judge("seeds", Record(registered)))["distinct_seeds"]
    assert (check.outcome, check.k, check.n) == ("pass", derived, derived)
    rows = [row(key, [30], seed=child_seed(11, key.task_id, 0)) for key in registered.keys]
    assert judge("seed_binding", Record(registered, rows=tuple(rows))).outcome == "pass"
    rows[5] = row(registered.keys[5], [30])  # its own seed, as outside a contrast
    bound = checks(judge("seed_binding", Record(registered, rows=tuple(rows))))["rows_with_derived_seed"]
    assert (bound.outcome, bound.k, bound.n, bound.note) == ("fail", 5, 6, "first: t2/2")


@pytest.mark.parametrize("adapter", ["on", "off"])
def test_nothing_but_a_contrast_repeats_a_seed(adapter: str) -> None:
    registered = plan(samples_per_task=3, adapter=adapter)
    assert checks(judge("seeds", Record(registered)))["distinct_seeds"].n == 6
    rows = tuple(row(key, [30], seed=child_seed(11, key.task_id, 0)) for key in registered.keys)
    assert judge("seed_binding", Record(registered, rows=rows)).outcome == "fail"


@pytest.mark.parametrize(("thinking", "derived"), [("natural", 4), ("force_close", 8)])
def test_a_second_stage_has_seeds_of_its_own(thinking: str, derived: int) -> None:
    check = checks(judge("seeds", Record(plan(thinking=thinking))))["distinct_seeds"]
    assert (check.outcome, check.k, check.n) == ("pass", derived, derived)
