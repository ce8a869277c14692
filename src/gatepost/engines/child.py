"""An engine in a child process, used like any other engine. The parent never imports what the engine needs.

Whatever goes wrong is one ``EngineError`` (or ``MissingExtraError``) and the end of the child: its random state and
device memory are unknown from then on, and a second try needs a new session anyway.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self, TypeVar

from gatepost.engine import Chunk, Completion, EngineFacts, EngineSpec, Prompt, Request
from gatepost.engines import resolve
from gatepost.engines.process import ChildProcess, exit_in_words
from gatepost.engines.wire import (
    MAX_LINE_BYTES,
    Answer,
    AskFacts,
    Close,
    Closed,
    Command,
    Facts,
    Failure,
    Generate,
    Generated,
    Prompts,
    Render,
    Start,
    decode_answer,
    encode,
)
from gatepost.errors import DataError, EngineError, MissingExtraError

A = TypeVar("A")

CLOSE_SECONDS = 10.0
"""How long an engine may take to release its device before it is killed."""

EXIT_SECONDS = 1.0
"""How long a child that closed its pipe may take to exit before it is killed."""

_FAILURES = {
    "crash": "crashed",
    "out_of_memory": "ran out of memory",
    "garbage": "spoke garbage",
    "timeout": "timed out",
}
"""In words, what a child can report of itself."""


class ChildSession:
    """A live engine in a child of its own, from construction to ``close``; a context manager.

    Follows ``gatepost.engine.Engine``: used from one thread at a time, whichever; the child outlives the thread that
    opened it. A generation that is not read to its end, for whatever reason, ends the child.
    """

    def __init__(self, spec: EngineSpec, *, log_path: Path | None = None) -> None:
        """Start the child and wait for the engine's facts.

        Args:
            spec: what is requested.
            log_path: a new file for the child's stderr; without it, only the tail is kept, for error messages.

        Raises:
            EngineError: unknown engine, refused spec, crash, hang, lack of memory or garbage; see its ``kind``.
            MissingExtraError: the engine needs a package that an extra of gatepost installs.
        """
        self.spec = spec
        self._target = resolve(spec.kind)
        self._doing: str | None = None
        self._child = ChildProcess("gatepost.engines.serve", log_path=log_path)
        start = Start(self._target.import_string, spec)
        self._facts = self._ask(start, Facts, "starting", timeout=spec.start_timeout_seconds).facts

    @property
    def pid(self) -> int:
        """Process id of the child, which is also the id of its process group."""
        return self._child.pid

    def facts(self) -> EngineFacts:
        """What the running engine resolved, counters included. After the end: what it said last."""
        if self._child.end.alive:
            self._facts = self._ask(AskFacts(), Facts, "reading its facts").facts
        return self._facts

    def render(self, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Prompt]:
        """Render chat messages (task id -> messages) with the model's own template."""
        return list(self._ask(Render(conversations), Prompts, "rendering prompts").prompts)

    def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
        """Sample every request, passing on what the engine says as it comes."""
        self._begin("generating")
        try:
            for request in requests:
                self._send(request, self.spec.idle_timeout_seconds)
            self._send(Generate(), self.spec.idle_timeout_seconds)
            while not isinstance(answer := self._receive(self.spec.idle_timeout_seconds), Generated):
                if not isinstance(answer, Chunk | Completion):
                    self._fail_on_unexpected(answer)
                yield answer
            self._doing = None
        finally:
            if self._doing is not None:
                self._child.end()

    def close(self) -> None:
        """Release the device and reap the child. Raises ``EngineError`` if the engine fails at it; reaps anyway."""
        if not self._child.end.alive:
            return
        try:
            if self._doing is None:
                self._ask(Close(), Closed, "closing", timeout=CLOSE_SECONDS)
                self._child.wait(CLOSE_SECONDS)
        finally:
            self._child.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._child.end()  # the first error is the one to show, not one that closing might add

    def _ask(self, command: Command, expected: type[A], doing: str, *, timeout: float | None = None) -> A:
        """Send one command and wait for its one answer. Any error ends the child."""
        self._begin(doing)
        seconds = self.spec.idle_timeout_seconds if timeout is None else timeout
        try:
            self._send(command, seconds)
            answer = self._receive(seconds)
            if not isinstance(answer, expected):
                self._fail_on_unexpected(answer)
        except BaseException:
            self._child.end()
            raise
        self._doing = None
        return answer

    def _begin(self, doing: str) -> None:
        if not self._child.end.alive:
            raise EngineError(f"engine {self.spec.kind!r}: the session has ended", kind="refused")
        if self._doing is not None:
            raise EngineError(f"engine {self.spec.kind!r} is busy {self._doing}", kind="refused")
        self._doing = doing

    def _send(self, command: Command, seconds: float) -> None:
        try:
            self._child.write(encode(command), deadline=time.monotonic() + seconds)
        except BrokenPipeError:
            pass  # the child is gone; what it said last, and how it went, is found when its answer is read
        except TimeoutError:
            self._fail_on_silence(seconds)

    def _receive(self, seconds: float) -> Answer:
        try:
            line = self._child.read_line(deadline=time.monotonic() + seconds, max_bytes=MAX_LINE_BYTES)
            return decode_answer(line)
        except TimeoutError:
            self._fail_on_silence(seconds)
        except EOFError as end:
            self._fail_on_exit(unfinished=end.args[0])
        except DataError as error:
            self._fail("garbage", f"spoke garbage: {error}")

    def _fail_on_silence(self, seconds: float) -> NoReturn:
        self._fail("timeout", f"said nothing for {seconds:g} s, and was killed")

    def _fail_on_exit(self, *, unfinished: bytes) -> NoReturn:
        code = self._child.wait(EXIT_SECONDS)
        if code == 0 and unfinished:
            self._fail("garbage", f"spoke garbage: exited in the middle of a message, after {unfinished[:60]!r}")
        self._fail("crash", exit_in_words(code))

    def _fail_on_unexpected(self, answer: Answer) -> NoReturn:
        if isinstance(answer, Failure):
            self._fail_as_told(answer)
        self._fail("garbage", f"spoke garbage: a {type(answer).__name__} message out of turn")

    def _fail_as_told(self, failure: Failure) -> NoReturn:
        """Raise what the child reported of itself."""
        name = f"engine {self.spec.kind!r}"
        if failure.reason == "missing_package" and failure.package is not None:
            if self._target.extra is not None:
                raise MissingExtraError(failure.package, needed_for=name, extra=self._target.extra)
            raise EngineError(f"{name} needs {failure.package}, which is not installed", kind="refused")
        if failure.reason == "refused":
            raise EngineError(f"{name}: {failure.message}", kind="refused")
        if failure.reason not in _FAILURES:
            self._fail("garbage", f"spoke garbage: failure reason {failure.reason!r}")
        self._fail(failure.reason, f"{_FAILURES[failure.reason]}: {failure.message}")

    def _fail(self, kind: str, what: str) -> NoReturn:
        """Raise the one error, with the child's last words; whoever waits for the answer ends the child."""
        tail = self._child.log_tail()
        quoted = "".join(f"\n  | {line}" for line in tail.splitlines())
        last_lines = f"\nlast lines of its stderr:{quoted}" if quoted else ""
        raise EngineError(f"engine {self.spec.kind!r} {what} (while {self._doing}){last_lines}", kind=kind) from None
