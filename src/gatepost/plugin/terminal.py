"""What a run prints beside pytest's own lines: the progress of a live step, and one summary per archive."""

from __future__ import annotations

import contextlib
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict

import pytest

if TYPE_CHECKING:
    from _pytest.capture import CaptureManager
    from _pytest.terminal import TerminalReporter

PROPERTY = "gatepost"
"""Name of the report property that carries an ``ArchiveSummary``."""

REWRITE_SECONDS = 0.2


class ArchiveSummary(TypedDict):
    """What is shown of one archive. Plain data: a worker of pytest-xdist sends it, the controller prints it.

    Attributes:
        protocol: id of the protocol.
        decision: one line.
        text: the table, and all else.
        unjudged: what the decision rests on and was not judged again, since its evidence lies elsewhere.
    """

    protocol: str
    decision: str
    text: str
    unjudged: list[str]


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print what the archives say: the tables, with ``-q`` only the decisions, with ``-qq`` nothing."""
    summaries: dict[str, ArchiveSummary] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            # The live item of an archive comes after its ladder item, and what it says is newer.
            summaries |= {report.nodeid.partition("::")[0]: value for value in _summaries(report)}
    if not summaries or config.get_verbosity() < -1 or config.getoption("no_summary"):
        return
    terminalreporter.section("gatepost")
    for summary in summaries.values():
        short = f"{summary['protocol']}: {summary['decision']}"
        terminalreporter.line(short if config.get_verbosity() < 0 else summary["text"])


def _summaries(report: object) -> list[ArchiveSummary]:
    if not isinstance(report, pytest.TestReport) or report.when != "call":
        return []
    return [value for name, value in report.user_properties if name == PROPERTY]  # type: ignore[misc]


class ProgressLine:
    """How far a live step is: one line that is rewritten on a terminal, else a line for every tenth of the samples.

    A context manager around the step, since a rewritten line has to be ended.
    """

    def __init__(self, config: pytest.Config, name: str) -> None:
        manager = config.pluginmanager
        self._reporter: TerminalReporter | None = manager.get_plugin("terminalreporter")
        self._capture: CaptureManager | None = manager.get_plugin("capturemanager")
        self._name, self._quiet = name, config.get_verbosity() < 0
        self._written_at, self._tenth = 0.0, 0

    def __call__(self, completed: int, registered: int, tokens: int) -> None:
        """Show the counts: samples completed, samples registered, tokens sampled."""
        if self._reporter is None:
            return
        line = f"{self._name}: {completed}/{registered} samples, {tokens} tokens"
        if self._reporter.isatty:
            now = time.monotonic()
            if completed == registered or now - self._written_at >= REWRITE_SECONDS:
                self._written_at = now
                with self._uncaptured():
                    self._reporter.rewrite(line, erase=True)
        elif (tenth := 10 * completed // registered) > self._tenth:
            self._tenth = tenth
            if not self._quiet:
                with self._uncaptured():
                    self._reporter.write_line(line)

    def __enter__(self) -> Self:
        if self._reporter is not None and self._reporter.isatty:
            with self._uncaptured():
                self._reporter.ensure_newline()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._reporter is not None and self._written_at:
            with self._uncaptured():
                self._reporter.line("")

    def _uncaptured(self) -> contextlib.AbstractContextManager[None]:
        """Let the reporter write while the output of the running item is captured."""
        return contextlib.nullcontext() if self._capture is None else self._capture.global_and_fixture_disabled()
