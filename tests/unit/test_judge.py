"""Which gates of a stage judge when, and at which rung their verdicts stand."""

from dataclasses import replace

import pytest

from gatepost.evidence import Record
from gatepost.judge import judge
from gatepost.stages import GateEntry, Scope
from tests.gates.builders import installed, plan

ENTRIES = (
    GateEntry("model_pin", 1, {}),  # reads the engine, before anything is sampled
    GateEntry("natural_close", 1, {"min_natural_close_rate": 0.5}),
    GateEntry("protocol_binding", 1, {}),
)


def record(cap: int | None) -> Record:
    known = plan(cap=cap, scope=Scope.RUNG if cap else Scope.ONCE)
    return Record(replace(known, stage=replace(known.stage, gates=ENTRIES)))


@pytest.mark.parametrize(
    ("before_generation", "names"),
    [(False, ["model_pin", "natural_close", "protocol_binding"]), (True, ["model_pin", "protocol_binding"])],
)
def test_gates_before_generation_are_those_that_need_no_samples(before_generation: bool, names: list[str]) -> None:
    made = judge(record(16), lambda entry: installed().of(entry, where="test"), before_generation=before_generation)
    assert [verdict.gate for verdict in made.verdicts] == names


@pytest.mark.parametrize(("cap", "rung"), [(16, "16"), (8, "8"), (None, None)])
def test_a_judgement_stands_at_the_rung_of_its_plan(cap: int | None, rung: str | None) -> None:
    made = judge(record(cap), lambda entry: installed().of(entry, where="test"))
    assert made.rung == rung
    assert len(made.verdicts) == 3


def test_a_gate_gets_the_thresholds_that_were_registered() -> None:
    made = judge(record(16), lambda entry: installed().of(entry, where="test"))
    assert [check.limit for check in made.verdicts[1].checks] == [0.5]
