"""``--gatepost-gates``: where gates of one's own are."""

import pytest

from gatepost.archive import Archive
from tests.archives import Project
from tests.plugin.conftest import Run, lines_with


@pytest.fixture
def archive(project: Project) -> Archive:
    """An archive whose gates are not where they are looked up by default."""
    archive = project.freeze()
    project.run(archive)
    (project.root / "gates").rename(project.root / "mine")
    return archive


@pytest.mark.usefixtures("archive")
def test_gates_have_to_be_found(run: Run) -> None:
    result = run("receipts")
    result.assert_outcomes(passed=1, failed=12)
    assert lines_with(result, "gate toy_closes version 1 is not installed; found no gate of that name")


@pytest.mark.usefixtures("archive")
def test_a_folder_can_be_named(run: Run) -> None:
    run("receipts", "--gatepost-gates", "mine").assert_outcomes(passed=13)


@pytest.mark.usefixtures("archive")
def test_several_folders_can_be_named(project: Project, run: Run) -> None:
    (project.root / "others").mkdir()
    run("receipts", "--gatepost-gates", "others", "--gatepost-gates", "mine").assert_outcomes(passed=13)


@pytest.mark.usefixtures("archive")
def test_a_folder_that_is_not_there_is_refused(run: Run) -> None:
    result = run("receipts", "--gatepost-gates", "nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "nowhere is not a folder")


@pytest.mark.usefixtures("archive")
def test_two_gates_of_one_name_are_refused_unless_one_is_a_copy(project: Project, run: Run) -> None:
    (project.root / "others").mkdir()
    copy = project.root / "others" / "toy.py"
    copy.write_text((project.root / "mine" / "toy.py").read_text())
    run("receipts", "--gatepost-gates", "others", "--gatepost-gates", "mine").assert_outcomes(passed=13)
    copy.write_text(copy.read_text() + "# changed\n")
    result = run("receipts", "--gatepost-gates", "others", "--gatepost-gates", "mine")
    result.assert_outcomes(passed=1, failed=12)
    assert lines_with(result, f"is defined in {copy} already, and the files differ; change {project.root}/mine/toy.py")
