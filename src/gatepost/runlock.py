"""One live run at a time on an archive: who holds it, and what is known of a run that did not let go.

A run has ``.lock`` in the archive, which is no part of the record, and holds the operating system's lock on that file.
The file says which process it is, on which machine and since when; the lock ends with the process, however that ends:

    no file                          nobody holds the archive
    its lock is taken                a run is at work: refused
    its lock is free, this machine   that run was killed: the next one takes over
    its lock is free, another one    nobody can tell, since not every shared file system passes locks on: refused, until
                                     somebody who knows removes the file

A machine is this one if its kernel has the same boot id: containers share it, a restart makes another.
"""

import contextlib
import enum
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from gatepost import jsonfile
from gatepost.errors import GatepostError, OrderError
from gatepost.journal import Clock, time_of

NAME = ".lock"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_MAX_BYTES = 4096
_TRIES, _PAUSE_SECONDS, _LOOKERS_SECONDS = 5, 0.02, 10.0
"""A run that takes over holds the lock for an instant before it has it for good. Whoever looks shares it for one, and
is waited for so long: any number of them stop no run."""


class State(enum.Enum):
    """What a lock file means, seen from here."""

    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Holder(NamedTuple):
    """The process that made a lock file. ``boot`` names one run of a machine's kernel, or the machine without one."""

    host: str
    boot: str
    process: int
    since: str

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


class Held(NamedTuple):
    """A lock file, and what it means."""

    holder: Holder
    state: State


def _this_machine() -> tuple[str, str]:
    host = socket.gethostname()
    try:
        return host, _BOOT.read_text().strip()
    except OSError:
        return host, host


@contextlib.contextmanager
def hold(root: Path, clock: Clock) -> Iterator[None]:
    """Hold an archive while the block runs. Raises ``OrderError`` if another run does, or may do."""
    path, mine = root / NAME, root / f"{jsonfile.TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    left = jsonfile.canonical(Holder(*_this_machine(), os.getpid(), time_of(clock()))._asdict())
    with mine.open("xb", buffering=0) as stream:
        try:
            with jsonfile.naming(path):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                while left:
                    left = left[stream.write(left) :]
                os.fsync(stream.fileno())  # else a power loss may leave a file that says nothing
            _take(mine, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                mine.unlink()
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                if _is_named(stream, path):
                    path.unlink()


def _take(mine: Path, path: Path) -> None:
    """Give a file that is locked already its name, in the place of one that a killed run left."""
    tries, until = _TRIES, time.monotonic() + _LOOKERS_SECONDS
    while tries:
        try:
            os.link(mine, path)
            return
        except FileNotFoundError:  # a run that holds the archive has just tidied up
            break
        except FileExistsError:
            pass
        with _locked(path) as (free, named):
            if free and named:
                holder = _read(path)
                if not _is_here(holder):
                    raise OrderError(f"{path.parent}: {_unknown(holder, path)}")
                mine.rename(path)
                return
        with _locked(path, fcntl.LOCK_SH) as (shared, _):
            tries -= not shared or time.monotonic() > until
        time.sleep(_PAUSE_SECONDS)
    who = f": {_read(path)}" if path.exists() else ""
    raise OrderError(f"{path.parent}: another live run holds this archive{who}; one step runs at a time")


@contextlib.contextmanager
def _locked(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[tuple[bool, bool]]:
    """Try to lock a file: whether nobody has it, and whether it still has that name."""
    mode = os.O_RDWR if kind == fcntl.LOCK_EX else os.O_RDONLY  # network file systems ask for it
    try:
        descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        yield True, False
        return
    except OSError as error:
        raise OrderError(f"{path}: cannot be locked: {error.strerror}") from None
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        try:
            fcntl.flock(stream, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False, True
            return
        yield True, _is_named(stream, path)


def _is_named(stream: IO[bytes], path: Path) -> bool:
    """Whether an open file is the one of that name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def look(root: Path) -> Held | None:
    """Who holds an archive, or did. Raises ``GatepostError`` for a file that is no lock of gatepost's."""
    path = root / NAME
    if not path.is_symlink() and not path.exists():
        return None
    with _locked(path, fcntl.LOCK_SH) as (free, named):
        if free and not named:
            return None
        holder = _read(path)
    if not free:
        return Held(holder, State.RUNNING)
    return Held(holder, State.ENDED if _is_here(holder) else State.UNKNOWN)


def told(root: Path) -> str | None:
    """What people are told of the lock of an archive: which process, since when, and what to do. Raises as ``look``."""
    held = look(root)
    if held is None:
        return None
    if held.state is State.RUNNING:
        return f"a live run is at work: {held.holder}"
    if held.state is State.UNKNOWN:
        return _unknown(held.holder, root / NAME)
    reused = f"; another process is number {held.holder.process} now" if _lives(held.holder.process) else ""
    return f"a live run did not come to its end: {held.holder}, which is gone{reused}; the next live run takes over"


def _unknown(holder: Holder, path: Path) -> str:
    return (
        f"a live run of another machine may hold this archive: {holder}. This one, {socket.gethostname()}, was started "
        f"since or is another, and cannot see. If you know that the run has ended, remove {path}"
    )


def _read(path: Path) -> Holder:
    try:
        document = jsonfile.loads_canonical(jsonfile.read_bytes(path, at_most=_MAX_BYTES), source=str(path))
        holder = Holder(**document)
    except (GatepostError, TypeError) as error:
        raise OrderError(f"{path}: is no lock of a live run ({error}); if none is at work, remove it") from None
    if [type(value) for value in holder] != [str, str, int, str]:
        raise OrderError(f"{path}: is no lock of a live run (found {holder}); if none is at work, remove it")
    return holder


def _is_here(holder: Holder) -> bool:
    return holder.boot == _this_machine()[1]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
