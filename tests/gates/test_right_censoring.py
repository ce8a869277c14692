from typing import Any

import pytest

from gatepost.evidence import Record
from gatepost.stages import Scope

from .builders import checks, closed, failed, forced, judge, outcomes, plan, row, rows_of

ONE = plan(task_ids=["t"], samples_per_task=1)


def test_rungs_are_views_of_the_same_paths() -> None:
    for cap, k, note in [(8, 2, "2 closed at 8"), (16, 3, "2 closed at 8, 3 closed at 16")]:
        registered = plan(cap=cap)
        verdict = judge("right_censoring", Record(registered, rows=rows_of(registered, [1, 8, 9, None])))
        assert verdict.outcome == "pass"
        assert (checks(verdict)["closed_rows"].k, checks(verdict)["closed_rows"].note) == (k, note)


@pytest.mark.parametrize(
    ("step", "scope", "cap", "outcome"),
    [
        (16, Scope.NESTED, 8, "pass"),  # beyond this rung, within what was sampled
        (17, Scope.NESTED, 8, "fail"),
        (16, Scope.NESTED, 16, "pass"),
        (17, Scope.NESTED, 16, "fail"),
        (8, Scope.RUNG, 8, "pass"),
        (9, Scope.RUNG, 8, "fail"),
        (9, Scope.SELECTED, 8, "fail"),
    ],
)
def test_no_close_lies_beyond_the_sampled_cap(step: int, scope: Scope, cap: int, outcome: str) -> None:
    registered = plan(task_ids=["t"], samples_per_task=1, scope=scope, cap=cap)
    verdict = judge("right_censoring", Record(registered, rows=(row(registered.keys[0], closed(step)),)))
    assert outcomes(verdict)["closes_within_sampled_cap"] == outcome


@pytest.mark.parametrize(
    ("ids", "finish", "claims", "agrees"),
    [
        (closed(5), "stop", {}, True),
        (closed(5), "stop", {"natural_close": True, "close_step": 5, "think_tokens": 4}, True),
        (closed(5), "stop", {"close_step": 4}, False),  # counted from zero
        (closed(5), "stop", {"think_tokens": 5}, False),  # the close counted as thinking
        (closed(5), "stop", {"natural_close": False}, False),
        (closed(5), "stop", {"close_step": None}, False),
        ([30] * 16, "length", {"natural_close": False, "close_step": None, "think_tokens": 16}, True),
        ([30] * 16, "length", {"think_tokens": 0}, False),  # unclosed thinking stored as none
        ([30] * 16, "length", {"close_step": 16}, False),
        ([30] * 16, "length", {"natural_close": True}, False),
        ([30, 31, 2], "stop", {"natural_close": False, "close_step": None, "think_tokens": 2}, True),
        ([30, 8, 50, 8, 2], "stop", {"natural_close": True}, False),  # two closes are not one
        ([30] * 16, "length", {"cache_contract_pass": True, "close_steps": 3}, True),  # not this gate's claims
    ],
)
def test_a_record_made_elsewhere_is_held_against_the_ids(
    ids: list[int], finish: str, claims: dict[str, Any], agrees: bool
) -> None:
    record = Record(ONE, rows=(row(ONE.keys[0], ids, finish=finish, claims=claims),))
    assert failed(judge("right_censoring", record)) == (set() if agrees else {"claims_as_recomputed"})


def test_missing_rows_are_not_vouched_for() -> None:
    registered = plan()
    verdict = judge("right_censoring", Record(registered, rows=rows_of(registered, [4] * 4)[:3]))
    assert failed(verdict) == {"closes_within_sampled_cap", "claims_as_recomputed"}
    assert checks(verdict)["claims_as_recomputed"].note == "first: t2/1"


@pytest.mark.parametrize("record", [Record(plan()), Record(plan(scope=Scope.ONCE, cap=None), rows=())])
def test_no_sample_and_no_cap_are_inconclusive(record: Record) -> None:
    assert judge("right_censoring", record).outcome == "inconclusive"


def test_a_forced_close_lies_beyond_the_cap_and_is_no_close() -> None:
    registered = plan(task_ids=["t"], samples_per_task=2, scope=Scope.RUNG, cap=8, thinking="force_close")
    own, other = registered.keys
    claims = {"natural_close": False, "think_tokens": 8}
    rows = (row(own, closed(8)), forced(other, [30] * 8, claims=claims))
    verdict = judge("right_censoring", Record(registered, rows=rows))
    assert verdict.outcome == "pass"
    assert (checks(verdict)["closed_rows"].k, checks(verdict)["closed_rows"].note) == (1, "1 closed at 8")
    boast = forced(other, [30] * 8, claims={"natural_close": True})
    assert failed(judge("right_censoring", Record(registered, rows=(rows[0], boast)))) == {"claims_as_recomputed"}
