"""Run gatepost's writing commands with one of their write-side system calls spoilt: killed, failed or cut short."""

import enum
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.archives import Project

SOURCE = Path(__file__).with_name("write_side.c")
ROOT = Path(__file__).resolve().parents[2]
EVERY = os.environ.get("GATEPOST_FAULTS") == "all"
"""Whether every point is tried, which takes minutes; else points spread over all of them."""


class Kind(enum.IntEnum):
    """How a call goes wrong, by the numbers of ``write_side.c``."""

    NONE = 0
    KILL = 1
    FAIL = 2
    SHORT_WRITE = 3
    FULL_WRITE = 4
    TORN_WRITE = 5


class Fault(NamedTuple):
    """One way for a call to go wrong; ``forever`` has every later call fail too."""

    kind: Kind
    error: int = 0
    forever: bool = False


FAULTS = {
    "SIGKILL before the call": Fault(Kind.KILL),
    "SIGKILL half way through a write": Fault(Kind.TORN_WRITE),
    "EIO once": Fault(Kind.FAIL, errno.EIO),
    "EIO from then on": Fault(Kind.FAIL, errno.EIO, forever=True),
    "ENOSPC once": Fault(Kind.FAIL, errno.ENOSPC),
    "ENOSPC from then on": Fault(Kind.FAIL, errno.ENOSPC, forever=True),
    "short write, then all well": Fault(Kind.SHORT_WRITE),
    "short write, then a full disk": Fault(Kind.FULL_WRITE, errno.ENOSPC),
}


class Ended(NamedTuple):
    """How a run ended: its exit status, negative for a signal; what it printed; numbered calls, 0 if it was killed."""

    status: int
    said: str
    calls: int

    @property
    def killed(self) -> bool:
        return self.status == -9


class Runner(NamedTuple):
    """The process of ``operations.py``, and a folder for what runs print."""

    process: "subprocess.Popen[str]"
    folder: Path

    def __call__(
        self,
        operation: str,
        *arguments: object,
        under: Path,
        at: int = 0,
        fault: Fault = Fault(Kind.NONE),  # noqa: B008 - immutable
        log: Path | None = None,
    ) -> Ended:
        """Run an operation with the call of number ``at`` under a folder spoilt.

        Args:
            log: gets every call that changed something, with its bytes.

        Raises ``AssertionError`` for an end that is no refusal: a bug, or a hang.
        """
        said = self.folder / "said"
        order = {
            "operation": operation, "arguments": [str(argument) for argument in arguments],
            "under": str(under.resolve()), "at": at, "kind": int(fault.kind), "error": fault.error,
            "forever": int(fault.forever), "log": str(log or ""), "said": str(said),
        }  # fmt: skip
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        text, _, calls = said.read_text().rpartition("\ncalls ")
        assert status in (0, 1, -9), f"call {at}, {fault}: ended with {status}: {text}"
        return Ended(status, text, 0 if status == -9 else int(calls))


@contextmanager
def runner(folder: Path, project: Project, archive: Path) -> Iterator[Runner]:
    """Compile the shim and start the process that runs under it; skips where there is no C compiler.

    Args:
        archive: of the project, frozen; what is run is a copy.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("faults of system calls need Linux and a C compiler")
    shim = folder / "write_side.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(shim), str(SOURCE)], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONDONTWRITEBYTECODE": "1"}
    warm = shutil.copytree(archive, folder / "warm" / archive.name)
    command = [sys.executable, "-m", "tests.faults.operations", str(project.root), str(warm)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        yield Runner(process, folder)


def points(calls: int, short: int) -> Sequence[int]:
    """Numbers of the calls to spoil: each of them, or so many spread over all."""
    step = 1 if EVERY else max(1, calls // short)
    return range(1, calls + 1, step)
