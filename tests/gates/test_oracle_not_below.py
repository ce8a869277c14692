from dataclasses import replace
from typing import Any

import pytest

from gatepost.reach import Reach, SampleSize

from .builders import checks, gate, judge
from .scored import scored, unknown_scores

ARMS: dict[str, Any] = {"arm": "designed", "baseline_arm": "base"}
COVERED = "oracle_covered_tasks"


@pytest.mark.parametrize(
    ("base", "designed", "covered", "baseline"),
    [
        ("r---" + "----", "--r-" + "----", 1, 1),  # as many, whichever they are
        ("r---" + "----", "r-wr" + "----", 2, 1),
        ("wwww" + "wwww", "wwww" + "wwww", 0, 0),
        ("r-wr" + "----", "-M--" + "rrrr", 1, 2),  # other tasks do not count
        ("r---" + "----", "i---" + "----", 0, 1),  # nor does what the arm does not offer
        ("i-i-" + "----", "M---" + "----", 1, 0),
    ],
)
def test_any_right_sample_covers_a_task(base: str, designed: str, covered: int, baseline: int) -> None:
    verdict = judge("oracle_not_below", scored(base=base, designed=designed), **ARMS)
    check = checks(verdict)[COVERED]
    assert (check.observed, check.limit, check.n) == (covered, baseline, 2)
    assert verdict.outcome == ("pass" if covered >= baseline else "fail")


@pytest.mark.parametrize("name", [*unknown_scores(), "tasks", "no reuse task"])
def test_missing_evidence_is_inconclusive(name: str) -> None:
    whole = scored(base="M" * 8, designed="M" * 8)
    records = {**unknown_scores(), "tasks": replace(whole, tasks=None)}
    records["no reuse task"] = scored(reuse=(), base="M" * 8, designed="M" * 8)
    assert judge("oracle_not_below", records[name], **ARMS).outcome == "inconclusive"


@pytest.mark.parametrize("arms", [{"arm": "other"}, {"baseline_arm": "other"}])
def test_an_arm_that_was_not_scored_is_inconclusive(arms: dict[str, str]) -> None:
    record = scored(base="M" * 8, designed="M" * 8)
    assert judge("oracle_not_below", record, **{**ARMS, **arms}).outcome == "inconclusive"


@pytest.mark.parametrize(("arm", "misses"), [("designed", True), ("base", False)])
def test_an_arm_is_never_below_itself(arm: str, misses: bool) -> None:
    reach = gate("oracle_not_below").reach
    assert reach is not None
    (found,) = reach(SampleSize(12, 12), arm=arm, baseline_arm="base")
    assert (found.meets, found.misses) == (True, misses)


@pytest.mark.parametrize(
    ("size", "baseline", "misses"),
    [
        (SampleSize(4, 2), "base", True),
        (SampleSize(1, 1), "base", True),
        (SampleSize(4, 2), "designed", False),  # an arm is never below itself
        (SampleSize(4, 0), "base", False),
        (SampleSize(0, 2), "base", False),
    ],
)
def test_an_arm_of_its_own_can_be_above(size: SampleSize, baseline: str, misses: bool) -> None:
    counted = gate("oracle_not_below").reaches(size, {"arm": "designed", "baseline_arm": baseline}, where="test")
    assert counted == (Reach("baseline_arm", 0, size.tasks, meets=True, misses=misses),)
