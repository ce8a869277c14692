from typing import Any

import pytest

from gatepost.evidence import Parent, Record, Task, Tasks

from .builders import checks, failed, judge, outcomes, plan

EMPTY: frozenset[str] = frozenset()


def task(name: str, **changes: str) -> Task:
    prints = {f"{level}_fingerprint": f"{level} of {name}" for level in ("record", "content", "program")}
    return Task(**{"task_id": name, "split": "selection", "answers": ("cat",), "family": "f", **prints, **changes})  # type: ignore[arg-type]


def verdict(tasks: list[Task], parents: list[Parent] | None = None, **limits: int) -> Any:
    old = [Parent("old", EMPTY, EMPTY, EMPTY)] if parents is None else parents
    thresholds = {"max_record_overlap": 0, "max_content_overlap": 0, "max_program_overlap": 0, **limits}
    return judge("freshness", Record(plan(parents=["old"]), tasks=Tasks(tuple(tasks), tuple(old))), **thresholds)


def test_new_tasks_pass_and_the_checks_say_how_far_that_goes() -> None:
    fresh = verdict([task("t1"), task("t2")])
    assert fresh.outcome == "pass"
    assert {check.note for check in fresh.checks if check.n} == {"exact after normalisation only"}
    assert [check.name for check in fresh.checks] == [
        "parent_corpora",
        "repeated_records",
        "record_overlap",
        "repeated_contents",
        "content_overlap",
        "program_overlap",
    ]


@pytest.mark.parametrize(
    ("copy", "broken"),
    [
        ({"record_fingerprint": "record of t1"}, {"repeated_records"}),
        ({"content_fingerprint": "content of t1"}, {"repeated_contents"}),  # a new id, wrapping or order
        ({"program_fingerprint": "program of t1"}, set()),  # other examples of the same program
    ],
)
def test_a_disguised_copy_inside_the_study_is_caught_by_its_content(copy: dict[str, str], broken: set[str]) -> None:
    assert failed(verdict([task("t1"), task("t2", **copy)])) == broken


@pytest.mark.parametrize("level", ["record", "content", "program"])
@pytest.mark.parametrize(("limit", "outcome"), [(0, "fail"), (1, "pass"), (2, "pass")])
def test_overlap_is_counted_in_tasks_and_per_level(level: str, limit: int, outcome: str) -> None:
    old = {name: frozenset({f"{level} of t1"}) if name == level else EMPTY for name in ("record", "content", "program")}
    parents = [Parent("old", *old.values())]
    found = verdict([task("t1"), task("t2")], parents, **{f"max_{level}_overlap": limit})
    assert found.outcome == outcome
    check = checks(found)[f"{level}_overlap"]
    assert (check.observed, check.k, check.n) == (1, 1, 2)


@pytest.mark.parametrize(
    "parents", [[], [Parent("other", EMPTY, EMPTY, EMPTY)], [Parent("old", EMPTY, EMPTY, EMPTY)] * 2]
)
def test_exactly_the_registered_corpora_are_compared(parents: list[Parent]) -> None:
    assert "parent_corpora" in failed(verdict([task("t1"), task("t2")], parents))


@pytest.mark.parametrize("names", [[], ["t1"], ["t1", "t3"]])
def test_a_task_without_fingerprints_may_be_old(names: list[str]) -> None:
    found = outcomes(verdict([task(name) for name in names]))
    assert found.pop("parent_corpora") == "pass"
    assert set(found.values()) == {"inconclusive"}


def test_only_registered_tasks_are_judged() -> None:
    parents = [Parent("old", frozenset({"record of t3"}), EMPTY, EMPTY)]
    assert verdict([task("t1"), task("t2"), task("t3")], parents).outcome == "pass"


def test_unrecorded_tasks_are_inconclusive() -> None:
    thresholds = {"max_record_overlap": 9, "max_content_overlap": 9, "max_program_overlap": 9}
    assert set(outcomes(judge("freshness", Record(plan()), **thresholds)).values()) == {"inconclusive"}
