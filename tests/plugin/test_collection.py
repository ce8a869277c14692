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
    for name in ("test_evil.py", "bound/test_evil.py"):
        (archive.root / name).write_text("raise SystemExit('this ran')")
    result = run("receipts")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*test_evil.py: is not *"])
    result.stdout.no_fnmatch_line("*this ran*")


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("conftest.py", "receipts"),
        ("conftest.py", "receipts/test-toy"),
        ("conftest.py", "receipts/test-toy/protocol.json::integrity"),
        ("conftest.py", "receipts/test-toy/bound"),
        ("bound/conftest.py", "receipts/test-toy/bound/first.jsonl"),
        ("test_more/conftest.py", "receipts/test-toy"),
        ("pytest.ini", "receipts/test-toy"),
        ("pyproject.toml", "receipts/test-toy"),
    ],
)
def test_what_pytest_would_run_before_it_collects_is_refused(
    project: Project, pytester: pytest.Pytester, name: str, argument: str
) -> None:
    """pytest runs the conftest.py of what it is given, and of folders in there whose names start with test."""
    path = project.freeze("test-toy").root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("print('this ran')\n" if path.suffix == ".py" else "")
    result = pytester.runpytest_subprocess(argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *test-toy/{name}: is not part of an archive*"])
    result.stdout.no_fnmatch_line("*this ran*")


def test_archives_and_tests_side_by_side(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.freeze()
    pytester.makepyfile("def test_own(): pass")
    run().assert_outcomes(passed=3)


@pytest.mark.parametrize("options", [(), ("--lf",), ("--sw",), ("-o", "cache_dir=deep/cache")])
def test_nothing_is_written_into_an_archive(
    project: Project, pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory, options: tuple[str, ...]
) -> None:
    """An archive in a folder of its own is its own root directory, and pytest's cache would go there."""
    archive = project.freeze()
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "toy"
    archive.root.rename(elsewhere)
    for _ in range(2):
        result = pytester.runpytest_subprocess(
            str(elsewhere), f"--gatepost-studies={project.root / 'studies'}", *options
        )
        result.assert_outcomes(passed=2)
    assert sorted(path.name for path in elsewhere.iterdir()) == sorted(
        ["attempts", "bound", "catalog.json", "log", "protocol.json", "steps"]
    )


def test_a_cache_beside_archives_is_kept(project: Project, pytester: pytest.Pytester) -> None:
    project.freeze()
    pytester.runpytest_subprocess("receipts").assert_outcomes(passed=2)
    assert (pytester.path / ".pytest_cache").is_dir()
