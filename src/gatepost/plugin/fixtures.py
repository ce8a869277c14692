"""Fixtures for a project's own tests of an archive and of an engine.

A test of what was selected is five lines, with ``gatepost_archive = "receipts/my-study"`` in the ini file::

    import pytest

    @pytest.mark.cpu
    def test_selected(receipt):
        assert receipt("selection").decision.rung == "96"
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gatepost.errors import GatepostError
from gatepost.plugin.live import in_worker, live_requested
from gatepost.plugin.options import workspace

if TYPE_CHECKING:
    from gatepost.archive import Archive
    from gatepost.engine import Engine
    from gatepost.ladder import Decision, Judgement, Step
    from gatepost.protocol import Protocol
    from gatepost.verdict import Outcome, Verdict


@dataclass(frozen=True)
class Receipt:
    """What is on record of one finished step.

    Attributes:
        origin: ``live``, or where the evidence was imported from.
        judgements: one per cap at which the step was judged.
        decision: where the ladder stood once this step was finished.
    """

    step: Step
    origin: str
    judgements: tuple[Judgement, ...]
    decision: Decision

    @property
    def outcome(self) -> Outcome:
        """What the ladder made of the step: of several caps, the first that was not rejected decides."""
        kept = (judgement for judgement in self.judgements if judgement.outcome != "fail" or judgement.sound == "fail")
        return next(kept, self.judgements[-1]).outcome

    def verdict(self, gate: str, rung: str | None = None) -> Verdict:
        """The verdict of a gate, at a cap if the step was judged at several."""
        for judgement in self.judgements:
            if rung in (None, judgement.rung):
                for verdict in judgement.verdicts:
                    if verdict.gate == gate:
                        return verdict
        raise GatepostError(f"{self.step}: no verdict of gate {gate}" + (f" at {rung}" if rung else ""))


@pytest.fixture(scope="session")
def archive(request: pytest.FixtureRequest) -> Archive:
    """The archive of ``--gatepost-archive``, or of ``gatepost_archive`` in the ini file, its integrity verified.

    A test that is about another one names it::

        @pytest.mark.parametrize("archive", ["receipts/another-study"], indirect=True)
    """
    from gatepost import integrity
    from gatepost.archive import Archive

    with _message_alone():
        opened = Archive(_archive_folder(request), evidence=workspace(request.config).evidence)
        integrity.verify(opened)
    return opened


@pytest.fixture(scope="session")
def protocol(archive: Archive) -> Protocol:
    """The frozen protocol of ``archive``."""
    return archive.protocol


@pytest.fixture(scope="session")
def receipt(archive: Archive) -> Callable[[str], Receipt]:
    """Looks up a finished step of ``archive`` by its name, or by its stage where only one step of it is finished."""
    from gatepost.ladder import Judgement, audit

    def look_up(name: str) -> Receipt:
        finished = archive.finished_steps()
        named = [step for step in finished if name in (str(step), step.stage)]
        if len(named) != 1:
            known = ", ".join(map(str, finished)) or "none"
            raise GatepostError(f"{archive.root}: {len(named)} receipts are named {name!r}, on record: {known}")
        (step,) = named
        document = archive.receipt(step)
        judgements = archive.judgements()
        until = {earlier: judgements[earlier] for earlier in finished[: finished.index(step) + 1]}
        own = tuple(map(Judgement.from_json, document["judgements"]))
        return Receipt(step, document["origin"], own, audit(archive.protocol, until))

    return look_up


@pytest.fixture(scope="session")
def engine_session(request: pytest.FixtureRequest, archive: Archive) -> Iterator[Engine]:
    """The engine of ``archive``, running in a process of its own; only in a live run.

    One engine per cap, the largest unless a test names another::

        @pytest.mark.parametrize("engine_session", ["96"], indirect=True)
    """
    _require_live(request.config)
    from gatepost.probe import engine_spec
    from gatepost.studyfiles import load_domain

    available, protocol = workspace(request.config), archive.protocol
    name: str = getattr(request, "param", protocol.rungs[-1].name)
    with _message_alone():
        domain = load_domain(protocol.study, protocol.domain_version, available.studies, where=protocol.id)
        engine = available.open_engine(engine_spec(archive, protocol.rung(name), domain.ANSWER_TEXTS))
    with contextlib.closing(engine):
        yield engine


@pytest.fixture
def probe(request: pytest.FixtureRequest, archive: Archive) -> Callable[[], Decision]:
    """Runs the open step of ``archive`` and returns where that leads; only in a live run, and once."""
    _require_live(request.config)
    from gatepost.plugin.archives import run_step

    return lambda: run_step(request.config, archive)


def _archive_folder(request: pytest.FixtureRequest) -> Path:
    config = request.config
    named = getattr(request, "param", None)
    if named is None and (option := config.getoption("gatepost_archive")):
        return config.invocation_params.dir / str(option)
    folder = named or config.getini("gatepost_archive")
    if not folder:
        raise GatepostError("no archive for the fixtures: set gatepost_archive in the ini file, or --gatepost-archive")
    return config.rootpath / str(folder)


def _require_live(config: pytest.Config) -> None:
    if in_worker(config):
        pytest.fail("an engine runs in one process: leave out -n", pytrace=False)
    if not live_requested(config):
        pytest.skip("starts an engine: run with --gatepost-live or -m gpu")


@contextlib.contextmanager
def _message_alone() -> Iterator[None]:
    """Fail with the message of what is meant for users; a traceback is a bug."""
    try:
        yield
        return
    except GatepostError as error:
        message = str(error)
    pytest.fail(message, pytrace=False)  # out here, so that pytest has no chain of errors to show
