"""``--gatepost-report``: after the run, the page of the archive that was collected, or an index of several."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gatepost.errors import GatepostError
from gatepost.plugin.options import workspace

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse what would only show after the run, which may have taken hours. Raises ``pytest.UsageError``."""
    config = session.config
    option: str | None = config.getoption("gatepost_report")
    if option is None:
        return
    if config.getoption("dist", "no") != "no":
        raise pytest.UsageError("--gatepost-report: the page is written by the process that replays: no -n")
    if find_spec("matplotlib") is None:
        raise pytest.UsageError("--gatepost-report: needs matplotlib: pip install 'gatepost[report]'")
    if not _path(config, option).parent.is_dir():
        raise pytest.UsageError(f"--gatepost-report: {_path(config, option).parent} is not a folder")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page from the archives as they are now, a step that has just run included."""
    option: str | None = session.config.getoption("gatepost_report")
    if option is None or session.config.getoption("collectonly"):
        return
    try:
        line = _write(session.config, _path(session.config, option))
    except (GatepostError, OSError) as error:
        line = f"not written: {error}"
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    reporter: TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.line("")
        reporter.write_line(f"gatepost report: {line}")


def _write(config: pytest.Config, out: Path) -> str:
    from gatepost.html_report.command import write_index, write_page

    found = workspace(config)
    roots = sorted(found.archives)
    if not roots:
        raise GatepostError("no archive was collected")
    if len(roots) > 1:
        return write_index(roots, out)[1]
    return write_page(roots[0], out, gates=found.gates, studies=found.studies, evidence=found.evidence)[1]


def _path(config: pytest.Config, option: str) -> Path:
    return config.invocation_params.dir / option
