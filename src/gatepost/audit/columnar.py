"""Rows of the audit as Parquet and Arrow IPC: one row group or record batch after another, or one of them alone."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from gatepost.audit.row_model import COLUMNS, Batch, Place, checked_rows, wanted_columns
from gatepost.errors import DataError

ARROW_FILE = b"ARROW1"
"""How an Arrow file begins. An Arrow stream begins with a continuation mark."""

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
READ_BYTES = 2**20
DAMAGED = (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError)

Item = TypeVar("Item")
Done = Callable[[float], float]
"""Share of a batch -> share of its file."""


def parquet_batches(path: Path, stream: IO[bytes], size_bytes: int, batch_rows: int) -> Iterator[Batch]:
    """Read a Parquet file, row group by row group. Raises ``DataError`` naming the row group."""
    file = parquet_file(path, stream)
    wanted_columns(path, file.schema_arrow.names)
    row, rows = 0, file.metadata.num_rows
    for group in range(file.num_row_groups):
        for batch in row_group(path, file, group, row, batch_rows):
            yield batch
            row += batch.rows.num_rows
    if row != rows:
        raise DataError(f"{path}: holds {row} rows, its footer says {rows}")


def parquet_file(path: Path, stream: IO[bytes]) -> pq.ParquetFile:
    """The footer of a Parquet file, its pages to follow. Raises ``DataError``."""

    def open_file() -> pq.ParquetFile:
        source = pa.PythonFile(stream, "r")
        return pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=False, buffer_size=READ_BYTES)

    return _guarded(path, "footer", open_file)


def row_group(path: Path, file: pq.ParquetFile, group: int, row: int, batch_rows: int) -> Iterator[Batch]:
    """Read one row group, of which ``row`` is the first row. Raises ``DataError``."""
    part, end, rows = f"row group {group}", row + file.metadata.row_group(group).num_rows, file.metadata.num_rows
    columns = wanted_columns(path, file.schema_arrow.names)
    groups = file.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False)
    while (batch := _guarded(path, f"{part}, from row {row} on", partial(next, groups, None))) is not None:
        yield Batch(checked_rows(batch, Place(path, part, row)), row, (row + batch.num_rows) / rows)
        row += batch.num_rows
    if row != end:
        raise DataError(f"{path}: {part}: ends before row {row}, its footer says before row {end}")


def arrow_batches(path: Path, stream: IO[bytes], size_bytes: int, batch_rows: int) -> Iterator[Batch]:
    """Read an Arrow file or stream, batch by batch. Raises ``DataError`` naming the batch."""
    first, row = stream.read(len(ARROW_FILE)), 0
    for number, (batch, done) in enumerate((_file if first == ARROW_FILE else _stream)(path, stream, size_bytes)):
        for part in record_batch(path, number, batch, row, batch_rows, done):
            yield part
            row += part.rows.num_rows


def record_batch(
    path: Path, number: int, batch: pa.RecordBatch, row: int, batch_rows: int, done: Done
) -> Iterator[Batch]:
    """Check a record batch, of which ``row`` is the first row, some rows at a time. Raises ``DataError``."""
    for start in range(0, batch.num_rows, batch_rows):
        rows = batch.slice(start, batch_rows)
        share = done(min(start + batch_rows, batch.num_rows) / batch.num_rows)
        yield Batch(checked_rows(rows, Place(path, f"batch {number}", row + start)), row + start, share)


def _share(before: int, of: int, share: float) -> float:
    return (before + share) / of


def _file(path: Path, stream: IO[bytes], size_bytes: int) -> Iterator[tuple[pa.RecordBatch, Done]]:
    read, count = arrow_file(path, stream)
    for number in range(count):
        yield read(number), partial(_share, number, count)


def arrow_file(
    path: Path, stream: IO[bytes], wanted: Collection[str] = COLUMNS
) -> tuple[Callable[[int], pa.RecordBatch], int]:
    """What reads a record batch of an Arrow file by its number, those columns alone, and how many there are.

    Both raise ``DataError``.
    """

    def open_file(options: pa.ipc.IpcReadOptions) -> pa.ipc.RecordBatchFileReader:
        stream.seek(0)
        return pa.ipc.open_file(pa.PythonFile(stream, "r"), options=options)

    reader = _guarded(path, "footer", lambda: open_file(_options()))
    options = _options(_indices(path, reader.schema, wanted))
    reader = _guarded(path, "footer", lambda: open_file(options))
    return (
        lambda number: _guarded(path, f"batch {number}", partial(reader.get_batch, number)),
        reader.num_record_batches,
    )


def _stream(path: Path, stream: IO[bytes], size_bytes: int) -> Iterator[tuple[pa.RecordBatch, Done]]:
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


def _indices(path: Path, schema: pa.Schema, wanted: Collection[str] = COLUMNS) -> list[int]:
    return [schema.names.index(name) for name in wanted_columns(path, schema.names) if name in wanted]


def _guarded(path: Path, part: str, read: Callable[[], Item]) -> Item:
    """What a reader of pyarrow gives; what it raises, as one sentence."""
    try:
        return read()
    except DAMAGED as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{path}: {part}: truncated or damaged: {first[:200]}") from None
