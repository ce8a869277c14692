"""Row files of the audit: Parquet, Arrow IPC, npz and JSON lines, read in batches, written whole or not at all."""

import hashlib
import io
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

import pyarrow as pa

from gatepost import jsonfile
from gatepost.audit.columnar import arrow_batches, parquet_batches
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


def read_batches(path: Path, *, format: Format | None = None, batch_rows: int = BATCH_ROWS) -> Iterator[Batch]:
    """Read the rows of a file, some at a time, each checked.

    Args:
        format: what the file has to be; by its first bytes where it is not said.
        batch_rows: rows in memory at once. An Arrow file decides that itself.

    Raises ``DataError`` naming the file, its row group, batch or line, and what was expected, for a file that is cut
    off, damaged, of mixed or other columns, or that holds no rows; ``IntegrityError`` for a link, a pipe or a device.
    """
    with open_rows(path, format) as (kind, stream):
        size_bytes, row = os.fstat(stream.fileno()).st_size, -1
        for batch in _READERS[kind](path, stream, size_bytes, batch_rows):
            row = batch.first_row
            yield batch
    if row < 0:
        raise DataError(f"{path}: holds no rows")


@contextmanager
def open_rows(path: Path, format: Format | None) -> Iterator[tuple[Format, IO[bytes]]]:
    """A file of rows and what it is. Raises as ``read_batches`` does, for what the first bytes show."""
    with jsonfile.open_regular(path) as stream:
        kind = format or _format_of(stream.read(4), path)
        stream.seek(0)
        yield kind, stream


def _format_of(first: bytes, path: Path) -> Format:
    if not first:
        raise DataError(f"{path}: is empty")
    if first.lstrip()[:1] == b"{":
        return "jsonl"
    if first not in MAGIC:
        raise DataError(f"{path}: begins with {first!r}, expected Parquet, Arrow IPC, npz or JSON lines")
    return MAGIC[first]


def _npz_batches(path: Path, stream: IO[bytes], size_bytes: int, batch_rows: int) -> Iterator[Batch]:
    from gatepost.audit.npz_rows import npz_batches

    return npz_batches(path, stream, batch_rows)


_READERS: dict[Format, Callable[[Path, IO[bytes], int, int], Iterator[Batch]]] = {
    "parquet": parquet_batches,
    "arrow": arrow_batches,
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
