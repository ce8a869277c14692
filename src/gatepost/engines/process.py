"""A child process that talks in lines, with a deadline on every wait. Knows nothing of engines.

The child leads its own process group, so that ending it also ends what it started. Its stderr goes to a file: a pipe
that nobody drains would stop the child once it is full.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO, TypeVar

T = TypeVar("T")

TICK_SECONDS = 0.25
"""How often a wait looks whether the child is still there: its own children may hold the pipe open after its death."""

REAP_SECONDS = 30.0
"""How long a killed child may stay in the kernel, with a device that does not answer, before it is left there."""

LOG_TAIL_BYTES = 4096
LOG_TAIL_LINES = 12


class ChildProcess:
    """One Python child. It may be started in any thread, and outlives it.

    Attributes:
        pid: of the child, and of the process group that it leads.
        end: kills the group, reaps the child and closes the pipes. Calling it again does nothing; it also runs
            when this object is collected and when the interpreter exits.
    """

    def __init__(self, module: str, *, log_path: Path | None = None) -> None:
        """Start ``python -m module``. Its stderr goes to a new file at ``log_path``, or to one without a name."""
        log: BinaryIO = log_path.open("x+b") if log_path else tempfile.TemporaryFile()  # noqa: SIM115
        ended = threading.Event()

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": _search_path()},
                start_new_session=True,
            )

        try:
            self._process = _in_a_thread_that_lasts(start, until=ended)
        except BaseException:
            ended.set()
            log.close()
            raise
        self.end = weakref.finalize(self, _end, self._process, log, ended)
        self.pid = self._process.pid
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._input, False)
        self._log = log
        self._unread = bytearray()

    def write(self, data: bytes, *, deadline: float) -> None:
        """Write all of ``data``. Raises ``TimeoutError`` at the deadline, ``BrokenPipeError`` if nobody reads."""
        rest = memoryview(data)
        while rest:
            if not _ready(self._input, selectors.EVENT_WRITE, deadline - time.monotonic()):
                raise TimeoutError
            with contextlib.suppress(BlockingIOError):
                rest = rest[os.write(self._input, rest) :]

    def read_line(self, *, deadline: float, max_bytes: int) -> bytes:
        """The next line, newline included; one longer than ``max_bytes`` may come back before its end was seen.

        Raises:
            TimeoutError: no whole line came until the deadline, which is in seconds of the monotonic clock.
            EOFError: the child is gone or closed its pipe; its argument is the unfinished line.
        """
        searched = 0
        while (newline := self._unread.find(b"\n", searched)) < 0 and len(self._unread) <= max_bytes:
            searched = len(self._unread)
            data = self._read_some(deadline)
            if not data:
                raise EOFError(bytes(self._unread))
            self._unread += data
        length = newline + 1 if newline >= 0 else len(self._unread)
        line = bytes(self._unread[:length])
        del self._unread[:length]
        return line

    def wait(self, seconds: float) -> int | None:
        """Exit code, negative for a signal; ``None`` if the child is still there after so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def log_tail(self) -> str:
        """The last lines that the child wrote to stderr."""
        descriptor = self._log.fileno()
        start = max(0, os.fstat(descriptor).st_size - LOG_TAIL_BYTES)
        tail = os.pread(descriptor, LOG_TAIL_BYTES, start).decode(errors="replace")
        return "\n".join(tail.splitlines()[-LOG_TAIL_LINES:])

    def _read_some(self, deadline: float) -> bytes:
        """What the pipe holds now or next; empty at its end."""
        while True:
            left = deadline - time.monotonic()
            if _ready(self._output, selectors.EVENT_READ, min(left, TICK_SECONDS)):
                return os.read(self._output, 1 << 16)
            # Only a silent child is asked for: an interrupt inside ``poll`` would leave its lock held for good.
            if self._process.poll() is not None and not _ready(self._output, selectors.EVENT_READ, 0):
                return b""  # it is dead, and somebody else holds its pipe open
            if left <= 0:
                raise TimeoutError


def _in_a_thread_that_lasts(start: Callable[[], T], *, until: threading.Event) -> T:
    """What ``start`` gives, called in a thread of its own that lives until the event.

    Linux ends a child with the *thread* that started it (see ``serve.end_with_parent``); the caller's may be one of a
    pool, and end before the child has done its work.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(start())
        except BaseException as error:
            result.set_exception(error)
        else:
            until.wait()

    threading.Thread(target=run, name="parent of an engine", daemon=True).start()
    return result.result()


def exit_in_words(code: int | None) -> str:
    """``exited with code 3``, ``was killed by SIGSEGV``."""
    if code is None:
        return "closed its pipe without exiting"
    if code >= 0:
        return f"exited with code {code}"
    if -code == signal.SIGKILL:
        return "was killed by SIGKILL, as the kernel does when memory runs out"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _search_path() -> str:
    """The parent's own search path: with ``-P``, the child imports what its parent would, and nothing else."""
    return os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)


def _ready(descriptor: int, event: int, seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, event)
        return bool(selector.select(max(0.0, seconds)))


def _end(process: subprocess.Popen[bytes], log: BinaryIO, ended: threading.Event) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the whole group is gone already
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(REAP_SECONDS)
    ended.set()
    for stream in (process.stdin, process.stdout, log):
        if stream is not None:
            stream.close()
