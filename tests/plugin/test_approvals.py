"""A study that asks for approvals, from its keys to its end, as people type it."""

from pathlib import Path

import pytest

from gatepost.__main__ import main
from gatepost.dsse import load_key
from gatepost.ed25519 import key_text
from tests.approvals import NAMES, asks
from tests.archives import Project

from .conftest import Run, lines_with

ARCHIVE = "receipts/toy"


def typed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit status of a command, and everything that it printed."""
    status = main(arguments)
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_a_study_from_keys_to_the_end(project: Project, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    keys = {name: Path(name) for name in NAMES}
    for name in NAMES:
        status, printed = typed(capsys, "keygen", name)
        assert (status, printed) == (0, f"public key: {key_text(load_key(keys[name]).public)}\n")
    assert typed(capsys, "keygen", "alice") == (1, "gatepost: alice: exists already; a key is never overwritten\n")
    archive = project.freeze(edit=asks(keys))
    live = ("-m", "cpu", str(archive.root), "--gatepost-live")

    run(*live).assert_outcomes(passed=3)
    refused = run(*live)
    refused.assert_outcomes(passed=4, failed=1)
    assert lines_with(refused, "nothing starts: waits for 2 of 2 approvals of step selection; a reviewer gives one: ")
    capsys.readouterr()

    give = ("approve", ARCHIVE, "--step", "selection", "--key")
    assert typed(capsys, *give, "author")[0] == 1
    status, printed = typed(capsys, *give, "alice", "--statement", "read the protocol")
    assert (status, printed.splitlines()[0]) == (0, "approved: selection by alice")
    assert "waits for 1 of 2 approvals of step selection" in printed
    assert typed(capsys, *give, "alice")[0] == 1
    status, printed = typed(capsys, *give, "bob")
    assert status == 0
    assert f"run it: pytest -m cpu {ARCHIVE} --gatepost-live" in printed

    status, printed = typed(capsys, "verify", ARCHIVE)
    lines = [line.strip() for line in printed.splitlines()]
    assert status == 0
    assert "selection: 2 of 2 approvals" in lines
    assert "confirmation@32: 0 of 1 approvals" in lines
    assert [line.split()[1] for line in lines if "ed25519:" in line] == ["alice", "bob"]
    assert [line.rpartition(": ")[2] for line in lines if "ed25519:" in line] == ["read the protocol", "GO"]

    run(*live).assert_outcomes(passed=5)
    run(*live).assert_outcomes(passed=14, failed=1)
    capsys.readouterr()
    assert typed(capsys, "approve", ARCHIVE, "--step", "confirmation@32", "--key", "bob")[0] == 0
    ended = run(*live)
    ended.assert_outcomes(passed=15)
    assert lines_with(ended, "decision: REPLICATED selected=32")
    replayed = run("-m", "cpu", ARCHIVE, "-v")
    replayed.assert_outcomes(passed=17)
    assert [
        len(lines_with(replayed, f"::{name} PASSED"))
        for name in ("selection::approval[8]", "confirmation@32::approval[32]")
    ] == [1, 1]
    capsys.readouterr()
    status, printed = typed(capsys, "status", ARCHIVE, "--log")
    assert [line.split()[2:4] for line in printed.splitlines() if "  approved " in line] == [
        ["selection", "alice"], ["selection", "bob"], ["confirmation@32", "bob"],
    ]  # fmt: skip


def test_no_engine_starts_for_a_preflight_either(project: Project, run: Run) -> None:
    archive = project.freeze(edit=asks({name: make(name) for name in NAMES}))
    run("-m", "cpu", str(archive.root), "--gatepost-live").assert_outcomes(passed=3)
    refused = run("-m", "cpu", str(archive.root), "--gatepost-preflight")
    refused.assert_outcomes(passed=4, failed=1)
    assert lines_with(refused, "nothing starts: waits for 2 of 2 approvals of step selection")
    assert [event.event for event in archive.journal.read()] == ["frozen", "started", "finished"]


def make(name: str) -> Path:
    assert main(["keygen", name]) == 0
    return Path(name)


def test_an_archive_that_asks_nobody_says_so(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.freeze()
    status, printed = typed(capsys, "verify", ARCHIVE)
    assert (status, printed.splitlines()[1]) == (0, "  asks for no approvals")
