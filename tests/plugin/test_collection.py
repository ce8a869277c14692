"""What is an archive to pytest, and what is none of its business."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run


def test_a_protocol_of_something_else_is_left_alone(pytester: pytest.Pytester, run: Run) -> None:
    (pytester.path / "protocol.json").write_text("not ours")
    (pytester.path / "log").mkdir()
    pytester.makepyfile("def test_own(): pass")
    run().assert_outcomes(passed=1)


def test_no_code_in_an_archive_is_run(project: Project, run: Run) -> None:
    """The archive of somebody else is data."""
    archive = project.freeze()
    for name in ("conftest.py", "test_evil.py", "bound/conftest.py", "bound/test_evil.py"):
        (archive.root / name).write_text("raise SystemExit('this ran')")
    result = run("receipts")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*conftest.py: is not part of an archive"])
    result.stdout.no_fnmatch_line("*this ran*")


def test_archives_and_tests_side_by_side(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.freeze()
    pytester.makepyfile("def test_own(): pass")
    run().assert_outcomes(passed=3)
