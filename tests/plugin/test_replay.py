"""``pytest receipts/``: one item per question, green for a faithful record whatever the experiment came to."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run


def names(result: pytest.RunResult) -> list[str]:
    return [line.partition("protocol.json::")[2] for line in result.outlines if "protocol.json::" in line]


def test_items_ask_about_integrity_then_steps_then_ladder(project: Project, run: Run) -> None:
    project.run(project.freeze())
    result = run("receipts", "--collect-only", "-q")
    assert names(result) == [
        "integrity",
        "design::evidence",
        "design::toy_sizes",
        "selection::evidence",
        "selection::toy_closes[8]",
        "selection::toy_engine[8]",
        "selection::toy_closes[32]",
        "selection::toy_engine[32]",
        "selection::toy_closes[64]",
        "selection::toy_engine[64]",
        "confirmation@32::evidence",
        "confirmation@32::toy_closes[32]",
        "ladder",
    ]


@pytest.mark.parametrize("arguments", [[], ["receipts"], ["receipts/toy"], ["receipts/toy/protocol.json"]])
def test_a_faithful_archive_is_green(project: Project, run: Run, arguments: list[str]) -> None:
    project.run(project.freeze())
    result = run(*arguments)
    result.assert_outcomes(passed=13)


def test_a_faithful_terminal_negative_is_green(project: Project, run: Run) -> None:
    project.run(project.freeze(think_tokens=(70, 80)))
    result = run("receipts")
    result.assert_outcomes(passed=11)
    result.stdout.fnmatch_lines(["*decision: NO_CAP selected=none"])


def test_a_faithful_halt_is_green(project: Project, run: Run) -> None:
    project.run(project.freeze(min_tasks=9))
    result = run("receipts")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*decision: HALTED selected=none"])


def test_an_archive_without_a_receipt_is_green(project: Project, run: Run) -> None:
    project.freeze()
    run("receipts").assert_outcomes(passed=2)


def test_archives_side_by_side(project: Project, run: Run) -> None:
    project.run(project.freeze("one"))
    project.freeze("two")
    run("receipts").assert_outcomes(passed=15)


@pytest.mark.parametrize(
    ("node", "count"),
    [("selection", 7), ("selection::toy_closes[32]", 1), ("selection::toy_closes", 3), ("ladder", 1)],
)
def test_items_can_be_named(project: Project, run: Run, node: str, count: int) -> None:
    project.run(project.freeze())
    run(f"receipts/toy/protocol.json::{node}").assert_outcomes(passed=count)


def test_every_replay_item_is_marked_cpu(project: Project, run: Run) -> None:
    project.run(project.freeze())
    run("receipts", "-m", "cpu", "--strict-markers").assert_outcomes(passed=13)


def test_empty_folders_may_be_lost(project: Project, run: Run) -> None:
    """Version control does not keep them."""
    archive = project.freeze()
    for name in ("attempts", "steps"):
        (archive.root / name).rmdir()
    run("receipts").assert_outcomes(passed=2)
    project.run(archive)
    (archive.root / "attempts").rmdir()
    run("receipts").assert_outcomes(passed=13)
