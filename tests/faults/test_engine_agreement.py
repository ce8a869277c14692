"""What is said of one engine before and after generation, and what it counted, has to fit together and fit its rows."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engine import EngineFacts
from gatepost.engines.scripted import ScriptedEngine
from gatepost.ladder import Step
from gatepost.stepfiles import facts_of
from tests.archives import Project, create_project, rewrite
from tests.faults.conftest import problem, rebind

SELECTION = Step("selection")
SETTINGS = {"max_num_seqs": 4, "speculative_tokens": 0}
COUNTERS = {"preemptions": None, "steps": None, "sampled_tokens": None, "dispatch": None}
Facts = dict[str, Any]
Change = Callable[[Facts], object]


def rewritten(project: Project, archive: Archive, *, before: Change | None = None, after: Change | None = None) -> str:
    """Change the facts before or after generation, with every digest made anew; returns the problem with it."""
    folder = archive.step_folder(SELECTION)
    for name, change in (("preflight.json", before), ("session.json", after)):
        if change is not None:
            rewrite(folder / name, lambda document, change=change: change(document["engine"]))  # type: ignore[misc]
    rebind(archive, SELECTION)
    return problem(project, archive.root)


OTHER: Facts = {
    "kind": "another",
    "versions": {"torch": "0.0.1"},
    "device": "cuda:0",
    "device_name": "another",
    "dtype": "float16",
    "attention": "another",
    "use_cache": False,
    "max_model_len": 4095,
    "model_files": {"config.json": "0" * 64},
    "revision": "1" * 40,
    "tokenizer_revision": "1" * 40,
    "markers": {"<think>": 1},
    "model_eos_ids": [],
    "tokenizer_eos_id": 1,
    "sampling": {"temperature": 0.0},
    "cuda_graphs": {"mode": "FULL"},
    "kv_cache": {"num_blocks": 1981},
    "environment": {"OMP_NUM_THREADS": "3"},
    "adapter_files": {"adapter.safetensors": "0" * 64},
}
"""Another value of each fact; ``scheduler`` has tests of its own."""


def test_each_fact_has_another_value() -> None:
    assert OTHER.keys() | {"scheduler"} == {field.name for field in dataclasses.fields(EngineFacts)}


@pytest.mark.parametrize("field", OTHER)
def test_an_engine_stays_what_it_was(copied: tuple[Project, Archive], field: str) -> None:
    said = rewritten(*copied, after=lambda facts: facts.update({field: OTHER[field]}))
    assert f"session.json: field engine.{field} is " in said
    assert "before generation it was " in said


@pytest.mark.parametrize("field", ["kv_cache", "device_name", "max_model_len", "versions"])
def test_an_engine_was_what_it_is(copied: tuple[Project, Archive], field: str) -> None:
    said = rewritten(*copied, before=lambda facts: facts.update({field: OTHER[field]}))
    assert f"session.json: field engine.{field} is " in said


def test_what_is_said_alike_on_both_sides_is_judged_again(copied: tuple[Project, Archive]) -> None:
    def change(facts: Facts) -> None:
        facts.update(max_model_len=1)

    assert "preflight: toy_engine" in rewritten(*copied, before=change, after=change)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"scheduler": None}, {"scheduler": SETTINGS | COUNTERS}, ""),
        ({"scheduler": SETTINGS}, {"scheduler": None}, ""),
        ({"scheduler": SETTINGS | COUNTERS}, {"scheduler": SETTINGS | COUNTERS | {"preemptions": 3}}, ""),
        ({"scheduler": SETTINGS | {"preemptions": 0}}, {"scheduler": SETTINGS | {"preemptions": 3}}, ""),
        ({"scheduler": SETTINGS | {"own": None}}, {"scheduler": SETTINGS | {"own": 3}}, ""),
        ({"scheduler": SETTINGS | {"own": 1}}, {"scheduler": SETTINGS | {"own": 3}}, "scheduler is {'own': 3}, before"),
        ({"scheduler": SETTINGS}, {"scheduler": SETTINGS | {"max_num_seqs": 5}}, "scheduler is {'max_num_seqs': 5}"),
        ({"scheduler": SETTINGS}, {"scheduler": {"max_num_seqs": 4}}, "it was {'speculative_tokens': 0}"),
        ({"scheduler": SETTINGS}, {"scheduler": SETTINGS | {"speculative_tokens": False}}, "{'speculative_tokens': F"),
        ({}, {"sampling": None}, ""),
        ({"sampling": None}, {}, "engine.sampling is {"),
        ({"environment": {"versions_changed": {}}}, {"environment": {"versions_changed": {"torch": ["1", "2"]}}}, ""),
        ({"environment": {"search_path_added_folders": 0}}, {"environment": {"search_path_added_folders": 2}}, ""),
        ({"environment": {"threads": 2}}, {"environment": {"threads": 3}}, "is {'threads': 3}, before generation it"),
        ({"environment": {"threads": 2}}, {"environment": {}}, "is {}, before generation it was {'threads': 2}"),
        ({"environment": {}}, {"environment": {"threads": 2}}, "is {'threads': 2}, before generation it was {}"),
    ],
)
def test_what_may_change_is_named(copied: tuple[Project, Archive], before: Facts, after: Facts, said: str) -> None:
    found = rewritten(*copied, before=lambda facts: facts.update(before), after=lambda facts: facts.update(after))
    assert said in found
    assert bool(found) is bool(said)


@pytest.mark.parametrize(
    ("speculative", "counted", "said"),
    [
        (0, lambda ids, longest: {"sampled_tokens": ids, "steps": longest}, ""),
        (0, lambda ids, longest: {"sampled_tokens": ids + 7, "steps": 10**6}, ""),
        (0, lambda ids, longest: {"sampled_tokens": ids - 1}, "scheduler.sampled_tokens is "),
        (0, lambda ids, longest: {"sampled_tokens": 0}, "scheduler.sampled_tokens is 0"),
        (0, lambda ids, longest: {"steps": longest - 1}, "scheduler.steps is "),
        (1, lambda ids, longest: {"steps": (longest + 1) // 2}, ""),
        (1, lambda ids, longest: {"steps": (longest + 1) // 2 - 1}, "scheduler.steps is "),
        (None, lambda ids, longest: {"steps": 1}, ""),
        (0, lambda ids, longest: {"sampled_tokens": None, "steps": None, "dispatch": None}, ""),
        (0, lambda ids, longest: {"dispatch": [entry(ids - longest, 1), entry(1, longest)]}, ""),
        (0, lambda ids, longest: {"dispatch": [entry(ids - longest, 1), entry(1, longest - 1)]}, "dispatch.tokens is "),
        (0, lambda ids, longest: {"dispatch": [entry(1, 1)]}, "scheduler.dispatch."),
        (0, lambda ids, longest: {"dispatch": [entry(ids, longest - 1)]}, "dispatch.steps is "),
        (1, lambda ids, longest: {"dispatch": [entry(ids, (longest + 1) // 2)]}, ""),
        (0, lambda ids, longest: {"dispatch": [{"mode": "FULL", "steps": 1}]}, ""),
    ],
)
def test_an_engine_counted_what_its_rows_hold(
    copied: tuple[Project, Archive], speculative: int | None, counted: Callable[[int, int], Facts], said: str
) -> None:
    """It may have counted more: ids past a limit are dropped. Of a count that is unknown nothing is known."""
    _, archive = copied
    rows = tables.read_rows(archive.step_folder(SELECTION) / "rows.parquet")
    lengths = [row.sampled_tokens for row in rows]
    settings = SETTINGS | {"speculative_tokens": speculative}
    scheduler = settings | counted(sum(lengths), max(lengths))
    found = rewritten(
        *copied,
        before=lambda facts: facts.update(scheduler=settings | COUNTERS),
        after=lambda facts: facts.update(scheduler=scheduler),
    )
    assert said in found
    assert bool(found) is bool(said)


def entry(tokens: int, steps: int) -> Facts:
    return {"mode": "FULL", "tokens": tokens, "padded_tokens": tokens, "steps": steps}


@pytest.mark.parametrize(
    ("elapsed", "generation", "faithful"),
    [(2.5, 2.499, True), (2.5, 2.5, True), (2.5, 2.501, False), (0.001, 99999.5, False), (None, 5.0, True),
     (0.5, None, True)],
)  # fmt: skip
def test_a_step_takes_as_long_as_its_generation(
    copied: tuple[Project, Archive], elapsed: float | None, generation: float | None, faithful: bool
) -> None:
    project, archive = copied
    seconds = {"elapsed_seconds": elapsed, "generation_seconds": generation}
    rewrite(archive.step_folder(SELECTION) / "session.json", lambda session: session.update(seconds))
    rebind(archive, SELECTION)
    found = problem(project, archive.root)
    assert (found == "") is faithful
    assert faithful or f"session.json: field generation_seconds is {generation}, in a step that took {elapsed}" in found


class Fickle(ScriptedEngine):
    """Says of itself after generation what the test has it say."""

    changes: Facts = {}  # noqa: RUF012
    asked = 0

    def facts(self) -> EngineFacts:
        self.asked += 1
        return dataclasses.replace(super().facts(), **(self.changes if self.asked > 1 else {}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device_name": "another"}, "field engine.device_name is another, before generation it was script"),
        (
            {"scheduler": {"sampled_tokens": 1}},
            "field engine.scheduler.sampled_tokens is 1, rows.parquet takes at least",
        ),
        ({"scheduler": {"sampled_tokens": 10**6}}, None),
    ],
)
def test_an_engine_that_contradicts_itself_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Facts, said: str | None
) -> None:
    """What it was before generation is kept, its counts are unknown, and the receipt says why."""
    project = create_project(tmp_path)
    archive = project.freeze()
    project.step(archive)
    monkeypatch.setattr(Fickle, "changes", changes)
    assert str(project.step(archive, Fickle)) == "open: confirmation@32"
    limits, facts = archive.receipt(SELECTION)["limits"], facts_of(archive.step_folder(SELECTION))
    assert facts is not None
    assert facts.device_name == "script"
    assert (facts.scheduler is None) is (said is not None)
    assert [said in limit for limit in limits] == ([] if said is None else [True])
    assert problem(project, archive.root) == ""


def test_a_session_that_an_attempt_left_is_of_its_engine(copied: tuple[Project, Archive]) -> None:
    """What a later attempt would take over is held to the same."""
    project, archive = copied
    folder = archive.root / "attempts" / "0002-selection"
    archive.step_folder(SELECTION).rename(folder)
    shutil.rmtree(archive.root / "steps" / "confirmation@32")
    (archive.root / "selection.json").unlink()
    for number in range(5, 9):
        (archive.root / "log" / f"{number:04}.json").unlink()
    archive.journal.append("failed", at=archive.clock(), step="selection", attempt=2, detail="OSError: disk full")
    archive.write_catalog()
    assert problem(project, archive.root) == ""
    rewrite(folder / "session.json", lambda session: session["engine"].update(device_name="another"))
    archive.write_catalog()
    assert "0002-selection/session.json: field engine.device_name is another" in problem(project, archive.root)
