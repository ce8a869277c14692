"""Parquet as evidence needs it: exact schemas, page checksums written and verified, ids in ``array('i')``."""

import io
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gatepost import jsonfile
from gatepost.errors import DataError

IDS = pa.list_(pa.field("element", pa.int32(), nullable=False))
TEXTS = pa.list_(pa.field("element", pa.string(), nullable=False))


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
        ids = memoryview(b"" if data is None else data).cast("B").cast("i")[values.offset :]
        offsets = chunk.offsets.to_pylist()
        for valid, start, stop in zip(chunk.is_valid().to_pylist(), offsets, offsets[1:], strict=False):
            lists.append(array("i", ids[start:stop].tobytes()) if valid else None)
    return lists


def write_table(path: Path, schema: pa.Schema, columns: Mapping[str, Any]) -> None:
    """Write a new file of exactly these columns."""
    sink = io.BytesIO()
    table = pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, store_schema=False)
    jsonfile.write_new(path, sink.getvalue())


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a file that has exactly these columns. Raises ``DataError`` for any other, and for a damaged one."""
    source = pa.BufferReader(jsonfile.read_bytes(path))
    try:
        table = pq.read_table(source, page_checksum_verification=True)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
    found = [(f.name, str(f.type)) for f in table.schema]
    expected = [(f.name, str(f.type)) for f in schema]
    if found != expected:
        raise DataError(f"{path}: columns {found}, expected {expected}")
    for f in schema:
        if not f.nullable and table.column(f.name).null_count:
            raise DataError(f"{path}: column {f.name}: holds null, expected a value in every row")
    return table
