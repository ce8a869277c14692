"""The ladder: a fold over judgements that says which step is open next, or how the study ended.

Rules, in order:

1. Stages that run once come first; each must pass before anything else opens, and any other outcome halts.
2. Rungs ascend. At a rung the ladder stages open in the registered order, each only after the one before passed.
3. A stage that fails for adequacy rejects its whole rung and opens the next one.
4. A stage whose evidence is unsound (a validity gate failed) or inconclusive halts: it is never a rejection.
5. The first rung whose stages all pass is selected. If there is none, the ladder is exhausted.
6. Only a selection opens the stages that follow it, at the selected rung and nowhere else.
7. Every state but ``run`` is terminal. A step has one judgement; a second try needs a new protocol.

The authoriser of a live run and the auditor of a replay call the same ``decide``; ``audit`` adds that every
judgement on record was one that the ladder asked for. Nothing here reads a file or a clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from gatepost.errors import OrderError, RegistrationError
from gatepost.protocol import Protocol
from gatepost.stages import Scope, Stage
from gatepost.verdict import JSON, Outcome, Verdict, conjunction


@dataclass(frozen=True, order=True)
class Step:
    """One invocation's worth of work: a stage, at a rung where the stage has one."""

    stage: str
    rung: str | None = None

    def __str__(self) -> str:
        return self.stage if self.rung is None else f"{self.stage}@{self.rung}"

    def to_json(self) -> dict[str, JSON]:
        return {"stage": self.stage, "rung": self.rung}


@dataclass(frozen=True)
class Judgement:
    """All verdicts of a step at one rung (``None`` outside the ladder)."""

    rung: str | None
    verdicts: tuple[Verdict, ...]

    @property
    def outcome(self) -> Outcome:
        """The conjunction of all verdicts."""
        return conjunction(verdict.outcome for verdict in self.verdicts)

    @property
    def sound(self) -> Outcome:
        """The conjunction of the validity verdicts alone; a judgement without any rests on nothing."""
        return conjunction(verdict.outcome for verdict in self.verdicts if verdict.role == "validity")

    def to_json(self) -> dict[str, JSON]:
        return {
            "rung": self.rung,
            "outcome": str(self.outcome),
            "sound": str(self.sound),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, JSON]) -> Self:
        return cls(document["rung"], tuple(Verdict.from_json(verdict) for verdict in document["verdicts"]))


@dataclass(frozen=True)
class Decision:
    """Where the judgements so far leave the study.

    Attributes:
        state: ``run``, ``selected``, ``replicated``, ``not_replicated``, ``exhausted`` or ``halted``.
        label: the registered name of a terminal state; ``HALTED`` for a halt; ``None`` while steps are open.
        rung: the selected rung, once there is one.
        step: the one open step of ``run``; the step that halted.
        reason: one sentence for people.
    """

    state: str
    label: str | None
    rung: str | None
    step: Step | None
    reason: str

    @property
    def terminal(self) -> bool:
        return self.state != "run"

    def __str__(self) -> str:
        if not self.terminal:
            return f"open: {self.step}"
        return f"decision: {self.label} selected={self.rung or 'none'}"

    def to_json(self) -> dict[str, JSON]:
        return {
            "state": self.state,
            "label": self.label,
            "rung": self.rung,
            "step": str(self.step) if self.step else None,
            "reason": self.reason,
        }


Judgements = Mapping[Step, Sequence[Judgement]]


def steps_of(protocol: Protocol) -> list[Step]:
    """Every step that could ever run, in ladder order; a stage after selection appears once per rung."""
    once, ladder, after = _by_scope(protocol)
    steps = [Step(stage.name) for stage in once]
    steps += [Step(stage.name) for stage in ladder if stage.scope is Scope.NESTED]
    rungs = [rung.name for rung in protocol.rungs]
    steps += [Step(stage.name, rung) for rung in rungs for stage in ladder if stage.scope is Scope.RUNG]
    return steps + [Step(stage.name, rung) for stage in after for rung in rungs]


def judged_rungs(protocol: Protocol, step: Step) -> list[str | None]:
    """The rungs at which a step is judged."""
    if protocol.stage(step.stage).scope is Scope.NESTED:
        return [rung.name for rung in protocol.rungs]
    return [step.rung]


def decide(protocol: Protocol, judgements: Judgements) -> Decision:
    """The decision that these judgements lead to. Raises ``OrderError`` for a step without a judgement it needs."""
    once, ladder, after = _by_scope(protocol)
    for stage in once:
        step = Step(stage.name)
        if step not in judgements:
            return _run(step, None)
        judgement = _at(judgements, step, None)
        if judgement.outcome is not Outcome.PASS:
            return _halted(step, judgement, None)
    selected, halt = _climb(protocol, ladder, judgements)
    if halt is not None:
        return halt
    if selected is None:
        return _terminal(protocol, "exhausted", None, "every rung was rejected")
    for stage in after:
        step = Step(stage.name, selected)
        if step not in judgements:
            return _run(step, selected)
        judgement = _at(judgements, step, selected)
        if _stops(judgement):
            return _halted(step, judgement, selected)
        if judgement.outcome is Outcome.FAIL:
            return _terminal(protocol, "not_replicated", selected, f"{step} failed: {_failed(judgement)}")
    if after:
        return _terminal(protocol, "replicated", selected, "every stage after the selection passed")
    return _terminal(protocol, "selected", selected, "the first rung whose stages all passed")


def audit(protocol: Protocol, judgements: Judgements) -> Decision:
    """Replay the ladder from nothing, and raise ``OrderError`` if a judgement on record was never open."""
    granted: dict[Step, Sequence[Judgement]] = {}
    decision = decide(protocol, granted)
    while not decision.terminal and decision.step is not None and decision.step in judgements:
        granted[decision.step] = judgements[decision.step]
        decision = decide(protocol, granted)
    extra = sorted(str(step) for step in set(judgements) - set(granted))
    if extra:
        raise OrderError(
            f"protocol {protocol.id}: receipt for {', '.join(extra)} was never authorised; "
            f"the ladder stands at {decision} ({decision.reason})"
        )
    return decision


def _by_scope(protocol: Protocol) -> tuple[list[Stage], list[Stage], list[Stage]]:
    once = [stage for stage in protocol.stages if stage.scope is Scope.ONCE]
    after = [stage for stage in protocol.stages if stage.scope is Scope.SELECTED]
    return once, [stage for stage in protocol.stages if stage not in (*once, *after)], after


def _climb(protocol: Protocol, ladder: list[Stage], judgements: Judgements) -> tuple[str | None, Decision | None]:
    """The first rung whose stages all passed, or the decision that stopped the climb."""
    for rung in protocol.rungs:
        for stage in ladder:
            step = Step(stage.name, None if stage.scope is Scope.NESTED else rung.name)
            if step not in judgements:
                return None, _run(step, None)
            judgement = _at(judgements, step, rung.name)
            if _stops(judgement):
                return None, _halted(step, judgement, None)
            if judgement.outcome is Outcome.FAIL:
                break
        else:
            return rung.name, None
    return None, None


def _at(judgements: Judgements, step: Step, rung: str | None) -> Judgement:
    for judgement in judgements[step]:
        if judgement.rung == rung:
            return judgement
    raise OrderError(f"step {step}: has no judgement at rung {rung}")


def _stops(judgement: Judgement) -> bool:
    return judgement.sound is Outcome.FAIL or judgement.outcome is Outcome.INCONCLUSIVE


def _failed(judgement: Judgement) -> str:
    return ", ".join(verdict.gate for verdict in judgement.verdicts if verdict.outcome is not Outcome.PASS)


def _run(step: Step, rung: str | None) -> Decision:
    return Decision("run", None, rung, step, f"{step} is the one open step")


def _halted(step: Step, judgement: Judgement, rung: str | None) -> Decision:
    problem = "unsound" if judgement.sound is Outcome.FAIL else str(judgement.outcome)
    where = "" if judgement.rung is None else f" at {judgement.rung}"
    return Decision("halted", "HALTED", rung, step, f"{step} is {problem}{where}: {_failed(judgement)}")


def _terminal(protocol: Protocol, state: str, rung: str | None, reason: str) -> Decision:
    if state not in protocol.labels:
        raise RegistrationError(f"protocol {protocol.id}: no label registered for the terminal state {state!r}")
    return Decision(state, protocol.labels[state].name, rung, None, reason)
