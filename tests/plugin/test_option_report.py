"""``--gatepost-report``: a page beside the run, of what is on record after it."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run, lines_with

pytest.importorskip("matplotlib", reason="needs the extra report: matplotlib")


def test_a_replay_writes_the_page_of_its_archive(project: Project, run: Run) -> None:
    archive = project.freeze()
    project.run(archive)
    result = run("-m", "cpu", "receipts", "--gatepost-report", "page.html")
    assert result.ret == 0
    assert lines_with(result, "gatepost report:")
    text = (project.root / "page.html").read_text()
    assert "REPLICATED" in text
    assert "Which cap is enough?" in text


def test_a_live_step_is_in_the_page(project: Project, run: Run) -> None:
    project.freeze()
    assert run("-m", "cpu", "receipts", "--gatepost-live", "--gatepost-report", "page.html").ret == 0
    assert "selection is the one open step" in (project.root / "page.html").read_text()


def test_several_archives_give_an_index(project: Project, run: Run) -> None:
    for name in ("one", "two"):
        project.run(project.freeze(name))
    assert run("-m", "cpu", "receipts", "--gatepost-report", "page.html").ret == 0
    assert "2 archives, 6 receipts" in (project.root / "page.html").read_text()


def test_without_the_option_nothing_is_written(project: Project, run: Run) -> None:
    project.run(project.freeze())
    before = sorted(project.root.glob("*"))
    assert run("-m", "cpu", "receipts").ret == 0
    assert sorted(project.root.glob("*.html")) == []
    assert set(before) <= set(project.root.glob("*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gatepost-report", "missing/page.html"], "missing is not a folder"),
        (["--gatepost-report", "page.html", "-n", "2"], "no -n"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(
    project: Project, run: Run, arguments: list[str], said: str
) -> None:
    project.run(project.freeze())
    result = run("-m", "cpu", "receipts", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, said)


def test_a_page_that_cannot_be_written_fails_the_run(project: Project, run: Run) -> None:
    archive = project.freeze()
    project.run(archive)
    result = run("-m", "cpu", "receipts", "--gatepost-report", str(archive.root / "page.html"))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lines_with(result, "not written")
    assert not (archive.root / "page.html").exists()
    result = run("-m", "cpu", "gates", "--gatepost-report", "page.html")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lines_with(result, "no archive was collected")
