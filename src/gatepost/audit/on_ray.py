"""The audit on a Ray cluster: each worker reads pieces of files itself and sends back what it found of their rows.

1. Workers open files where they lie: all machines have to see them under the same path. Ids do not travel.
2. What is found comes back in the order of files and rows, so that the same is reported as by one machine.
3. A worker that dies costs the task it had, some pieces in a row, which another one does again. No piece is begun again
   when ``MAX_TRIES`` workers died of it. Ray Data itself would go on for ever, so deaths are counted where they are
   survived.
4. An error of the rows comes back as a value and is raised in its turn: the first by order, not the first in time.
"""

import contextlib
import logging
import math
import os
import pickle
import socket
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from gatepost.audit.pieces import Piece, pieces_of, read_piece
from gatepost.audit.row_files import Format
from gatepost.audit.tables import Progress, SeenKeys
from gatepost.errors import GatepostError, MissingExtraError

Audit = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Rows in, what is said of them out: ``gatepost.audit.audit_batch``, or one's own that keeps the keys of the rows."""

LOCAL = "local"
LOCAL_STORE_BYTES = 200 * 2**20
MAX_TRIES = 4
MAX_PIECES = 16
"""Of a task: a task more costs the driver some ten milliseconds, a longer one more work where its worker dies."""

TASKS_PER_CPU = 16
"""At least, if there are pieces enough, so that all workers end at about the same time."""

CONNECT_SECONDS = 5

_ANSWER = pa.schema([("number", pa.int64()), ("found", pa.binary()), ("refused", pa.binary())])


def audit_files(
    files: Sequence[Path],
    audit: Audit,
    *,
    address: str | None = None,
    format: Format | None = None,
    progress: Progress | None = None,
) -> Generator[tuple[Path, Iterator[pa.RecordBatch]], None, None]:
    """Audit files on Ray: each with its results, in the order of its rows. Take a file's results before the next file.

    Args:
        audit: pickled by reference where it can be imported, so every machine needs the same gatepost.
        address: ``local`` for a cluster of this machine's cores that ends with the audit, ``auto`` for the one that
            runs on this machine, ``HOST:PORT`` or ``ray://HOST:PORT``. Where this process is connected already, it
            stays with that cluster; ``None`` asks for that.
        progress: told of each piece in its turn; its ids are the audited ones.

    Raises what ``gatepost.audit.audit_file`` raises of the same files, and ``GatepostError`` for an address where no
    cluster answers and for a piece that every worker died of, naming file and piece.
    """
    with _connected(address) as ray:
        pieces = [piece for path in files for piece in pieces_of(path, format)]
        with contextlib.closing(_answers(ray, pieces, audit, format)) as answers:
            found = zip(pieces, answers, strict=True)
            for path, of_file in groupby(found, key=lambda pair: pair[0].path):
                yield path, _results(path, of_file, progress)


def _results(
    path: Path, found: Iterator[tuple[Piece, list[pa.RecordBatch]]], progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    seen = SeenKeys(path)
    for piece, batches in found:
        for batch in batches:
            seen.add(batch)
            yield batch
        if progress is not None:
            ids = (sum(batch.column("tokens").to_pylist()) for batch in batches if "tokens" in batch.schema.names)
            progress(path, piece.done, sum(batch.num_rows for batch in batches), sum(ids))
    seen.refuse_repeated()


def _answers(
    ray: ModuleType, pieces: Sequence[Piece], audit: Audit, format: Format | None
) -> Generator[list[pa.RecordBatch], None, None]:
    """What was found of each piece, in order. Raises what was refused."""
    deaths = ray.remote(num_cpus=0)(Deaths).remote()
    work = partial(_audit_pieces, audit=audit, format=format, folder=Path.cwd(), ask=partial(_ask, ray.get, deaths))
    items = [{"number": number, "piece": pickle.dumps(piece)} for number, piece in enumerate(pieces)]
    wanted = TASKS_PER_CPU * max(int(ray.cluster_resources().get("CPU", 1)), 1)
    tasks = math.ceil(len(items) / min(max(len(items) // wanted, 1), MAX_PIECES))
    dataset = ray.data.from_items(items, override_num_blocks=tasks)
    dataset = dataset.map_batches(work, batch_size=None, batch_format="pyarrow")
    dataset.context.execution_options.preserve_order = True
    dataset.context.enable_progress_bars = False
    number = 0
    for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
        for answer in table.to_pylist():
            if answer["number"] != number:
                raise GatepostError(f"{pieces[number]}: lost by Ray, which gave number {answer['number']} for {number}")
            if answer["refused"] is not None:
                raise pickle.loads(answer["refused"])
            yield [] if answer["found"] is None else pa.ipc.open_stream(answer["found"]).read_all().to_batches()
            number += 1


class Deaths:
    """An actor that knows what each task is at: what a worker knows of that dies with it."""

    def __init__(self) -> None:
        self._at: dict[int, int] = {}
        self._deaths: dict[int, int] = {}

    def begin(self, task: int) -> None:
        """Note that a task is begun. If it is at a piece, a worker began it before and died there."""
        if (died_at := self._at.pop(task, None)) is not None:
            self._deaths[died_at] = self._deaths.get(died_at, 0) + 1

    def go_on(self, task: int, number: int) -> int:
        """Note which piece a task is at. Returns how many workers died of the piece so far."""
        self._at[task] = number
        return self._deaths.get(number, 0)

    def end(self, task: int) -> None:
        """Note that a task is done: it is begun again if its answers are lost with the machine that keeps them."""
        self._at.pop(task, None)


def _ask(get: Callable[[Any], int], deaths: Any, method: str, *arguments: int) -> int:
    return get(getattr(deaths, method).remote(*arguments))


def _audit_pieces(
    items: pa.Table, audit: Audit, format: Format | None, folder: Path, ask: Callable[..., int]
) -> pa.Table:
    """One task, on a worker: its pieces up to the first that is refused."""
    answers: list[tuple[int, bytes | None, bytes | None]] = []
    task = items.column("number")[0].as_py()
    ask("begin", task)
    for item in items.to_pylist():
        number, piece, found = item["number"], pickle.loads(item["piece"]), None
        try:
            if ask("go_on", task, number) >= MAX_TRIES:
                raise GatepostError(
                    f"{piece}: each of the {MAX_TRIES} workers that began it died: killed, out of memory, or their "
                    "machine lost"
                )
            with _in_folder(folder, piece.path):
                found = _as_stream([audit(batch.rows) for batch in read_piece(piece, format=format)])
        except GatepostError as error:
            answers.append((number, None, pickle.dumps(error)))
            break
        answers.append((number, found, None))
    ask("end", task)
    return pa.table([list(column) for column in zip(*answers, strict=True)], schema=_ANSWER)


@contextmanager
def _in_folder(folder: Path, path: Path) -> Iterator[None]:
    """Where a path means what it does to whoever named it, so that messages can keep it as it was named."""
    if path.is_absolute():
        yield
        return
    if not folder.is_dir():
        raise GatepostError(f"{path}: {socket.gethostname()} has no folder {folder}, expected on every machine")
    with contextlib.chdir(folder):
        yield


def _as_stream(batches: list[pa.RecordBatch]) -> bytes | None:
    if not batches:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


@contextmanager
def _connected(address: str | None) -> Iterator[ModuleType]:
    """Ray, connected; what this connected or started ends with it."""
    try:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray
        import ray.data
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "ray", needed_for="the audit on Ray", extra="ray") from None
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet("ray.data"))
        if not ray.is_initialized():
            _connect(ray, address, stack)
        yield ray


def _connect(ray: ModuleType, address: str | None, stack: contextlib.ExitStack) -> None:
    """Connect, and have the stack end it."""
    address = "auto" if address is None else address
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        # Short, since the paths of Ray's sockets lie in it; of its own, so that nothing of it stays.
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="gatepost-", dir="/tmp", ignore_cleanup_errors=True)
        )
        options |= {
            "num_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "include_dashboard": False,
            "object_store_memory": LOCAL_STORE_BYTES,
            "_temp_dir": folder,
        }
    stack.callback(ray.shutdown)
    try:
        _require_reachable(address)
        ray.init(address, **options)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise GatepostError(f"no Ray cluster at {address!r}: {first}") from None


def _require_reachable(address: str) -> None:
    """Ray tries for minutes to reach a port where nobody listens, and takes no address for ``auto``."""
    if not address:
        raise ValueError("expected local, auto, HOST:PORT or ray://HOST:PORT")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
