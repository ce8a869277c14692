"""Rows of the audit as JSON lines, one sample a line.

    {"task_id": "t", "sample_index": 0, "token_ids": [5, 7], "finish_reason": "stop"}

The fields are the columns of ``gatepost.audit.row_model``. Fields of other names are parsed, since a line is read
whole, and dropped. Every line has to have the same ones of those that are read.
"""

import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from gatepost.audit.foreign import Foreign
from gatepost.audit.row_model import BATCH_IDS, COLUMNS, MODEL, REQUIRED, Batch, id_column, id_list
from gatepost.errors import DataError
from gatepost.jsonfile import MAX_RECORD_BYTES, loads

UNCHECKED = frozenset({"token_ids", "forward_input_lengths"})
"""Long lists that are checked as a whole, or not read."""


def jsonl_batches(path: Path, stream: IO[bytes], size_bytes: int, batch_rows: int) -> Iterator[Batch]:
    """Read rows, some at a time. Raises ``DataError`` naming file, line, field, what was found and what is expected."""
    rows: list[dict[str, Any]] = []
    ids = array("i")
    fields: set[str] | None = None
    first = 0
    for number, line in enumerate(iter(lambda: stream.readline(MAX_RECORD_BYTES + 1), b""), start=1):
        where = f"{path}:{number}"
        if len(line) > MAX_RECORD_BYTES:
            raise DataError(f"{where}: is longer than {MAX_RECORD_BYTES} bytes, expected a row")
        row, own = _row(Foreign(where, loads(line, source=where, columns=UNCHECKED)))
        if row.keys() != (fields := fields or set(row)):
            odd = sorted(fields ^ row.keys())[0]
            problem = "is missing" if odd in fields else "is new"
            raise DataError(f"{where}: field {odd!r} {problem}, expected those of line 1: {', '.join(sorted(fields))}")
        rows.append({**row, "token_ids": len(own)})
        ids.extend(own)
        if len(rows) == batch_rows or len(ids) >= BATCH_IDS:
            yield Batch(_batch(rows, ids), first, stream.tell() / size_bytes)
            first, rows, ids = number, [], array("i")
    if rows:
        yield Batch(_batch(rows, ids), first, 1.0)


def _row(line: Foreign) -> "tuple[dict[str, Any], array[int]]":
    """The fields that are read, and the ids."""
    for name in REQUIRED:
        line.at(name)
    row = {name: line.value[name] for name in COLUMNS if name in line.value}
    ids = id_list(row.pop("token_ids"), f"{line}: token_ids")
    line.text("task_id")
    for name in ("sample_index", "thinking_tokens", "injected_start"):
        limit = 2**31 - 1 if name == "sample_index" else len(ids)
        if name == "sample_index" or row.get(name) is not None:
            value = row[name]
            if type(value) is not int or not 0 <= value <= limit:
                line.at(name).refuse(f"a whole number in [0, {limit}]")
    if row.get("finish_reason") is not None:
        line.text("finish_reason")
    return row, ids


def _batch(rows: list[dict[str, Any]], ids: "array[int]") -> pa.RecordBatch:
    offsets = np.concatenate(([0], np.cumsum([row["token_ids"] for row in rows])))
    thinking = [row.get("thinking_tokens", row.get("injected_start")) for row in rows]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row["task_id"] for row in rows], pa.string()),
            pa.array([row["sample_index"] for row in rows], pa.int32()),
            id_column(offsets, np.frombuffer(ids, np.int32)),
            pa.array(thinking, pa.int32()),
            pa.array([row.get("finish_reason") for row in rows], pa.string()),
        ],
        schema=MODEL,
    )


def write_jsonl(sink: IO[bytes], batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows, one a line."""
    for batch in batches:
        for row in batch.to_pylist():
            sink.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
