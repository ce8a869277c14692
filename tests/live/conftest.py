"""Runs on an accelerator, each as its user would start it: `make test-gpu`, or `pytest -m gpu tests/live`.

Archives go into a temporary folder, or into the one that ``GATEPOST_RUNS`` names, to be kept.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost.archive import Archive

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where archives are frozen into."""
    named = os.environ.get("GATEPOST_RUNS")
    return Path(named).resolve() if named else tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def freeze(runs: Path) -> Callable[[str], Archive]:
    """Freezes a draft of ``studies/``."""

    def freeze_draft(draft: str) -> Archive:
        runs.mkdir(parents=True, exist_ok=True)
        done = _python("gatepost", "freeze", str(ROOT / "studies" / draft), "--into", str(runs))
        assert done.returncode == 0
        return Archive(Path(done.stdout.splitlines()[0].removeprefix("frozen: ")))

    return freeze_draft


@pytest.fixture(scope="session")
def run() -> Run:
    """``pytest`` over an archive, in a process of its own: one invocation, one engine, one step."""

    def run_archive(archive: Archive, *options: str) -> "subprocess.CompletedProcess[str]":
        return _python("pytest", "-q", "-W", "default", str(archive.root), *options)

    return run_archive


@pytest.fixture(scope="session")
def climb(run: Run) -> Callable[[Archive], str]:
    """Runs an archive to its end, the steps that need no accelerator too; returns its table, replayed."""

    def until_terminal(archive: Archive) -> str:
        while _python("gatepost", "status", str(archive.root), "--done").returncode != 0:
            assert run(archive, "--gatepost-live").returncode == 0
        replayed = _python("gatepost", "replay", str(archive.root))
        assert replayed.returncode == 0
        return replayed.stdout

    return until_terminal


def _python(module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True)
    print(done.stdout[-6000:], done.stderr[-6000:], sep="\n")  # pytest shows it of a test that fails
    return done
