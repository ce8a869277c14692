"""Where a record and its recomputation disagree: each kind of difference, by itself, and none without one."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from gatepost.differences import Difference, as_stored, differences_of
from gatepost.ladder import Judgement
from gatepost.verdict import Check, Verdict

CHECKS = (Check("rate", 0.5, ">=", 0.8, 2, 4, "two"), Check("count", 3, "==", 3), Check("share", None, "<=", 0.5))
VERDICTS = (Verdict("first", 1, "validity", CHECKS[1:2]), Verdict("second", 2, "adequacy", CHECKS))
MADE = [Judgement(rung, VERDICTS) for rung in ("16", "32")]


def stored() -> list[Any]:
    return as_stored(MADE)


def second(recorded: list[Any]) -> Any:
    """The verdict of gate ``second`` at rung 16."""
    return recorded[0]["verdicts"][1]


def test_the_same_has_no_difference() -> None:
    assert list(differences_of(stored(), stored())) == []
    assert list(differences_of([], [])) == []


def test_what_is_stored_is_what_was_judged() -> None:
    assert [Judgement.from_json(document) for document in stored()] == MADE


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (lambda old: old.pop(1), "first[32]", "registered, but not recorded"),
        (lambda old: old[1].update(rung="64"), "judgement[64]", "a judgement is recorded, but not registered"),
        (lambda old: old[0]["verdicts"].pop(0), "first[16]", "registered, but not recorded"),
        (lambda old: second(old).update(gate="third"), "third[16]", "recorded, but not registered"),
        (lambda old: second(old).update(gate="third"), "second[16]", "registered, but not recorded"),
        (lambda old: old[0].update(outcome="pass"), "judgement[16]", "outcome: recorded pass, recomputed fail"),
        (lambda old: old[0].update(sound="fail"), "judgement[16]", "sound: recorded fail, recomputed pass"),
        (lambda old: old[0].pop("sound"), "judgement[16]", "sound: recorded None, recomputed pass"),
        (lambda old: second(old).update(version=1), "second[16]", "recorded version 1, role adequacy"),
        (lambda old: second(old).update(role="validity"), "second[16]", "recorded version 2, role validity"),
        (
            lambda old: second(old)["checks"][0].update(observed=0.75),
            "second[16]",
            "recorded rate 0.75 >= 0.8 (2/4): two, recomputed rate 0.5 >= 0.8 (2/4): two",
        ),
        (
            lambda old: second(old)["checks"][0].update(note=None),
            "second[16]",
            "recorded rate 0.5 >= 0.8 (2/4), recomputed rate 0.5 >= 0.8 (2/4): two",
        ),
        (lambda old: second(old)["checks"].pop(1), "second[16]", "recorded None, recomputed count 3 == 3"),
        (
            lambda old: second(old)["checks"].append(Check("more", 1, "==", 1).to_json()),
            "second[16]",
            "recorded more 1 == 1, which the gate no longer makes",
        ),
        (
            lambda old: second(old)["checks"].reverse(),
            "second[16]",
            "its checks are the same, but their order or an outcome on record does not follow from them",
        ),
        (
            lambda old: second(old).update(outcome="pass"),
            "second[16]",
            "its checks are the same, but their order or an outcome on record does not follow from them",
        ),
    ],
)
def test_each_difference_is_told(change: Callable[[list[Any]], None], where: str, what: str) -> None:
    recorded = stored()
    change(recorded)
    before = copy.deepcopy(recorded)
    found = [str(difference) for difference in differences_of(recorded, stored())]
    assert f"{where}: {what}" in found
    assert recorded == before


@pytest.mark.parametrize("change", ["version", "role", "observed", "outcome"])
def test_a_change_in_one_verdict_is_told_of_that_one_alone(change: str) -> None:
    recorded = stored()
    target = second(recorded) if change != "observed" else second(recorded)["checks"][0]
    target[change] = {"version": 1, "role": "validity", "observed": 0.25, "outcome": "pass"}[change]
    found = list(differences_of(recorded, stored()))
    assert len(found) == 1
    assert (found[0].gate, found[0].rung) == ("second", "16")


def test_two_verdicts_of_one_gate_are_told() -> None:
    recorded = stored()
    recorded[0]["verdicts"].append(copy.deepcopy(second(recorded)))
    assert "judgement[16]: two verdicts of one gate are recorded" in map(str, differences_of(recorded, stored()))


def test_two_judgements_at_one_rung_are_told() -> None:
    recorded = stored()
    recorded[1]["rung"] = "16"
    assert "judgement: two judgements are recorded at one rung" in map(str, differences_of(recorded, stored()))


@pytest.mark.parametrize(
    ("difference", "shown"),
    [
        (Difference(None, None, "x"), "judgement: x"),
        (Difference("16", None, "x"), "judgement[16]: x"),
        (Difference(None, "g", "x"), "g: x"),
        (Difference("16", "g", "x"), "g[16]: x"),
    ],
)
def test_a_difference_names_gate_and_rung(difference: Difference, shown: str) -> None:
    assert str(difference) == shown
