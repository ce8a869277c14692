"""The table of goals at the end of a run."""

import pytest

from bench.turns import TABLE, machine


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TABLE:
        terminalreporter.section("in turns, median of the rounds (lowest to highest)")
        terminalreporter.line(machine())
        terminalreporter.line("| work | baseline | at least | measured | baseline takes |")
        terminalreporter.line("|---|---|---|---|---|")
        for row in TABLE:
            terminalreporter.line(str(row))
