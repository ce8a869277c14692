"""What termination would be by the authors' counts: the registered limits, both sides of each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.table import ABSENT, Recomputed, lines_of, tally
from conformance.verified_macro import by_claims, judged, selection_of, values_of
from gatepost.absence import AbsentRows
from gatepost.archive import Archive
from gatepost.audit.claims import termination_by_claims
from gatepost.audit.verified_macro import import_run, read_run
from gatepost.plan import Plan
from gatepost.records import plan_of
from tests.published_macro import PROBES, Published, documents, write


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("published"), documents())


@pytest.fixture(scope="session")
def archive(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return import_run(source, tmp_path_factory.mktemp("receipts"))


@pytest.fixture
def plan(archive: Archive) -> Plan:
    protocol = archive.protocol
    return plan_of(archive, protocol.stage("probe"), protocol.rung("49152"), recorded_digest=protocol.digest)


def claims(**changes: Any) -> AbsentRows:
    """All 48 samples touch the boundary, and all of them loop."""
    counts = {
        "samples": 48, "forced_interventions": 48, "reasoning_boundary_contacts": 48, "answer_limit_contacts": 0,
        "period_tokens": [5] * 48,
    }  # fmt: skip
    return AbsentRows("rows.jsonl", 1, "0" * 64, 48, counts | changes)


@pytest.mark.parametrize(
    ("changes", "open_or_failed"),
    [
        ({}, {"loop_share": "fail"}),
        ({"period_tokens": [5] * 46}, {"loop_share": "fail"}),  # 2 of 48 unresolved are below 0.05
        ({"period_tokens": [5] * 45}, {"loop_share": "fail", "unresolved_share": "fail"}),
        ({"period_tokens": [5] * 12}, {"unresolved_share": "fail"}),  # 12 of 48 loops are at most 0.25
        ({"period_tokens": [5] * 13}, {"unresolved_share": "fail", "loop_share": "fail"}),
        ({"answer_limit_contacts": 2}, {"loop_share": "fail"}),
        ({"answer_limit_contacts": 3}, {"loop_share": "fail", "answer_limit_share": "fail"}),
        ({"samples": 47}, {"loop_share": "fail", "complete_rows": "inconclusive"}),
        ({"samples": 49}, {"loop_share": "fail", "complete_rows": "inconclusive"}),
        ({"forced_interventions": 0}, {"loop_share": "fail"}),  # all are at the boundary
        (
            {"forced_interventions": 20, "reasoning_boundary_contacts": 30, "period_tokens": []},
            {"unresolved_share": "inconclusive"},  # their union is 30 to 48
        ),
    ],
)
def test_limits(plan: Plan, changes: dict[str, Any], open_or_failed: dict[str, str]) -> None:
    verdict = termination_by_claims(plan, claims(**changes))
    assert {check.name: check.outcome for check in verdict.checks if check.outcome != "pass"} == open_or_failed


FACTS: dict[str, dict[str, Any]] = {
    "49152": {
        "capacity.rounded_tokens_per_sequence": 50688,
        "capacity.required_cache_tokens": 963072,
        "capacity.cache_margin_tokens": 33792,
        "capacity.margin_in_whole_blocks": 33792,
        "periodic_loop_rate": 38 / 48,
        "unresolved_cap_contact_rate": 10 / 48,
        "answer_limit_contact_rate": 0.125,
        "sampled_tokens_per_second": 491.395964,
    },
    "61440": {
        "capacity.rounded_tokens_per_sequence": 63360,
        "capacity.required_cache_tokens": 950400,
        "capacity.cache_margin_tokens": 47488,  # as published, by plain subtraction
        "capacity.margin_in_whole_blocks": 46992,
        "periodic_loop_rate": 40 / 48,
        "unresolved_cap_contact_rate": 8 / 48,
        "answer_limit_contact_rate": 4 / 48,
        "sampled_tokens_per_second": 397.688312,
    },
}
ALIKE = {
    "capacity.pass": True,
    "capacity.pass_one_more_sequence": False,
    "capture.pass": True,
    "capture.active_width_covered": True,
    "samples": 48,
    "adequate": False,
    "periods_sorted_and_in_range": True,
    "sampled_tokens_in_bounds": True,
}


def test_the_published_numbers_follow_from_counts_and_facts(source: Path, archive: Archive) -> None:
    run = read_run(source)
    probes = [judged(archive, run, probe) for probe in run.probes]
    for probe in probes:
        values = values_of(run, probe)
        expected = FACTS[probe.published.rung] | ALIKE
        assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    decision = by_claims(archive, probes)
    assert dict(selection_of(decision)) == {"selection.pass": False, "selection.selected_thinking_budget": None}


def odd(name: str, **changes: Any) -> Published:
    return next(probe for probe in PROBES if probe.name == name)._replace(**changes)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ({"width": 20}, {"capacity.pass": False, "capture.pass": False, "capture.active_width_covered": False}),
        ({"live_tokens": 963072}, {"capacity.pass": True, "capacity.cache_margin_tokens": 0}),
        ({"live_tokens": 963071}, {"capacity.pass": False}),
        ({"sizes": [1, 2, 4, 8, 16]}, {"capture.pass": False, "capture.active_width_covered": False}),
        ({"sampled": 48 * 49152}, {"sampled_tokens_in_bounds": True}),
        ({"sampled": 48 * 49152 - 1}, {"sampled_tokens_in_bounds": False}),
        ({"sampled": 48 * 49664}, {"sampled_tokens_in_bounds": True}),
    ],
)
def test_other_facts_give_other_numbers(first: dict[str, Any], expected: dict[str, Any], tmp_path: Path) -> None:
    source = write(tmp_path / "source", documents((odd("49k", **first), PROBES[1])))
    run, archive = read_run(source), import_run(source, tmp_path / "receipts")
    values = values_of(run, judged(archive, run, run.probes[0]))
    assert {name: values[name] for name in expected} == expected


def test_a_ladder_that_is_open_or_halted_has_no_selection(source: Path, archive: Archive) -> None:
    run = read_run(source)
    first = judged(archive, run, run.probes[0])
    assert dict(selection_of(by_claims(archive, [first]))) == {}, "the second rung is open"
    few = claims(forced_interventions=1, reasoning_boundary_contacts=1, period_tokens=[])  # their union is unknown
    halted = by_claims(archive, [first._replace(published=replace(first.published, rows=few))])
    assert (halted.label, dict(selection_of(halted))) == ("HALTED", {})


# The table of the comparison.


def item(status: str, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "published", "name": "n", "published": 1, "recomputed": 1, "status": status, "archive_file": "f",
        "note": "", **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("published", "derived", "right"),
    [
        (item("match"), 1, True),
        (item("match"), 2, False),
        (item("match"), True, False),
        (item("match"), ABSENT, False),
        (item("match", archive_file=None), ABSENT, True),  # takes files of the authors' checkout
        (item("match", archive_file=None), 2, False),
        (item("mismatch", recomputed=2), 2, True),
        (item("mismatch", recomputed=2), 1, False),
        (item("mismatch", recomputed=2), 3, False),
        (item("mismatch", recomputed=2), ABSENT, False),
        (item("not_derivable"), ABSENT, True),
        (item("not_derivable"), 1, False),
    ],
)
def test_a_line_is_right_only_as_it_is_published(published: dict[str, Any], derived: Any, right: bool) -> None:
    (line,) = lines_of([published], Recomputed(None, {"n": derived}, [], []))  # type: ignore[arg-type]
    assert line.right is right
    assert ("WRONG" in str(line)) is not right


def test_a_fact_beside_has_to_hold() -> None:
    lines = lines_of([item("match")], Recomputed(None, {"n": 1}, [("a", 1, 1), ("b", 1, 2), ("n", 1, 2)], []))  # type: ignore[arg-type]
    assert [(line.name, line.right) for line in lines] == [("n", True), ("a", True), ("b", False)]
    assert tally(lines) == "published: 1 match; fact: 1 match, 1 mismatch"
