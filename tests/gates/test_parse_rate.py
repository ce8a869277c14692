import pytest

from gatepost.evidence import Record
from gatepost.reach import SampleSize

from .builders import checks, failed, gate, judge, outcomes
from .scored import scored, scored_plan, scores_of, unknown_scores

BOTH = {"parse_rate of base", "parse_rate of designed"}


@pytest.mark.parametrize(
    ("base", "designed", "broken"),
    [
        ("wwwwrrrr", "wwwwrrrr", set()),
        ("ww----ww", "mi----rM", set()),  # 4 of 8 is the limit; wrong and invalid answers parse
        ("www-----", "wwwwwwww", {"parse_rate of base"}),
        ("wwwwwwww", "www-----", {"parse_rate of designed"}),
        ("--------", "--------", BOTH),
    ],
)
def test_each_arm_by_itself(base: str, designed: str, broken: set[str]) -> None:
    verdict = judge("parse_rate", scored(base=base, designed=designed), min_parse_rate=0.5)
    assert failed(verdict) == broken
    assert {check.n for check in verdict.checks} == {8}
    assert checks(verdict)["parse_rate of base"].k == 8 - base.count("-")


@pytest.mark.parametrize("name", unknown_scores())
def test_scores_that_cannot_be_counted_are_inconclusive(name: str) -> None:
    verdict = judge("parse_rate", unknown_scores()[name], min_parse_rate=0.5)
    assert outcomes(verdict) == dict.fromkeys(BOTH, "inconclusive")


def test_nothing_registered_is_inconclusive() -> None:
    nothing = scored_plan(task_ids=())
    record = Record(nothing, scores=scores_of(nothing, base="", designed=""))
    assert set(outcomes(judge("parse_rate", record, min_parse_rate=0.5)).values()) == {"inconclusive"}


@pytest.mark.parametrize(
    ("limit", "minimum", "meets", "misses"),
    [(0.5, 72, True, True), (0.0, 0, True, False), (1.0, 144, True, True), (1.1, None, False, True)],
)
def test_reach(limit: float, minimum: int | None, meets: bool, misses: bool) -> None:
    reach = gate("parse_rate").reach
    assert reach is not None
    (found,) = reach(SampleSize(12, 12), min_parse_rate=limit)
    assert (found.minimum, found.of, found.meets, found.misses) == (minimum, 144, meets, misses)
