"""``--gatepost-root``: a catalog root that was noted elsewhere shows what nothing in the archive can."""

import shutil

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run, lines_with


def test_the_root_on_record_is_green(project: Project, run: Run) -> None:
    archive = project.freeze()
    project.run(archive)
    root = archive.catalog()["root"]
    for spelling in (root, root.removeprefix("sha256:")):
        run("receipts", "--gatepost-root", spelling).assert_outcomes(passed=13)


def test_a_rollback_shows(project: Project, run: Run) -> None:
    archive = project.freeze()
    project.step(archive)
    shutil.copytree(archive.root, project.root / "earlier")
    project.run(archive)
    root = archive.catalog()["root"]
    run("earlier").assert_outcomes(passed=4)
    result = run("earlier", "--gatepost-root", root)
    result.assert_outcomes(failed=4)
    assert lines_with(result, "the archive was rolled back to before that root, or rewritten since")


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_it_is_the_root_of_one_archive(project: Project, run: Run, workers: list[str]) -> None:
    project.freeze("one")
    project.freeze("two")
    result = run("receipts", "--gatepost-root", "0" * 64, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "--gatepost-root is the root of exactly one archive, selected: ")
    assert lines_with(result, "one/protocol.json")
    assert lines_with(result, "two/protocol.json")


def test_it_is_never_ignored(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_own(): pass")
    result = run("--gatepost-root", "0" * 64)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "selected: none")
