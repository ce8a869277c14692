"""The child process: ``python -m gatepost.engines.serve`` hosts one engine for one parent.

The packages are listed before the engine's module is imported. The first exception becomes one ``failure`` message and
ends the child, and so does the parent closing its end: an engine never outlives the step that started it, whatever it
is doing then.
"""

import contextlib
import ctypes
import errno
import importlib
import importlib.util
import os
import platform
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace

from gatepost.engine import Engine, EngineFacts, Request
from gatepost.engines import inventory
from gatepost.engines.channel import Channel
from gatepost.engines.wire import (
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
)
from gatepost.errors import EngineError, GatepostError

MAX_MESSAGE_CHARACTERS = 4000
"""Of an exception's text in a failure; some libraries put whole tensors into it."""

ORPHAN_SECONDS = 10.0
"""How long an engine may take to close once its parent closed the pipe, before its process group is killed."""

_PR_SET_PDEATHSIG = 1

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory")


class Server:
    """Answers commands, one after the other, with one engine."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._requests: list[Request] = []
        self._path = tuple(sys.path)
        self._versions: dict[str, str] = {}

    def answers(self, command: Command) -> Iterator[Answer]:
        """Obey one command. Whatever the engine raises comes through."""
        match command:
            case Start():
                self._versions = inventory.installed(self._path)
                self._engine = _construct(command)
                yield Facts(self._facts())
            case AskFacts():
                yield Facts(self._facts())
            case Render():
                yield Prompts(tuple(self._live.render(command.conversations)))
            case Request():
                self._requests.append(command)
            case Generate():
                requests, self._requests = self._requests, []
                yield from self._live.generate(requests)
                yield Generated()
            case Close():
                self.close()
                yield Closed()

    def close(self) -> None:
        """Close the engine, if one is open."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    @property
    def _live(self) -> Engine:
        if self._engine is None:
            raise EngineError("no engine is open: the first command has to be start", kind="garbage")
        return self._engine

    def _facts(self) -> EngineFacts:
        """The engine's facts, with those that only its host can know."""
        facts = self._live.facts()
        host = {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "versions_changed": inventory.changed(self._versions, self._path),
            "search_path_added_folders": len(set(sys.path) - set(self._path)),
        }
        return replace(facts, versions=self._versions, environment={**host, **facts.environment})


def _construct(start: Start) -> Engine:
    module, _, name = start.target.partition(":")
    factory = getattr(importlib.import_module(module), name, None)
    if factory is None:
        raise EngineError(f"{module} has no engine {name}", kind="refused")
    engine: Engine = factory(start.spec)
    return engine


def failure(error: Exception) -> Failure:
    """What a parent is told of an exception."""
    text = str(error).encode(errors="replace").decode()[:MAX_MESSAGE_CHARACTERS]
    if isinstance(error, GatepostError):
        return Failure(error.kind if isinstance(error, EngineError) else "refused", text, None)
    message = f"{type(error).__name__}: {text}"
    if isinstance(error, ModuleNotFoundError) and (package := _missing_package(error)):
        return Failure("missing_package", message, package)
    return Failure("out_of_memory" if _is_out_of_memory(error) else "crash", message, None)


def _missing_package(error: ModuleNotFoundError) -> str | None:
    """The top-level package that is not installed; ``None`` if it is, and only a part of it is missing."""
    package = (error.name or "").partition(".")[0]
    with contextlib.suppress(ValueError):  # a module without a spec, hence present
        return package if package and importlib.util.find_spec(package) is None else None
    return None


def _is_out_of_memory(error: Exception) -> bool:
    """Memory of the host or of the device. torch's own class is known by name, since importing torch loads it."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(phrase in text for phrase in _OUT_OF_MEMORY)


def end_with_parent() -> None:
    """Have this process end after its parent, also while the engine hangs and no command is read.

    The kernel of Linux is asked to see to it; by parent it means the thread that started this process, which
    ``gatepost.engines.process`` keeps for as long. Elsewhere, and where the parent was gone before that, a thread does.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_after_hangup, args=(os.dup(0),), daemon=True).start()


def _end_after_hangup(commands: int) -> None:
    poll = select.poll()
    poll.register(commands, 0)  # no event but the hang-up, which comes whatever is still unread
    poll.poll()
    time.sleep(ORPHAN_SECONDS)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Serve until told to close, until the parent is gone, or until the first exception."""
    end_with_parent()
    channel, server = Channel.claim_standard_streams(), Server()
    try:
        for command in channel.commands():
            for answer in server.answers(command):
                channel.send(answer)
            if isinstance(command, Close):
                return
        server.close()
    except BrokenPipeError:
        sys.exit("the parent closed the pipe")
    except Exception as error:
        traceback.print_exc()
        channel.send(failure(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
