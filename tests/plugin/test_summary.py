"""What is printed at the end: the table, the decision and the catalog root of each archive."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run, lines_with


@pytest.mark.parametrize("arguments", [[], ["-v"], ["--no-header"], ["-n2"]])
def test_the_table(project: Project, run: Run, arguments: list[str]) -> None:
    archive = project.freeze()
    project.run(archive)
    run("receipts", *arguments).stdout.fnmatch_lines(
        [
            "*= gatepost =*",
            f"toy  {archive.protocol.digest}",
            "  design",
            "    toy_sizes    pass",
            "  selection      8           32           64",
            "    toy_closes   fail 0/12   pass 12/12   pass 12/12",
            "    toy_engine   pass        pass         pass",
            "  confirmation   32",
            "    toy_closes   pass 8/8",
            "  note: ran on *: scripted",
            "  decision: REPLICATED selected=32",
            "    every stage after the selection passed",
            f"  catalog root: {archive.catalog()['root']}",
        ],
        consecutive=True,
    )


def test_quiet_prints_decisions_alone(project: Project, run: Run) -> None:
    project.run(project.freeze("one"))
    project.freeze("two")
    result = run("receipts", "-q")
    result.stdout.fnmatch_lines(["one: decision: REPLICATED selected=32", "two: open: design"], consecutive=True)
    assert not lines_with(result, "toy_closes")


@pytest.mark.parametrize("option", ["-qq", "--no-summary"])
def test_nothing_where_nothing_is_wanted(project: Project, run: Run, option: str) -> None:
    project.run(project.freeze())
    assert not lines_with(run("receipts", option), "REPLICATED")


def test_nothing_without_an_archive(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile("def test_own(): pass")
    result = run()
    result.assert_outcomes(passed=1)
    assert not lines_with(result, "= gatepost =")


def test_an_unfinished_attempt_is_a_note(project: Project, run: Run) -> None:
    archive = project.freeze()
    step = project.next_step(archive)
    archive.begin(step)
    result = run("receipts")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"  note: attempt 1 at {step} was started at * and never closed"])


def test_an_unknown_observation_is_explained_once_for_all_caps(project: Project, run: Run) -> None:
    gates = project.root / "gates" / "toy.py"
    unknown = 'yield share("close_share", 0, 0, ">=", min_close_share, note="nobody looked")\n    return\n    cap ='
    gates.write_text(gates.read_text().replace("cap =", unknown))
    project.run(project.freeze())
    result = run("receipts")
    result.stdout.fnmatch_lines(
        [
            "    toy_closes   inconclusive 0/0   inconclusive 0/0   inconclusive 0/0",
            "  inconclusive: selection::toy_closes[[]8, 32, 64[]]: close_share unknown >= 0.75 (0/0): nobody looked",
            "  decision: HALTED selected=none",
            "    selection is inconclusive at 8: toy_closes",
        ]
    )


def test_an_archive_that_is_not_whole_has_no_table(project: Project, run: Run) -> None:
    archive = project.freeze()
    (archive.root / "extra").write_text("")
    result = run("receipts")
    assert not lines_with(result, "= gatepost =")


def test_how_to_go_on_is_said_where_a_replay_leaves_a_step_open(project: Project, run: Run) -> None:
    archive = project.freeze()
    hint = f"  run it: pytest -m cpu {archive.root} --gatepost-live"
    assert lines_with(run("-m", "cpu", "receipts"), "run it") == [hint]
    assert not lines_with(run("-m", "cpu", "receipts", "--gatepost-live"), "run it")
    project.run(archive)
    assert not lines_with(run("-m", "cpu", "receipts"), "run it")
