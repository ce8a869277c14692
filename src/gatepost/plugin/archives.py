"""An archive behind its pytest items: replayed piece by piece, and stepped on in a live run.

Imports what replay needs, so nothing imports this module before an archive is there to be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

import pytest

from gatepost import integrity
from gatepost.approval import require_checked
from gatepost.archive import Archive
from gatepost.differences import Difference
from gatepost.errors import ElsewhereError, GatepostError, OrderError
from gatepost.ladder import Decision, Step, audit, judged_rungs
from gatepost.plugin.live import live_requested
from gatepost.plugin.options import Workspace, workspace
from gatepost.plugin.terminal import ArchiveSummary, ProgressLine
from gatepost.preflight import AttemptReplay, preflights, replay_preflight
from gatepost.probe import Probe
from gatepost.replay import StepReplay, replay_ladder, replay_step
from gatepost.report import before_generation, replay_text, summary
from gatepost.status import how_to_go_on, needs_accelerator

T = TypeVar("T")


class UnfaithfulError(GatepostError):
    """The record says one thing, and recomputing it from the evidence gives another."""

    def __init__(self, differences: Iterable[object]) -> None:
        super().__init__("\n".join(map(str, differences)))


class ArchiveReplay:
    """One archive under replay. What several items ask about is read and judged once, also where that fails.

    The ``check_`` methods are the questions of the items. Each raises ``GatepostError`` with the answer no.
    """

    def __init__(self, root: Path, workspace: Workspace) -> None:
        self.root, self._workspace = root, workspace
        self._answers: dict[Hashable, object] = {}

    @property
    def archive(self) -> Archive:
        """The archive, its protocol read."""
        return self._once("archive", lambda: Archive(self.root, evidence=self._workspace.evidence))

    @cached_property
    def standing(self) -> Decision:
        """Where the receipts on record leave the study, not recomputed."""
        return audit(self.archive.protocol, self.archive.judgements())

    def needs_accelerator(self, step: Step) -> bool:
        """Whether a step starts an engine on an accelerator, as the protocol registers it."""
        return needs_accelerator(self.archive.protocol, step)

    def verdicts(self, step: Step) -> list[tuple[str | None, str]]:
        """(rung, gate) of every verdict that the protocol registers for a step."""
        stage = self.archive.protocol.stage(step.stage)
        return [(rung, gate.name) for rung in judged_rungs(self.archive.protocol, step) for gate in stage.gates]

    def check_integrity(self) -> None:
        """Is every byte accounted for?"""
        self._notes()

    def check_evidence(self, step: Step) -> None:
        """Is the evidence of a step what its receipt bound, and does the receipt judge what was registered?"""
        registered = self.verdicts(step)
        replayed = self._step(step)
        self._require_none(other for other in replayed.differences if (other.rung, other.gate) not in registered)
        _require_at_hand(replayed.unread)

    def check_verdict(self, step: Step, rung: str | None, gate: str) -> None:
        """Does the gate say of the evidence what the receipt says that it said?"""
        replayed = self._step(step)
        self._require_none(other for other in replayed.differences if (other.rung, other.gate) == (rung, gate))
        _require_at_hand(said for *which, said in replayed.unjudged if tuple(which) == (rung, gate))

    def check_preflight(self, folder: Path) -> None:
        """Do the gates before generation say what they said of an attempt that did not finish?"""
        self._require_whole()
        self._require_none(self._attempt(folder).differences)

    def check_ladder(self) -> ArchiveSummary:
        """Do the recomputed verdicts lead to the decisions and the selection on record?"""
        self._require_whole()
        steps = [self._step(step) for step in self.archive.finished_steps()]
        replayed = replay_ladder(self.archive, steps, self._notes())
        replayed = replace(replayed, attempts=tuple(map(self._attempt, preflights(self.archive))))
        self._require_none(replayed.decision_differences)
        live, decision = live_requested(self._workspace.config), replayed.decision
        text = replay_text(replayed, moves=live and not decision.terminal)
        if not live and not decision.terminal and decision.step is not None:
            text += f"\n  {how_to_go_on(self.archive, decision.step)}"
        return _summary(self.archive, decision, text, replayed.unjudged)

    def _notes(self) -> list[str]:
        root = self._workspace.expected_root
        return self._once("integrity", lambda: integrity.verify(self.archive, expected_root=root))

    def _step(self, step: Step) -> StepReplay:
        self._require_whole()
        gates, studies = self._workspace.gates, self._workspace.studies
        return self._once(step, lambda: replay_step(self.archive, step, gates=gates, studies=studies))

    def _attempt(self, folder: Path) -> AttemptReplay:
        gates, studies = self._workspace.gates, self._workspace.studies
        return self._once(folder, lambda: replay_preflight(self.archive, folder, gates=gates, studies=studies))

    def _require_whole(self) -> None:
        try:
            self.check_integrity()
        except GatepostError:
            raise GatepostError(f"{self.root}: not judged, since the archive is not whole: see integrity") from None
        self._once("approvals", lambda: require_checked(self.archive))

    @staticmethod
    def _require_none(differences: Iterable[Difference | str]) -> None:
        if found := list(differences):
            raise UnfaithfulError(found)

    def _once(self, question: Hashable, answer: Callable[[], T]) -> T:
        if question not in self._answers:
            try:
                self._answers[question] = answer()
            except GatepostError as error:
                self._answers[question] = error
        known = self._answers[question]
        if isinstance(known, GatepostError):
            raise known
        return cast(T, known)


def _require_at_hand(absent: Iterable[str]) -> None:
    if found := list(dict.fromkeys(absent)):
        raise ElsewhereError("\n".join(f"not judged here: {said}" for said in found))


def run_step(config: pytest.Config, archive: Archive, expected: Step | None = None) -> Decision:
    """Run the one open step of an archive, and tell the hook. Raises as ``Probe.run`` does."""
    available = workspace(config)
    if available.stepped:
        raise OrderError(f"{archive.root}: this invocation ran a step already; the next step is another invocation")
    available.stepped = True
    before = set(archive.finished_steps())
    with ProgressLine(config, archive.protocol.id) as progress:
        only = bool(config.getoption("gatepost_preflight"))
        probe = Probe(archive, available.gates, available.studies, available.open_engine, progress, preflight_only=only)
        decision = probe.run(expected=expected)
    for step in set(archive.finished_steps()) - before:
        config.hook.pytest_gatepost_receipt_written(archive=archive, step=step, decision=decision)
    return decision


def run_step_and_sum_up(config: pytest.Config, archive: Archive, expected: Step) -> ArchiveSummary:
    """Run the open step, or its preflight; returns the table of what is on record after it."""
    decision = run_step(config, archive, expected)
    if config.getoption("gatepost_preflight"):
        (*_, folder) = preflights(archive)
        installed = workspace(config)
        attempt = replay_preflight(archive, folder, gates=installed.gates, studies=installed.studies)
        text = "\n".join(
            [f"{archive.protocol.id}  {archive.protocol.digest}", *map("  {}".format, before_generation(attempt))]
        )
        return {
            "protocol": archive.protocol.id,
            "decision": f"{decision}; its preflight passed",
            "text": text,
            "unjudged": [],
        }
    notes = [f"{step}: {limit}" for step in archive.finished_steps() for limit in archive.receipt(step)["limits"]]
    root = archive.catalog()["root"]
    text = summary(archive.protocol, archive.judgements(), decision, notes=notes, root=root)
    return _summary(archive, decision, text)


def _summary(archive: Archive, decision: Decision, text: str, unjudged: Sequence[str] = ()) -> ArchiveSummary:
    said = f"{decision}; not judged here: {len(unjudged)}" if unjudged else str(decision)
    return {"protocol": archive.protocol.id, "decision": said, "text": text, "unjudged": list(unjudged)}
