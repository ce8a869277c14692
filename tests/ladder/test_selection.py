"""What a selection holds, at each end of the ladder and before it."""

from typing import Any

import pytest

from gatepost.errors import OrderError
from gatepost.ladder import Judgements, Step
from gatepost.selection import selection_of

from .test_ladder import MACRO, NATIVE, ONCE, PASS, REJECTED, UNKNOWN, UNSOUND, at, judgement

SELECTION, CONFIRMATION = Step("selection"), Step("confirmation", "32")
CLIMBED = {**ONCE, SELECTION: at(REJECTED, PASS, UNSOUND)}


def receipts_of(judgements: Judgements) -> dict[Step, str]:
    return {step: f"sha256:{place}" for place, step in enumerate(judgements)}


@pytest.mark.parametrize(
    "judgements",
    [
        {},
        ONCE,
        {Step("checks"): [judgement(REJECTED)]},
        {**ONCE, SELECTION: at(UNKNOWN, PASS, PASS)},
        {**ONCE, SELECTION: at(REJECTED, UNSOUND, PASS)},
    ],
)
def test_there_is_none_while_rungs_are_open_or_after_a_halt(judgements: Judgements) -> None:
    assert selection_of(NATIVE, judgements, receipts_of(judgements)) is None


@pytest.mark.parametrize(
    ("kinds", "selected", "label", "outcomes"),
    [
        ((REJECTED, PASS, UNSOUND), "32", "SELECTED", ("fail", "pass", "fail")),
        ((PASS, UNKNOWN, REJECTED), "16", "SELECTED", ("pass", "inconclusive", "fail")),
        ((REJECTED, REJECTED, REJECTED), None, "EXHAUSTED", ("fail", "fail", "fail")),
    ],
)
def test_a_nested_ladder(kinds: tuple[str, ...], selected: str | None, label: str, outcomes: tuple[str, ...]) -> None:
    judgements: dict[Step, Any] = {**ONCE, SELECTION: at(*kinds)}
    assert selection_of(NATIVE, judgements, receipts_of(judgements)) == {
        "schema": "gatepost/selection/1",
        "protocol": NATIVE.digest,
        "receipts": {"checks": "sha256:0", "smoke": "sha256:1", "selection": "sha256:2"},
        "pass": selected is not None,
        "selected": selected,
        "label": label,
        "rungs": [
            {"rung": rung, "outcome": outcome} for rung, outcome in zip(("16", "32", "64"), outcomes, strict=True)
        ],
    }


@pytest.mark.parametrize("kind", [PASS, REJECTED, UNKNOWN, UNSOUND])
def test_what_follows_a_selection_does_not_change_it(kind: str) -> None:
    later = {**CLIMBED, CONFIRMATION: [judgement(kind, "32")]}
    found = selection_of(NATIVE, later, receipts_of(later))
    assert found is not None
    assert found == selection_of(NATIVE, CLIMBED, receipts_of(CLIMBED))


def test_rungs_that_were_never_tried_are_left_out() -> None:
    steps = [Step(stage, "16") for stage in ("probe", "base", "designed")]
    judgements = {step: [judgement(PASS, "16")] for step in steps}
    found = selection_of(MACRO, judgements, receipts_of(judgements))
    assert found is not None
    assert (found["rungs"], found["selected"]) == ([{"rung": "16", "outcome": "pass"}], "16")
    assert found["receipts"] == {"probe@16": "sha256:0", "base@16": "sha256:1", "designed@16": "sha256:2"}


def test_a_rung_that_one_stage_rejected_is_rejected() -> None:
    judgements = {Step("probe", "16"): [judgement(PASS, "16")], Step("base", "16"): [judgement(REJECTED, "16")]}
    judgements |= {Step(stage, "32"): [judgement(PASS, "32")] for stage in ("probe", "base", "designed")}
    found = selection_of(MACRO, judgements, receipts_of(judgements))
    assert found is not None
    assert found["rungs"] == [{"rung": "16", "outcome": "fail"}, {"rung": "32", "outcome": "pass"}]


def test_a_judgement_that_was_never_open_makes_none() -> None:
    with pytest.raises(OrderError, match="confirmation@16"):
        selection_of(NATIVE, {**CLIMBED, Step("confirmation", "16"): [judgement(PASS, "16")]}, {})
