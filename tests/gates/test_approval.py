from dataclasses import replace

import pytest

from gatepost.evidence import Approval, Plan, Record
from gatepost.protocol import Approvals
from gatepost.stages import Rung, Scope

from .builders import DIGEST, checks, judge, plan

AUTHOR, ALICE, BOB, EVE = (bytes([number]) * 32 for number in (1, 2, 3, 4))
OTHER = "sha256:" + "1" * 64
REVIEWERS = {"alice": ALICE, "bob": BOB}


def asking(needed: int, *, scope: Scope = Scope.NESTED, reviewers: dict[str, bytes] = REVIEWERS) -> Plan:
    registered = plan(scope=scope)
    approvals = Approvals(AUTHOR, reviewers, {"stage": needed})
    return replace(registered, protocol=replace(registered.protocol, approvals=approvals))


def go(key: bytes, *, step: str = "stage", protocol: str = DIGEST, holds: bool | None = True) -> Approval:
    return Approval(protocol, step, key, holds)


@pytest.mark.parametrize(
    ("needed", "given", "outcome"),
    [
        (1, [go(ALICE)], "pass"),
        (1, [go(ALICE), go(BOB)], "pass"),
        (2, [go(BOB), go(ALICE)], "pass"),
        (1, [], "fail"),
        (2, [go(ALICE)], "fail"),
        (2, [go(ALICE), go(ALICE)], "fail"),
        (1, [go(AUTHOR)], "fail"),
        (1, [go(EVE)], "fail"),
        (1, [go(ALICE, step="other")], "fail"),
        (1, [go(ALICE, step="stage@16")], "fail"),
        (1, [go(ALICE, step="")], "fail"),
        (1, [go(ALICE, protocol=OTHER)], "fail"),
        (1, [go(ALICE, protocol=DIGEST.removeprefix("sha256:"))], "fail"),
        (1, [go(ALICE, holds=False)], "fail"),
        # One that is none beside enough that are: somebody put it there.
        (1, [go(ALICE), go(ALICE)], "fail"),
        (1, [go(ALICE), go(AUTHOR)], "fail"),
        (1, [go(ALICE), go(EVE)], "fail"),
        (1, [go(ALICE), go(BOB, step="other")], "fail"),
        (1, [go(ALICE), go(BOB, holds=False)], "fail"),
        # What no library could check opens nothing, whatever else there is.
        (1, [go(ALICE, holds=None)], "inconclusive"),
        (1, [go(ALICE), go(BOB, holds=None)], "inconclusive"),
        (1, None, "inconclusive"),
    ],
)
def test_as_many_reviewers_as_needed_for_this_step(needed: int, given: list[Approval] | None, outcome: str) -> None:
    approvals = None if given is None else tuple(given)
    assert judge("approval", Record(asking(needed), approvals=approvals)).outcome == outcome


@pytest.mark.parametrize("step", ["stage", "stage@16", "stage@8"])
@pytest.mark.parametrize("scope", [Scope.ONCE, Scope.NESTED, Scope.RUNG, Scope.SELECTED])
def test_a_go_is_for_the_step_that_is_judged(scope: Scope, step: str) -> None:
    """A nested stage is one step, however many rungs it is judged at; the others are one per rung."""
    registered = asking(1, scope=scope)
    expected = "stage" if scope in (Scope.ONCE, Scope.NESTED) else "stage@16"
    outcome = judge("approval", Record(registered, approvals=(go(ALICE, step=step),))).outcome
    assert outcome == ("pass" if step == expected else "fail")
    lower = replace(registered, rung=Rung(8, {}))
    outcome = judge("approval", Record(lower, approvals=(go(ALICE, step=step),))).outcome
    assert outcome == ("pass" if step == expected.replace("16", "8") else "fail")


def test_a_key_counts_once_under_whatever_names_and_never_for_the_author() -> None:
    """No such protocol can be frozen; the gate does not rely on that."""
    twice = asking(2, reviewers={"alice": ALICE, "alicia": ALICE})
    assert judge("approval", Record(twice, approvals=(go(ALICE), go(ALICE)))).outcome == "fail"
    own = asking(1, reviewers={"me": AUTHOR})
    assert judge("approval", Record(own, approvals=(go(AUTHOR),))).outcome == "fail"


def test_the_counts_are_reviewers_of_those_needed() -> None:
    found = checks(judge("approval", Record(asking(2), approvals=(go(ALICE), go(EVE)))))
    assert (found["approvals"].k, found["approvals"].n, found["approvals_that_are_none"].observed) == (1, 2, 1)


@pytest.mark.parametrize("needed", [0, None])
def test_a_stage_that_asks_for_none_is_not_approved(needed: int | None) -> None:
    registered = plan() if needed is None else asking(needed)
    assert judge("approval", Record(registered, approvals=(go(ALICE),))).outcome == "inconclusive"
