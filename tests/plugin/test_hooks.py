"""The hooks, as their docstrings show them."""

import pytest

from gatepost import engines
from tests.archives import Project
from tests.plugin.conftest import Run
from tests.plugin.test_live import open_at_selection


def test_engines(project: Project, run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_TARGETS", dict(engines._TARGETS))
    pytester.makeconftest(
        """
        def pytest_gatepost_engines(register):
            register("echo", "gatepost.engines.scripted:ScriptedEngine")
        """
    )
    archive = open_at_selection(project, kind="echo")
    assert run("receipts", "--gatepost-live").ret == pytest.ExitCode.OK
    assert len(archive.finished_steps()) == 2


def test_gate_paths(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.run(project.freeze())
    (project.root / "gates").rename(project.root / "mine")
    pytester.makeconftest(
        """
        def pytest_gatepost_gate_paths(config):
            return [config.rootpath / "mine"]
        """
    )
    run("receipts").assert_outcomes(passed=13)


def test_receipt_written(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        from pathlib import Path

        def pytest_gatepost_receipt_written(archive, step, decision):
            assert archive.receipt(step)
            Path("written").write_text(f"{archive.protocol.id}: {step} is done, {decision}")
        """
    )
    project.freeze()
    run("receipts", "--gatepost-live")
    assert (pytester.path / "written").read_text() == "toy: design is done, open: selection"
