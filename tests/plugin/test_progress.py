"""The progress of a live step: one line on a terminal, a few lines elsewhere."""

from types import SimpleNamespace

import pytest

from gatepost.plugin.terminal import ProgressLine
from tests.archives import Project
from tests.plugin.conftest import Run, lines_with
from tests.plugin.test_live import open_at_selection


class Reporter:
    """Keeps what it is told to write."""

    def __init__(self, *, isatty: bool) -> None:
        self.isatty, self.written = isatty, ""

    def rewrite(self, line: str, *, erase: bool) -> None:
        self.written += f"\r{line}"

    def write_line(self, line: str) -> None:
        self.written += f"{line}\n"

    def line(self, line: str) -> None:
        self.written += f"{line}\n"

    def ensure_newline(self) -> None:
        self.written += "\n"


def progress_of(reporter: Reporter | None) -> None:
    """Count to 200 samples in a run that reports there."""
    plugins = {"terminalreporter": reporter}
    config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=plugins.get), get_verbosity=lambda: 0)
    with ProgressLine(config, "toy") as progress:
        for completed in range(201):
            progress(completed, 200, 5 * completed)


def test_a_terminal_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatepost.plugin.terminal.REWRITE_SECONDS", 0)
    reporter = Reporter(isatty=True)
    progress_of(reporter)
    assert reporter.written.startswith("\n\rtoy: 0/200 samples, 0 tokens\rtoy: 1/200 samples, 5 tokens\r")
    assert reporter.written.endswith("\rtoy: 200/200 samples, 1000 tokens\n")
    assert reporter.written.count("\n") == 2


def test_a_terminal_is_not_rewritten_for_every_token() -> None:
    reporter = Reporter(isatty=True)
    progress_of(reporter)
    assert reporter.written.count("\r") < 10


def test_a_file_has_a_line_for_every_tenth() -> None:
    reporter = Reporter(isatty=False)
    progress_of(reporter)
    assert len(reporter.written.splitlines()) == 10
    assert reporter.written.endswith("toy: 200/200 samples, 1000 tokens\n")


def test_no_terminal_reporter() -> None:
    progress_of(None)


def test_progress_is_shown_although_output_is_captured(project: Project, run: Run) -> None:
    open_at_selection(project)
    result = run("receipts", "--gatepost-live")
    assert 1 < len(lines_with(result, "/12 samples, ")) <= 10
    result.stdout.fnmatch_lines(["toy: 12/12 samples, * tokens"])


def test_quiet_has_no_progress(project: Project, run: Run) -> None:
    open_at_selection(project)
    assert not lines_with(run("receipts", "--gatepost-live", "-q"), " samples, ")
