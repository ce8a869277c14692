"""Parquet as evidence needs it: exact schemas, page checksums written and verified, ids in ``array('i')``."""

import contextlib
import io
from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

from gatepost import jsonfile
from gatepost.audit.pages import chunks, require_checksums
from gatepost.errors import DataError

IDS = pa.list_(pa.field("element", pa.int32(), nullable=False))
TEXTS = pa.list_(pa.field("element", pa.string(), nullable=False))

T = TypeVar("T")

BATCH_IDS = 2**18
READ_BYTES = 2**20


def id_lists(lists: "Sequence[array[int] | None]") -> pa.Array:
    """A list column built from buffers: no Python integer is made for an id, and numpy is not needed."""
    offsets = array("i", accumulate((0 if ids is None else len(ids) for ids in lists), initial=0))
    values = _int32(b"".join(ids.tobytes() for ids in lists if ids is not None))
    missing = [ids is None for ids in lists]
    mask = pa.array(missing, pa.bool_()) if any(missing) else None
    return pa.ListArray.from_arrays(_int32(offsets.tobytes()), values, type=IDS, mask=mask)


def _int32(data: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), len(data) // 4, [None, pa.py_buffer(data)])


def id_arrays(table: pa.Table, column: str) -> "list[array[int] | None]":
    """The lists of a column of ids, four bytes an id, so that millions of them fit a laptop."""
    lists: list[array[int] | None] = []
    for chunk in table.column(column).chunks:
        values = chunk.values
        data = values.buffers()[1]
        ids = memoryview(b"" if data is None else data).cast("B")[4 * values.offset :]
        offsets = chunk.offsets.to_pylist()
        some = 0 < chunk.null_count < len(chunk)
        present = chunk.is_valid().to_pylist() if some else repeat(not chunk.null_count)
        for valid, start, stop in zip(present, offsets, offsets[1:], strict=False):
            found = array("i")
            found.frombytes(ids[4 * start : 4 * stop])
            lists.append(found if valid else None)
    return lists


def write_table(path: Path, schema: pa.Schema, columns: Mapping[str, Any]) -> None:
    """Write a new file of exactly these columns."""
    sink = io.BytesIO()
    table = pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, store_schema=False)
    jsonfile.write_new(path, sink.getvalue())


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a file that has exactly these columns. Raises ``DataError`` for any other, and for a damaged one."""
    with _readable(path), _open(io.BytesIO(jsonfile.read_bytes(path)), path, schema) as file:
        table = file.read()
        table.validate(full=True)
        _refuse_nulls(table, schema, path)
    return table


def read_batches(path: Path, schema: pa.Schema, ids: str) -> Iterator[pa.Table]:
    """The same in batches of some hundred thousand ids, so that a file of any length takes the memory of one of them.

    Args:
        ids: column of id lists, by whose length the batches are cut.
    """
    with _readable(path), jsonfile.open_regular(path) as stream, _open(stream, path, schema) as file:
        rows_of_a_batch = _rows_of_a_batch(stream, path, ids, file.metadata.num_rows)
        for batch in file.iter_batches(batch_size=rows_of_a_batch):
            table = pa.table(batch)
            table.validate(full=True)
            _refuse_nulls(table, schema, path)
            yield table


def verify_pages(path: Path) -> None:
    """Raise ``DataError`` unless every page of a file has a checksum that holds; nothing is decoded."""
    with _readable(path), jsonfile.open_regular(path) as stream:
        require_checksums(stream, str(path))


def read_ahead(batches: Iterator[T]) -> Iterator[T]:
    """The same batches, each made in a second thread while the one before is worked on."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, end)
        while (batch := coming.result()) is not end:
            coming = pool.submit(next, batches, end)
            yield cast(T, batch)


def _rows_of_a_batch(stream: BinaryIO, path: Path, ids: str, rows: int) -> int:
    values = sum(chunk.values for chunk in chunks(stream, str(path)) if chunk.column == f"{ids}.list.element")
    return max(1, rows * BATCH_IDS // max(1, values))


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None


def _open(stream: BinaryIO, path: Path, schema: pa.Schema) -> pq.ParquetFile:
    require_checksums(stream, str(path))
    file = pq.ParquetFile(stream, page_checksum_verification=True, pre_buffer=False, buffer_size=READ_BYTES)
    found = [(f.name, str(f.type)) for f in file.schema_arrow]
    expected = [(f.name, str(f.type)) for f in schema]
    if found != expected:
        raise DataError(f"{path}: columns {found}, expected {expected}")
    return file


def _refuse_nulls(rows: pa.Table, schema: pa.Schema, path: Path) -> None:
    for f in schema:
        if not f.nullable and rows.column(f.name).null_count:
            raise DataError(f"{path}: column {f.name}: holds null, expected a value in every row")
