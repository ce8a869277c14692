import pytest

from gatepost.evidence import Record

from .builders import facts, judge, outcomes, plan

THINK = {"<think>": 7, "</think>": 8}


@pytest.mark.parametrize(
    ("answers", "one_id", "distinct"),
    [
        ({"cat": 20, "dog": 21}, "pass", "pass"),
        ({"cat": 20}, "pass", "pass"),
        ({"cat": 20, "dog": None}, "fail", "pass"),  # more than one id, or none
        ({"cat": 20, "dog": 20}, "pass", "fail"),  # both are the unknown id
        ({"cat": 20, "dog": 8}, "pass", "fail"),  # an answer that would close thinking
        ({"cat": 0}, "pass", "pass"),
        ({}, "inconclusive", "pass"),
    ],
)
def test_answers_are_one_id_each(answers: dict[str, int | None], one_id: str, distinct: str) -> None:
    verdict = judge("one_id_answers", Record(plan(), facts(markers={**THINK, **answers})))
    assert outcomes(verdict) == {"answers_of_one_id": one_id, "distinct_ids": distinct}


def test_think_markers_are_left_to_the_pin() -> None:
    record = Record(plan(), facts(markers={"<think>": None, "</think>": 8, "cat": 20}))
    assert judge("one_id_answers", record).outcome == "pass"


@pytest.mark.parametrize("record", [Record(plan()), Record(plan(), facts())])
def test_unreported_markers_are_inconclusive(record: Record) -> None:
    assert judge("one_id_answers", record).outcome == "inconclusive"
