"""``--gatepost-studies``: where task domains of one's own are."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run, lines_with


def test_task_domains_have_to_be_found(project: Project, run: Run) -> None:
    project.run(project.freeze())
    (project.root / "studies").rename(project.root / "mine")
    result = run("receipts")
    result.assert_outcomes(passed=1, failed=12)
    assert lines_with(result, "study 'toy' has no domain.py")
    run("receipts", "--gatepost-studies", "mine").assert_outcomes(passed=13)


def test_a_folder_that_is_not_there_is_refused(project: Project, run: Run) -> None:
    result = run("receipts", "--gatepost-studies", "nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "--gatepost-studies")
