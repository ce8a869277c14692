"""A stage as a document has it, and what follows from its fields."""

from dataclasses import replace

import pytest

from gatepost.stages import GateEntry, Rung, Scope, Stage

DOCUMENT = {
    "name": "selection",
    "scope": "nested",
    "arm": "base",
    "splits": ["first", "second"],
    "samples_per_task": 3,
    "max_tasks": 2,
    "max_think_tokens": 8,
    "base_seed": 11,
    "text": "sealed",
    "gates": {"b": {"version": 2, "thresholds": {"min_x": 1}}, "a": {"version": 1, "thresholds": {}}},
    "scores": ["base"],
    "adapter": "contrast",
}
STAGE = Stage(
    name="selection",
    scope=Scope.NESTED,
    arm="base",
    splits=("first", "second"),
    samples_per_task=3,
    max_tasks=2,
    max_think_tokens=8,
    base_seed=11,
    text="sealed",
    gates=(GateEntry("a", 1, {}), GateEntry("b", 2, {"min_x": 1})),
    scores=("base",),
    adapter="contrast",
)


def test_a_stage_from_its_document() -> None:
    assert Stage.from_json(DOCUMENT) == STAGE
    assert Stage.from_json({**DOCUMENT, "scores": None}).scores == ()
    assert Stage.from_json({key: value for key, value in DOCUMENT.items() if key != "adapter"}).adapter is None


@pytest.mark.parametrize(("text", "blind"), [("withheld", True), ("sealed", True), ("graded", False)])
def test_a_stage_is_blind_unless_it_grades(text: str, blind: bool) -> None:
    assert replace(STAGE, text=text).blind is blind


@pytest.mark.parametrize(("samples_per_task", "samples"), [(0, False), (1, True), (2, True)])
def test_a_stage_with_samples_starts_an_engine(samples_per_task: int, samples: bool) -> None:
    assert replace(STAGE, samples_per_task=samples_per_task).samples is samples


@pytest.mark.parametrize(
    ("adapter", "used", "draws"),
    [
        (None, [False, False, False], [0, 1, 2]),
        ("off", [False, False, False], [0, 1, 2]),
        ("on", [True, True, True], [0, 1, 2]),
        ("contrast", [False, True, True], [0, 0, 0]),
    ],
)
def test_which_samples_use_the_adapter_and_whose_seeds_they_take(
    adapter: str | None, used: list[bool], draws: list[int]
) -> None:
    stage = replace(STAGE, adapter=adapter)
    assert [stage.uses_adapter(index) for index in range(3)] == used
    assert [stage.draw(index) for index in range(3)] == draws


def test_a_stage_scores_nothing_and_uses_no_adapter_unless_it_says_so() -> None:
    said = {name: value for name, value in vars(STAGE).items() if name not in ("scores", "adapter")}
    assert (Stage(**said).scores, Stage(**said).adapter) == ((), None)


def test_a_rung_is_named_by_its_budget() -> None:
    assert Rung(160, {}).name == "160"
