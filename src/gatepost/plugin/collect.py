"""Archives as pytest collects them: one item per question about the record.

    receipts/my-study/protocol.json::integrity                     is every byte accounted for?
    receipts/my-study/protocol.json::selection::evidence           is the evidence what the receipt bound?
    receipts/my-study/protocol.json::selection::closes[96]         does the gate still say what the receipt says?
    receipts/my-study/protocol.json::preflight[0002-selection]     the same, of an attempt that did not finish
    receipts/my-study/protocol.json::ladder                        do the verdicts lead to the decision on record?
    receipts/my-study/protocol.json::live[confirmation@96]         run the open step; only in a live run

All but the last pass or fail on whether the record is faithful, never on whether the experiment passed. One whose
evidence lies elsewhere fails too, or is reported as inconclusive where ``--gatepost-absent=report`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gatepost.errors import ElsewhereError, GatepostError
from gatepost.folders import is_archive
from gatepost.plugin.live import LIVE, live_requested
from gatepost.plugin.options import workspace
from gatepost.plugin.terminal import PROPERTY, ArchiveSummary

if TYPE_CHECKING:
    from gatepost.ladder import Step
    from gatepost.plugin.archives import ArchiveReplay

INCONCLUSIVE = "inconclusive"

Question = Callable[[], ArchiveSummary | None]
"""Raises ``GatepostError`` if the answer is no; may return what is to be shown of the archive."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect an archive as a whole."""
    return ArchiveFolder.from_parent(parent, path=path) if is_archive(path) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect an archive that was named by its protocol."""
    if file_path.name == "protocol.json" and is_archive(file_path.parent):
        return ArchiveFile.from_parent(parent, path=file_path)
    return None


class ArchiveFolder(pytest.File):
    """An archive is data: pytest sees its protocol, and no ``conftest.py`` or test file that may lie in it.

    Not a ``pytest.Directory``, since pytest runs the ``conftest.py`` of each of those.
    """

    def collect(self) -> Iterator[pytest.Collector]:
        """The protocol stands for the archive."""
        yield ArchiveFile.from_parent(self, path=self.path / "protocol.json")


class ArchiveFile(pytest.File):
    """One archive, by its protocol."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Integrity first; then what was finished, what was not, and where it leads."""
        replay = self._replay()
        yield _item(self, "integrity", replay.check_integrity)
        try:
            steps, attempts = replay.archive.finished_steps(), replay.archive.attempt_folders()
        except GatepostError:
            return  # of the same that integrity fails of
        for step in steps:
            yield StepCollector.from_parent(self, name=str(step), step=step, replay=replay)
        for folder in attempts:
            if (folder / "preflight.json").is_file():
                yield _item(self, f"preflight[{folder.name}]", partial(replay.check_preflight, folder))
        yield _item(self, "ladder", replay.check_ladder)
        if live_requested(self.config):
            yield from self._live(replay)

    def _replay(self) -> ArchiveReplay:
        from gatepost.plugin.archives import ArchiveReplay

        root = self.path.parent
        available = workspace(self.config)
        return available.archives.setdefault(root, ArchiveReplay(root, available))

    def _live(self, replay: ArchiveReplay) -> Iterator[pytest.Item]:
        from gatepost.plugin.archives import run_step_and_sum_up

        try:
            decision = replay.standing
        except GatepostError:
            return  # of the same that integrity fails of
        if decision.terminal or decision.step is None:
            return
        run = partial(run_step_and_sum_up, self.config, replay.archive, decision.step)
        mark = "gpu" if replay.needs_accelerator(decision.step) else "cpu"
        item = _item(self, f"live[{decision.step}]", run, mark=mark)
        item.stash[LIVE] = True
        yield item


class StepCollector(pytest.Collector):
    """One finished step."""

    def __init__(self, *, step: Step, replay: ArchiveReplay, **node: Any) -> None:
        super().__init__(**node)
        self._step, self._replay = step, replay

    def collect(self) -> Iterator[pytest.Item]:
        """The evidence, then each verdict that the protocol registers."""
        yield _item(self, "evidence", partial(self._replay.check_evidence, self._step))
        for rung, gate in self._replay.verdicts(self._step):
            name = gate if rung is None else f"{gate}[{rung}]"
            yield _item(self, name, partial(self._replay.check_verdict, self._step, rung, gate))


class ArchiveItem(pytest.Item):
    """One question about an archive. Fails with the answer, one line per difference; a traceback is a bug."""

    def __init__(self, *, question: Question, **node: Any) -> None:
        super().__init__(**node)
        self._question = question

    def runtest(self) -> None:
        """Ask."""
        summary = self._question()
        if summary is not None:
            self.user_properties.append((PROPERTY, summary))
            if summary["unjudged"]:
                raise ElsewhereError(
                    "\n".join(["the decision rests on what is not judged here:", *summary["unjudged"]])
                )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message alone of what is meant for users; of a bug, the traceback from here on."""
        if isinstance(excinfo.value, GatepostError):
            return str(excinfo.value)
        excinfo.traceback = excinfo.traceback.cut(path=__file__)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where it is, and the headline of a failure."""
        return self.path, None, f"{self.path.parent.name}::{self.nodeid.partition('::')[2]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell an item apart whose evidence lies elsewhere, if the run is to report such instead of failing."""
    report = yield
    absent = call.excinfo is not None and isinstance(call.excinfo.value, ElsewhereError)
    if absent and isinstance(item, ArchiveItem) and item.config.getoption("gatepost_absent") == "report":
        report.outcome = INCONCLUSIVE  # type: ignore[assignment]
        item.user_properties.append((INCONCLUSIVE, str(report.longrepr)))  # a JUnit file has no such outcome
    return report


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """Count it under a name of its own: it did not pass, and nothing failed."""
    return (INCONCLUSIVE, "I", INCONCLUSIVE.upper()) if str(report.outcome) == INCONCLUSIVE else None


def _item(parent: pytest.Collector, name: str, question: Question, *, mark: str = "cpu") -> ArchiveItem:
    item = ArchiveItem.from_parent(parent, name=name, question=question)
    item.add_marker(mark)
    return item
