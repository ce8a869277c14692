"""Row files of the audit: Parquet, Arrow IPC, npz and JSON lines, read in batches, written whole or not at all."""

import hashlib
import io
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Literal, TypeVar

import pyarrow as pa

from gatepost import jsonfile
from gatepost.audit.jsonl_rows import jsonl_batches, write_jsonl
from gatepost.audit.row_model import (
    BATCH_IDS,
    BATCH_ROWS,
    MODEL,
    Batch,
    Place,
    checked_rows,
    token_count,
    wanted_columns,
)
from gatepost.errors import DataError, IntegrityError

Format = Literal["parquet", "arrow", "npz", "jsonl"]

MAGIC: dict[bytes, Format] = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow", b"PK\3\4": "npz"}
"""How files begin. An Arrow file begins with ARROW1, a stream with a continuation mark."""

SUFFIXES: dict[str, Format] = {".parquet": "parquet", ".arrow": "arrow", ".arrows": "arrow", ".npz": "npz"}
"""By the name of a new file; ``.arrows`` is an Arrow stream. Any other is written as JSON lines."""

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
READ_BYTES = 2**20
DAMAGED = (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError)

Item = TypeVar("Item")


def read_batches(path: Path, *, format: Format | None = None, batch_rows: int = BATCH_ROWS) -> Iterator[Batch]:
    """Read the rows of a file, some at a time, each checked.

    Args:
        format: what the file has to be; by its first bytes where it is not said.
        batch_rows: rows in memory at once. An Arrow file decides that itself.

    Raises ``DataError`` naming the file, its row group, batch or line, and what was expected, for a file that is cut
    off, damaged, of mixed or other columns, or that holds no rows; ``IntegrityError`` for a link, a pipe or a device.
    """
    with jsonfile.open_regular(path) as stream:
        size_bytes = os.fstat(stream.fileno()).st_size
        kind = format or _format_of(stream.read(4), path)
        stream.seek(0)
        row = -1
        for batch in _READERS[kind](path, stream, size_bytes, batch_rows):
            row = batch.first_row
            yield batch
    if row < 0:
        raise DataError(f"{path}: holds no rows")


def _format_of(first: bytes, path: Path) -> Format:
    if not first:
        raise DataError(f"{path}: is empty")
    if first.lstrip()[:1] == b"{":
        return "jsonl"
    if first not in MAGIC:
        raise DataError(f"{path}: begins with {first!r}, expected Parquet, Arrow IPC, npz or JSON lines")
    return MAGIC[first]


def _parquet_batches(path: Path, stream: IO[bytes], size_bytes: int, batch_rows: int) -> Iterator[Batch]:
    import pyarrow.parquet as pq

    def open_file() -> pq.ParquetFile:
        source = pa.PythonFile(stream, "r")
        return pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=False, buffer_size=READ_BYTES)

    file = _guarded(path, "footer", open_file)
    columns = wanted_columns(path, file.schema_arrow.names)
    row, rows = 0, file.metadata.num_rows
    for group in range(file.num_row_groups):
        part = f"row group {group}"
        groups = file.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False)
        while (batch := _guarded(path, f"{part}, from row {row} on", partial(next, groups, None))) is not None:
            yield Batch(checked_rows(batch, Place(path, part, row)), row, (row + batch.num_rows) / rows)
            row += batch.num_rows
    if row != rows:
        raise DataError(f"{path}: holds {row} rows, its footer says {rows}")


def _arrow_batches(path: Path, stream: IO[bytes], size_bytes: int, batch_rows: int) -> Iterator[Batch]:
    first, row = stream.read(6), 0
    for number, (batch, done) in enumerate((_file if first == b"ARROW1" else _stream)(path, stream, size_bytes)):
        for start in range(0, batch.num_rows, batch_rows):
            rows = batch.slice(start, batch_rows)
            share = done(min(start + batch_rows, batch.num_rows) / batch.num_rows)
            yield Batch(checked_rows(rows, Place(path, f"batch {number}", row)), row, share)
            row += rows.num_rows


_Done = Callable[[float], float]
"""Share of a batch -> share of its file."""


def _share(before: int, of: int, share: float) -> float:
    return (before + share) / of


def _file(path: Path, stream: IO[bytes], size_bytes: int) -> Iterator[tuple[pa.RecordBatch, _Done]]:
    def open_file(options: pa.ipc.IpcReadOptions) -> pa.ipc.RecordBatchFileReader:
        stream.seek(0)
        return pa.ipc.open_file(pa.PythonFile(stream, "r"), options=options)

    reader = _guarded(path, "footer", lambda: open_file(_options()))
    options = _options(_indices(path, reader.schema))
    reader = _guarded(path, "footer", lambda: open_file(options))
    count = reader.num_record_batches
    for number in range(count):
        batch = _guarded(path, f"batch {number}", partial(reader.get_batch, number))
        yield batch, partial(_share, number, count)


def _stream(path: Path, stream: IO[bytes], size_bytes: int) -> Iterator[tuple[pa.RecordBatch, _Done]]:
    def open_stream(options: pa.ipc.IpcReadOptions) -> pa.ipc.RecordBatchStreamReader:
        stream.seek(0)
        return pa.ipc.open_stream(pa.PythonFile(stream, "r"), options=options)

    reader = _guarded(path, "schema", lambda: open_stream(_options()))
    options = _options(_indices(path, reader.schema))
    reader = _guarded(path, "schema", lambda: open_stream(options))
    number = 0
    while (batch := _guarded(path, f"batch {number}", partial(next, reader, None))) is not None:
        yield batch, partial(_share, stream.tell() - 1, size_bytes)
        number += 1
    end = stream.tell()
    stream.seek(max(end - len(END_OF_STREAM), 0))
    if stream.read(len(END_OF_STREAM)) != END_OF_STREAM:
        raise DataError(f"{path}: batch {number}: ends at byte {end} without the mark of its end: truncated")
    if end < size_bytes:
        raise DataError(f"{path}: goes on after the end of its stream at byte {end}, expected one stream a file")


def _options(indices: list[int] | None = None) -> pa.ipc.IpcReadOptions:
    return pa.ipc.IpcReadOptions(use_threads=False, included_fields=indices)


def _indices(path: Path, schema: pa.Schema) -> list[int]:
    return [schema.names.index(name) for name in wanted_columns(path, schema.names)]


def _guarded(path: Path, part: str, read: Callable[[], Item]) -> Item:
    """What a reader of pyarrow gives; what it raises, as one sentence."""
    try:
        return read()
    except DAMAGED as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{path}: {part}: truncated or damaged: {first[:200]}") from None


def _npz_batches(path: Path, stream: IO[bytes], size_bytes: int, batch_rows: int) -> Iterator[Batch]:
    from gatepost.audit.npz_rows import npz_batches

    return npz_batches(path, stream, batch_rows)


_READERS: dict[Format, Callable[[Path, IO[bytes], int, int], Iterator[Batch]]] = {
    "parquet": _parquet_batches,
    "arrow": _arrow_batches,
    "npz": _npz_batches,
    "jsonl": jsonl_batches,
}


def write_batches(path: Path | str, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows of the model as a new file, in the format that its suffix names; whole, durable and read back.

    Raises ``DataError`` for a row that no reader would take, ``IntegrityError`` if the name is taken.
    """
    path = Path(path)
    kind, batches = SUFFIXES.get(path.suffix, "jsonl"), _checked(path, batches)
    with new_file(path) as sink:
        if kind == "parquet":
            _write_parquet(sink, batches)
        elif kind == "arrow":
            new = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
            with pa.PythonFile(sink, "w") as output, new(output, MODEL) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        elif kind == "npz":
            from gatepost.audit.npz_rows import write_npz

            write_npz(sink, batches, path.parent)
        else:
            write_jsonl(sink, batches)


def _checked(path: Path, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    row = 0
    for batch in batches:
        wanted_columns(path, batch.schema.names)
        yield checked_rows(batch, Place(path, "to write", row))
        row += batch.num_rows


def _write_parquet(sink: IO[bytes], batches: Iterable[pa.RecordBatch]) -> None:
    import pyarrow.parquet as pq

    options = {"compression": "zstd", "write_page_checksum": True, "store_schema": False}
    with pa.PythonFile(sink, "w") as output, pq.ParquetWriter(output, MODEL, **options) as writer:
        waiting: list[pa.RecordBatch] = []
        ids = 0
        for batch in batches:
            waiting.append(batch)
            ids += token_count(batch)
            if ids >= BATCH_IDS:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting, ids = [], 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))


class _Hashed(io.RawIOBase):
    """A file being written, and the hash of what was written to it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.sha256 = stream, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: "memoryview | bytes") -> int:  # type: ignore[override]
        self.sha256.update(data)
        return self._stream.write(data)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that must not exist yet, written piece by piece: whole, durable and read back, or not at all."""
    temporary = path.parent / f"{jsonfile.TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    try:
        with jsonfile.naming(path), temporary.open("xb") as stream:
            sink = _Hashed(stream)
            yield sink  # type: ignore[misc]
            stream.flush()
            os.fsync(stream.fileno())
        if jsonfile.sha256_of(temporary) != sink.sha256.hexdigest():
            raise IntegrityError(f"{path}: what was written is not what can be read back")
        os.link(temporary, path)
    except FileExistsError:
        raise IntegrityError(f"{path}: exists already; gatepost never overwrites a record") from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    jsonfile.sync_folder(path.parent)
