"""The fold: every rule of ``gatepost.ladder``, by table and by machine."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatepost.errors import OrderError
from gatepost.ladder import Decision, Judgement, Judgements, Step, audit, decide, judged_rungs, steps_of
from gatepost.protocol import Protocol
from gatepost.verdict import Check, Verdict
from tests.protocols import protocol, stage

PASS, REJECTED, UNKNOWN, UNSOUND = "pass", "rejected", "unknown", "unsound"

NATIVE = protocol(
    stage("checks", "once"), stage("smoke", "once"), stage("selection", "nested"), stage("confirmation", "selected")
)
MACRO = protocol(stage("probe", "rung"), stage("base", "rung"), stage("designed", "rung"))
CAPS = ("16", "32", "64")


def judgement(kind: str, rung: str | None = None) -> Judgement:
    """A judgement of that kind: one validity verdict and one adequacy verdict."""
    sound = {PASS: 1, REJECTED: 1, UNKNOWN: None, UNSOUND: 0}[kind]
    good = {PASS: 1, REJECTED: 0, UNKNOWN: 1, UNSOUND: 1}[kind]
    checks = [Check("sound", sound, "==", 1)], [Check("good", good, "==", 1)]
    roles = ("validity", "adequacy")
    return Judgement(rung, tuple(Verdict(role, 1, role, tuple(made)) for role, made in zip(roles, checks, strict=True)))


def at(*kinds: str) -> list[Judgement]:
    return [judgement(kind, cap) for kind, cap in zip(kinds, CAPS, strict=True)]


ONCE = {Step("checks"): [judgement(PASS)], Step("smoke"): [judgement(PASS)]}


@pytest.mark.parametrize(
    ("judgements", "state", "label", "rung", "step"),
    [
        ({}, "run", None, None, "checks"),
        ({Step("checks"): [judgement(PASS)]}, "run", None, None, "smoke"),
        ({Step("checks"): [judgement(REJECTED)]}, "halted", "HALTED", None, "checks"),
        ({Step("checks"): [judgement(UNKNOWN)]}, "halted", "HALTED", None, "checks"),
        (ONCE, "run", None, None, "selection"),
        ({**ONCE, Step("selection"): at(PASS, PASS, PASS)}, "run", None, "16", "confirmation@16"),
        ({**ONCE, Step("selection"): at(REJECTED, PASS, PASS)}, "run", None, "32", "confirmation@32"),
        ({**ONCE, Step("selection"): at(REJECTED, REJECTED, PASS)}, "run", None, "64", "confirmation@64"),
        ({**ONCE, Step("selection"): at(REJECTED, REJECTED, REJECTED)}, "exhausted", "EXHAUSTED", None, None),
        ({**ONCE, Step("selection"): at(UNKNOWN, PASS, PASS)}, "halted", "HALTED", None, "selection"),
        ({**ONCE, Step("selection"): at(UNSOUND, PASS, PASS)}, "halted", "HALTED", None, "selection"),
        # The first passing rung ends the climb: what lies above is not looked at.
        ({**ONCE, Step("selection"): at(PASS, UNKNOWN, UNSOUND)}, "run", None, "16", "confirmation@16"),
    ],
)
def test_native_ladder(
    judgements: Judgements, state: str, label: str | None, rung: str | None, step: str | None
) -> None:
    decision = decide(NATIVE, judgements)
    shown = (decision.state, decision.label, decision.rung, decision.step and str(decision.step))
    assert shown == (state, label, rung, step)
    assert audit(NATIVE, judgements) == decision


@pytest.mark.parametrize(
    ("kind", "state"),
    [(PASS, "replicated"), (REJECTED, "not_replicated"), (UNKNOWN, "halted"), (UNSOUND, "halted")],
)
def test_confirmation(kind: str, state: str) -> None:
    steps = {
        **ONCE,
        Step("selection"): at(REJECTED, PASS, PASS),
        Step("confirmation", "32"): [judgement(kind, "32")],
    }
    decision = audit(NATIVE, steps)
    assert (decision.state, decision.rung) == (state, "32")
    assert str(decision).startswith("decision: ")
    assert str(decision).endswith("selected=32")


@pytest.mark.parametrize(
    ("judgements", "stray"),
    [
        ({Step("smoke"): [judgement(PASS)]}, "smoke"),
        ({**ONCE, Step("confirmation", "16"): [judgement(PASS, "16")]}, "confirmation@16"),
        (
            {**ONCE, Step("selection"): at(PASS, PASS, PASS), Step("confirmation", "32"): [judgement(PASS, "32")]},
            "confirmation@32",
        ),
        (
            {
                **ONCE,
                Step("selection"): at(REJECTED, REJECTED, REJECTED),
                Step("confirmation", "64"): [judgement(PASS, "64")],
            },
            "confirmation@64",
        ),
    ],
)
def test_a_judgement_that_was_never_open_is_refused(judgements: Judgements, stray: str) -> None:
    with pytest.raises(OrderError, match=stray):
        audit(NATIVE, judgements)


def test_rungs_sampled_one_by_one() -> None:
    granted: dict[Step, list[Judgement]] = {}
    seen = []
    # Probe and base pass at 16, designed is rejected there; everything passes at 32.
    for kind in (PASS, PASS, REJECTED, PASS, PASS, PASS):
        decision = decide(MACRO, granted)
        assert decision.step is not None
        seen.append(str(decision.step))
        granted[decision.step] = [judgement(kind, decision.step.rung)]
    assert seen == ["probe@16", "base@16", "designed@16", "probe@32", "base@32", "designed@32"]
    assert audit(MACRO, granted).to_json() == {
        "state": "selected",
        "label": "SELECTED",
        "rung": "32",
        "step": None,
        "reason": "the first rung whose stages all passed",
    }


CONFIRMED = {**ONCE, Step("selection"): at(REJECTED, PASS, PASS)}


@pytest.mark.parametrize(
    ("judgements", "shown", "reason"),
    [
        ({}, "open: checks", "checks is the one open step"),
        ({Step("checks"): [judgement(REJECTED)]}, "decision: HALTED selected=none", "checks is fail: adequacy"),
        ({Step("checks"): [judgement(UNSOUND)]}, "decision: HALTED selected=none", "checks is unsound: validity"),
        ({Step("checks"): [judgement(UNKNOWN)]}, "decision: HALTED selected=none", "checks is inconclusive: validity"),
        (
            {**ONCE, Step("selection"): at(REJECTED, UNKNOWN, PASS)},
            "decision: HALTED selected=none",
            "selection is inconclusive at 32: validity",
        ),
        (
            {**ONCE, Step("selection"): at(UNSOUND, PASS, PASS)},
            "decision: HALTED selected=none",
            "selection is unsound at 16: validity",
        ),
        (
            {**ONCE, Step("selection"): at(REJECTED, REJECTED, REJECTED)},
            "decision: EXHAUSTED selected=none",
            "every rung was rejected",
        ),
        (CONFIRMED, "open: confirmation@32", "confirmation@32 is the one open step"),
        (
            {**CONFIRMED, Step("confirmation", "32"): [judgement(REJECTED, "32")]},
            "decision: NOT_REPLICATED selected=32",
            "confirmation@32 failed: adequacy",
        ),
        (
            {**CONFIRMED, Step("confirmation", "32"): [judgement(UNSOUND, "32")]},
            "decision: HALTED selected=32",
            "confirmation@32 is unsound at 32: validity",
        ),
        (
            {**CONFIRMED, Step("confirmation", "32"): [judgement(PASS, "32")]},
            "decision: REPLICATED selected=32",
            "every stage after the selection passed",
        ),
    ],
)
def test_a_decision_says_what_and_why(judgements: Judgements, shown: str, reason: str) -> None:
    decision = decide(NATIVE, judgements)
    assert (str(decision), decision.reason) == (shown, reason)


def test_a_missing_judgement_at_a_rung_is_an_order_error() -> None:
    with pytest.raises(OrderError, match="no judgement at rung 16"):
        decide(NATIVE, {**ONCE, Step("selection"): at(PASS, PASS, PASS)[1:]})


def test_steps_of_lists_every_possible_step() -> None:
    assert [str(step) for step in steps_of(NATIVE)] == [
        "checks", "smoke", "selection", "confirmation@16", "confirmation@32", "confirmation@64",
    ]  # fmt: skip
    assert judged_rungs(NATIVE, Step("selection")) == list(CAPS)
    assert judged_rungs(NATIVE, Step("confirmation", "32")) == ["32"]
    assert judged_rungs(NATIVE, Step("checks")) == [None]


@given(st.lists(st.sampled_from([PASS, REJECTED, UNKNOWN, UNSOUND]), min_size=3, max_size=3))
def test_selects_the_smallest_cap_with_nothing_unknown_below(kinds: list[str]) -> None:
    decision = decide(NATIVE, {**ONCE, Step("selection"): at(*kinds)})
    below = list(itertools.takewhile(lambda kind: kind == REJECTED, kinds))
    first = kinds[len(below)] if len(below) < 3 else None
    expected = {None: "exhausted", PASS: "run", UNKNOWN: "halted", UNSOUND: "halted"}[first]
    assert decision.state == expected
    assert decision.rung == (CAPS[len(below)] if first == PASS else None)


class LadderMachine(RuleBasedStateMachine):
    """Any order of outcomes keeps the rules that are written at the top of ``gatepost.ladder``."""

    @initialize(which=st.sampled_from([NATIVE, MACRO]))
    def start(self, which: Protocol) -> None:
        self.protocol = which
        self.granted: dict[Step, list[Judgement]] = {}
        self.decision: Decision = decide(which, {})

    @precondition(lambda self: not self.decision.terminal)
    @rule(data=st.data())
    def run_the_open_step(self, data: st.DataObject) -> None:
        step = self.decision.step
        assert step is not None
        assert step not in self.granted, "a step has one judgement"
        kinds = st.sampled_from([PASS, REJECTED, UNKNOWN, UNSOUND])
        rungs = judged_rungs(self.protocol, step)
        self.granted[step] = [judgement(data.draw(kinds, label=f"{step} at {rung}"), rung) for rung in rungs]
        self.decision = decide(self.protocol, self.granted)

    @precondition(lambda self: self.decision.terminal)
    @rule()
    def a_terminal_ladder_stays_terminal(self) -> None:
        assert self.decision.label is not None
        assert decide(self.protocol, self.granted) == self.decision

    @invariant()
    def the_auditor_agrees(self) -> None:
        if hasattr(self, "granted"):
            assert audit(self.protocol, self.granted) == self.decision

    @invariant()
    def nothing_follows_a_rejection_at_its_rung(self) -> None:
        if not hasattr(self, "granted"):
            return
        for step in self.granted:
            if step.rung is None:
                continue
            earlier = [other for other in self.granted if other.rung == step.rung and other != step]
            order = [entry.name for entry in self.protocol.stages]
            for other in earlier:
                if order.index(other.stage) < order.index(step.stage):
                    assert self.granted[other][0].outcome == PASS

    @invariant()
    def one_extra_receipt_is_always_caught(self) -> None:
        if not hasattr(self, "granted"):
            return
        for step in steps_of(self.protocol):
            if step not in self.granted and step != self.decision.step:
                extra = [judgement(PASS, rung) for rung in judged_rungs(self.protocol, step)]
                with pytest.raises(OrderError):
                    audit(self.protocol, {**self.granted, step: extra})


TestLadderMachine = LadderMachine.TestCase
