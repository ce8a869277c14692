"""The ladder on disk: whatever its steps come to, the live run, the replay and any order of reading say the same."""

import itertools
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatepost.archive import Archive
from gatepost.errors import GatepostError, OrderError
from gatepost.ladder import Judgement, Judgements, Step, audit, decide, judged_rungs, steps_of
from gatepost.preflight import PreflightRefusedError
from gatepost.protocol import Protocol
from gatepost.replay import replay
from gatepost.selection import selection_of
from tests.archives import Project, create_project
from tests.every import EVERY
from tests.ladder.test_ladder import CAPS, MACRO, NATIVE, PASS, REJECTED, UNKNOWN, UNSOUND, judgement

DRAFTS: dict[str, dict[str, Any]] = {
    "passes at the first rung": {"think_tokens": (2, 6)},
    "passes at the second": {"think_tokens": (10, 20)},
    "passes at the last": {"think_tokens": (40, 60)},
    "never passes": {"think_tokens": (100, 110)},
    "closes too seldom once it is confirmed": {"think_tokens": (28, 36)},
    "is unsound from the start": {"min_tasks": 9},
    "is refused before generation": {"engine_model_len": 8192},
}


class ArchiveMachine(RuleBasedStateMachine):
    """Steps, second tries, look-ups from a copy and steps out of turn, in any order, on a real archive."""

    @initialize(draft=st.sampled_from(sorted(DRAFTS)))
    def freeze(self, draft: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.project: Project = create_project(self.folder / "project")
        self.archive: Archive = self.project.freeze(**DRAFTS[draft])
        self.decisions = [decide(self.archive.protocol, {})]
        self.selections = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @precondition(lambda self: not self.decisions[-1].terminal)
    @rule()
    def run_the_open_step(self) -> None:
        step = self.decisions[-1].step
        assert step is not None
        try:
            self.decisions.append(self.project.step(self.archive))
        except PreflightRefusedError:
            assert not self.archive.step_folder(step).exists(), "a refusal is no judgement"

    @precondition(lambda self: self.decisions[-1].terminal)
    @rule()
    def nothing_opens_after_the_end(self) -> None:
        before = self.archive.catalog()["root"]
        with pytest.raises(OrderError, match="no step is open"):
            self.project.step(self.archive)
        assert self.archive.catalog()["root"] == before

    @rule(data=st.data())
    def a_step_out_of_turn_is_refused(self, data: st.DataObject) -> None:
        steps = [step for step in steps_of(self.archive.protocol) if self.archive.step_folder(step).exists()]
        missing = [step for step in steps_of(self.archive.protocol) if step not in {*steps, self.decisions[-1].step}]
        if not steps or not missing:
            return
        step = data.draw(st.sampled_from(missing), label="step")
        copied = Archive(shutil.copytree(self.archive.root, self.folder / "copied" / self.archive.root.name))
        shutil.copytree(copied.step_folder(steps[0]), copied.step_folder(step))
        copied.write_catalog()
        with pytest.raises(GatepostError, match=str(copied.root)):
            replay(copied.root, gates=self.project.gates, studies=self.project.studies)
        shutil.rmtree(self.folder / "copied")

    @invariant()
    def a_replay_says_what_the_live_run_said(self) -> None:
        if not hasattr(self, "archive"):
            return
        replayed = replay(self.archive.root, gates=self.project.gates, studies=self.project.studies)
        assert replayed.faithful
        assert replayed.decision == self.decisions[-1]
        assert [str(step.step) for step in replayed.steps] == [str(made.step) for made in self.decisions[:-1]]

    @invariant()
    def at_most_one_rung_is_ever_selected(self) -> None:
        if not hasattr(self, "archive"):
            return
        events = [event for event in self.archive.journal.read() if event.event == "selected"]
        rungs = {decision.rung for decision in self.decisions if decision.rung is not None}
        assert len(events) <= 1
        assert len(rungs) <= 1
        assert (self.archive.root / "selection.json").exists() is bool(events)


TestArchiveMachine = ArchiveMachine.TestCase
TestArchiveMachine.settings = settings(max_examples=200 if EVERY else 6, stateful_step_count=8)

KINDS = st.sampled_from([PASS, REJECTED, UNKNOWN, UNSOUND])


@given(st.sampled_from([NATIVE, MACRO]), st.lists(KINDS, min_size=18, max_size=18), st.randoms(use_true_random=False))
def test_the_order_of_reading_does_not_matter(which: Protocol, kinds: list[str], order: random.Random) -> None:
    granted: dict[Step, list[Judgement]] = {}
    outcomes = iter(kinds)
    decision = decide(which, granted)
    while not decision.terminal and decision.step is not None:
        rungs = judged_rungs(which, decision.step)
        granted[decision.step] = [judgement(next(outcomes), rung) for rung in rungs]
        decision = decide(which, granted)
    steps = list(granted)
    order.shuffle(steps)
    shuffled: Judgements = {step: order.sample(granted[step], len(granted[step])) for step in steps}
    receipts = {step: str(step) for step in granted}
    assert audit(which, shuffled) == decision
    ours, theirs = selection_of(which, granted, receipts), selection_of(which, shuffled, receipts)
    assert ours == theirs


def test_every_outcome_of_every_step_leads_to_one_end() -> None:
    """All 4 ** 6 courses of the rung-by-rung ladder, as far as each goes: one end, and at most one selection."""
    ends = set()
    for kinds in itertools.product([PASS, REJECTED, UNKNOWN, UNSOUND], repeat=6):
        granted: Judgements = {}
        decision = decide(MACRO, granted)
        for kind in kinds:
            if decision.terminal or decision.step is None:
                break
            assert decision.step not in granted
            granted = {**granted, decision.step: [judgement(kind, decision.step.rung)]}
            decision = decide(MACRO, granted)
        ends.add((decision.state, decision.rung))
        assert (decision.rung is not None) is (decision.state == "selected")
        assert decision.terminal or len(granted) == 6
    selected = {("selected", cap) for cap in CAPS}
    assert ends == {*selected, ("exhausted", None), ("halted", None), ("run", None)}
