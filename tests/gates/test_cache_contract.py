"""Case f1: with the cache off every forward reads the whole sequence again."""

from typing import Any

import pytest

from gatepost.evidence import Record, Row

from .builders import checks, forced, judge, plan, row

ONE = plan(task_ids=["t"], samples_per_task=1)
KEY = ONE.keys[0]


def check(rows: list[Row], registered: Any = ONE) -> Any:
    return checks(judge("cache_contract", Record(registered, rows=tuple(rows))))["cached_rows"]


def one(lengths: list[int] | None, *, ids: int = 6, prompt_tokens: int = 23, **fields: Any) -> Any:
    return check([row(KEY, [30] * ids, lengths=lengths, prompt_tokens=prompt_tokens, **fields)])


def test_cached_decoding_passes() -> None:
    found = one([23, 1, 1, 1, 1, 1])
    assert (found.outcome, found.k, found.n) == ("pass", 1, 1)
    assert found.note == "28 ids fed, 28 due: overhead 1.0000"


def test_cache_off_fails_and_says_what_it_cost() -> None:
    found = one([23, 24, 25, 26, 27, 28])
    assert found.outcome == "fail"
    assert found.note == "t/0 fed 24 ids in forward 1, 1 due; 153 ids fed, 28 due: overhead 5.4643"


@pytest.mark.parametrize(
    ("lengths", "ids", "fault"),
    [
        ([22, 1, 1, 1, 1, 1], 6, "fed 22 ids in forward 0, 23 due"),  # a truncated prompt
        ([24, 1, 1, 1, 1, 1], 6, "fed 24 ids in forward 0, 23 due"),
        ([16, 7, 1, 1, 1, 1], 6, "fed 16 ids in forward 0, 23 due"),  # a prompt read in pieces
        ([23, 1, 1, 1, 1, 2], 6, "fed 2 ids in forward 5, 1 due"),
        ([23, 1, 1, 1, 1, 0], 6, "fed 0 ids in forward 5, 1 due"),
        ([23, 1, 1, 1, 28, 1], 6, "fed 28 ids in forward 4, 1 due"),  # the cache dropped once, in the middle
        ([23, 1, 1, 1, 1], 6, "has 5 forwards for 6 sampled ids"),
        ([23, 1, 1, 1, 1, 1, 1], 6, "has 7 forwards for 6 sampled ids"),
        ([], 6, "has 0 forwards for 6 sampled ids"),
        ([23], 0, "has 1 forwards for 0 sampled ids"),
    ],
)
def test_any_other_list_fails_at_its_first_fault(lengths: list[int], ids: int, fault: str) -> None:
    found = one(lengths, ids=ids)
    assert found.outcome == "fail"
    assert found.note.split(";")[0] == f"t/0 {fault}"


def test_a_row_of_one_id_takes_one_forward() -> None:
    assert one([23], ids=1).outcome == "pass"


def test_lists_that_nobody_recorded_are_inconclusive_and_a_claim_is_only_shown() -> None:
    found = one(None, claims={"cache_contract_pass": True})
    assert (found.outcome, found.observed) == ("inconclusive", None)
    assert found.note == (
        "1 rows without forward lengths; cache_contract_pass 1/1 is the authors' claim, not recomputed"
    )
    assert one(None).note == "1 rows without forward lengths"


def test_one_unrecorded_list_among_cached_rows_is_inconclusive_and_among_broken_ones_a_failure() -> None:
    registered = plan()
    good = [row(key, [30, 30], lengths=[5, 1]) for key in registered.keys]
    unknown = row(registered.keys[3], [30, 30])
    assert check(good, registered).outcome == "pass"
    assert check([*good[:3], unknown], registered).outcome == "inconclusive"
    broken = row(registered.keys[0], [30, 30], lengths=[5, 6])
    found = check([broken, *good[1:3], unknown], registered)
    assert (found.outcome, found.k, found.n) == ("fail", 2, 4)


def test_the_note_names_one_row_and_counts_all() -> None:
    registered = plan()
    rows = [row(key, [30, 30], lengths=[5, 6]) for key in registered.keys]
    assert check(rows, registered).note == ("t1/0 fed 6 ids in forward 1, 1 due; 44 ids fed, 24 due: overhead 1.8333")


@pytest.mark.parametrize("change", ["missing", "twice"])
def test_the_denominator_is_the_registered_rows(change: str) -> None:
    registered = plan()
    rows = [row(key, [30, 30], lengths=[5, 1]) for key in registered.keys]
    rows = rows[:-1] if change == "missing" else [*rows, rows[-1]]
    found = check(rows, registered)
    assert (found.outcome, found.k, found.n) == ("fail", 3, 4)
    assert found.note.startswith("t2/1 has not one row")


def test_unrecorded_rows_are_inconclusive() -> None:
    assert judge("cache_contract", Record(ONE)).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("lengths", "fault"),
    [
        ([23, 1, 1, 28, 1], None),  # 23 + 3 + 2 are fed again
        ([23, 1, 1, 1, 1], "fed 1 ids in forward 3, 28 due"),
        ([23, 1, 1, 26, 1], "fed 26 ids in forward 3, 28 due"),  # the close left out
        ([23, 1, 1, 28, 29], "fed 29 ids in forward 4, 1 due"),
        ([23, 1, 1, 2, 28, 1], "fed 2 ids in forward 3, 28 due"),
        ([23, 1, 1, 28], "has 4 forwards for 5 sampled ids"),
    ],
)
def test_a_second_stage_begins_with_everything_before_it(lengths: list[int], fault: str | None) -> None:
    found = check([forced(KEY, [30, 30, 30], lengths=lengths, prompt_tokens=23)])
    assert found.outcome == ("fail" if fault else "pass")
    assert fault is None or (found.note or "").split(";")[0] == f"t/0 {fault}"
