"""The one row model of the audit: which sample, its ids, and little else, whatever file held it.

    task_id          string
    sample_index     int32, from 0
    token_ids        list<int32>, each id in [0, 2^31)
    thinking_tokens  int32 or null: how many of the ids, from the first one, are the thinking; these alone are audited
    finish_reason    string or null

The last two may be missing from a file. ``injected_start``, which the rows of an archive have, stands for a missing
``thinking_tokens``: the ids before a forced close are the thinking. No other column is read: the audit sees no text.
"""

from array import array
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gatepost.errors import DataError
from gatepost.jsonfile import MAX_RECORD_BYTES

IDS = pa.list_(pa.field("element", pa.int32(), nullable=False))

MODEL = pa.schema(
    [
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("sample_index", pa.int32(), nullable=False),
        pa.field("token_ids", IDS, nullable=False),
        pa.field("thinking_tokens", pa.int32()),
        pa.field("finish_reason", pa.string()),
    ]
)
REQUIRED = ("task_id", "sample_index", "token_ids")
COLUMNS = (*MODEL.names, "injected_start")
"""Columns that are read where a file has them."""

LIMIT = 2**31
MAX_ROW_IDS = MAX_RECORD_BYTES // 4
"""A longer row is refused, so that a packed file of nothing but zeros cannot take all memory."""

BATCH_ROWS = 32
"""Rows in memory at once: at 49 152 ids each, 6 MiB."""

BATCH_IDS = 2**21
"""Ids in memory at once, where a format lets a reader choose."""


class Batch(NamedTuple):
    """Some rows of a file, checked.

    Attributes:
        rows: of the row model.
        first_row: index in the file of the first of them.
        done: share of the file that has been read with them, for progress.
    """

    rows: pa.RecordBatch
    first_row: int
    done: float


class Place(NamedTuple):
    """Where rows come from, for messages: a file, its row group or batch if it has such, the index of the first row."""

    path: Path
    part: str | None
    first_row: int

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise ``DataError`` about one of the rows, counted from the first of them."""
        part = f" ({self.part})" if self.part else ""
        raise DataError(f"{self.path}: row {self.first_row + row}{part}: {problem}")


def wanted_columns(path: Path, names: Sequence[str]) -> list[str]:
    """The columns to read of those that a file has. Raises ``DataError`` for one that is missing or comes twice."""
    for name in COLUMNS:
        if names.count(name) > 1:
            raise DataError(f"{path}: column {name}: is there {names.count(name)} times, expected once")
    if missing := [name for name in REQUIRED if name not in names]:
        shown = ", ".join(names)[:200] or "none"
        raise DataError(f"{path}: column {missing[0]} is missing, expected {', '.join(REQUIRED)}; found {shown}")
    return [name for name in names if name in COLUMNS]


def checked_rows(batch: pa.RecordBatch, place: Place) -> pa.RecordBatch:
    """Rows of a file as rows of the model: ids checked as one column, never one by one.

    Raises ``DataError`` naming file, row, column, what was found and what was expected.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise DataError(f"{place.path}: {place.part or 'rows'}: damaged: {str(error).splitlines()[0]}") from None
    missing = partial(pa.nulls, batch.num_rows)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    tokens, lengths = _ids(columns["token_ids"], place)
    thinking = columns.get("thinking_tokens", columns.get("injected_start"))
    return pa.RecordBatch.from_arrays(
        [
            _texts(columns["task_id"], "task_id", place, required=True),
            _counts(columns["sample_index"], "sample_index", place, required=True),
            tokens,
            missing(pa.int32()) if thinking is None else _counts(thinking, "thinking_tokens", place, at_most=lengths),
            _texts(columns.get("finish_reason", missing(pa.string())), "finish_reason", place),
        ],
        schema=MODEL,
    )


def _ids(lists: pa.Array, place: Place) -> tuple[pa.Array, NDArray[Any]]:
    """The column of ids, and how many each row has."""
    kind = lists.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not pa.types.is_integer(kind.value_type):
        place.refuse(0, f"column token_ids is of {kind}, expected list<int32>")
    _refuse_nulls(lists, "token_ids", place)
    offsets, values = flat(lists)
    if values.null_count:
        position = values.is_null().to_pylist().index(True)
        _refuse_id(offsets, position, None, place)
    ids = as_numpy(values)
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= LIMIT):
        position = int(np.flatnonzero((ids < 0) | (ids >= LIMIT))[0])
        _refuse_id(offsets, position, int(ids[position]), place)
    lengths = np.diff(offsets)
    if len(lengths) and int(lengths.max()) > MAX_ROW_IDS:
        row = int(lengths.argmax())
        place.refuse(row, f"token_ids holds {lengths[row]} ids, expected at most {MAX_ROW_IDS}")
    return id_column(offsets, ids), lengths


def id_column(offsets: NDArray[Any], ids: NDArray[Any]) -> pa.Array:
    """A column of ids from the place of each row's first one (and of the end) and all ids."""
    return pa.ListArray.from_arrays(_int32(offsets), _int32(ids), type=IDS)


def _int32(values: NDArray[Any]) -> pa.Array:
    data = np.ascontiguousarray(values, np.int32)
    return pa.Array.from_buffers(pa.int32(), len(data), [None, pa.py_buffer(data)])


def flat(lists: pa.Array) -> tuple[NDArray[Any], pa.Array]:
    """A column of lists without nulls: the place of each row's first item (and of the end), and all items."""
    if pa.types.is_fixed_size_list(lists.type):
        size = lists.type.list_size
        return np.arange(len(lists) + 1) * size, lists.values.slice(lists.offset * size, len(lists) * size)
    offsets = as_numpy(lists.offsets)
    first, end = int(offsets[0]), int(offsets[-1])
    return offsets - first, lists.values.slice(first, end - first)


def token_count(rows: pa.RecordBatch) -> int:
    """Ids in rows of the model."""
    return len(flat(rows.column("token_ids"))[1])


def as_numpy(column: pa.Array) -> NDArray[Any]:
    """Whole numbers without nulls, not copied. (pyarrow's own way imports pandas where that is installed.)"""
    dtype = np.dtype(str(column.type))
    buffer = column.buffers()[1]
    if buffer is None:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, len(column), column.offset * dtype.itemsize)


def _refuse_id(offsets: NDArray[Any], position: int, found: object, place: Place) -> NoReturn:
    row = int(np.searchsorted(offsets, position, side="right")) - 1
    shown = "null" if found is None else found
    place.refuse(row, f"token_ids[{position - int(offsets[row])}] is {shown}, expected a whole number in [0, {LIMIT})")


def _refuse_nulls(column: pa.Array, name: str, place: Place) -> None:
    if column.null_count:
        place.refuse(column.is_null().to_pylist().index(True), f"column {name} is null, expected a value in every row")


def _texts(column: pa.Array, name: str, place: Place, *, required: bool = False) -> pa.Array:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        place.refuse(0, f"column {name} is of {column.type}, expected string")
    texts = column if pa.types.is_string(column.type) else column.cast(pa.string())
    if required:
        _refuse_nulls(texts, name, place)
    if "" in (plain := texts.to_pylist()):
        place.refuse(plain.index(""), f"column {name} is empty, expected text")
    return texts


def _counts(
    column: pa.Array, name: str, place: Place, *, required: bool = False, at_most: NDArray[Any] | None = None
) -> pa.Array:
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        place.refuse(0, f"column {name} is of {column.type}, expected int32")
    if required:
        _refuse_nulls(column, name, place)
    limits = [LIMIT - 1] * len(column) if at_most is None else at_most.tolist()
    values = column.to_pylist()
    for row, (value, limit) in enumerate(zip(values, limits, strict=True)):
        if value is not None and not 0 <= value <= limit:
            place.refuse(row, f"{name} is {value}, expected a whole number in [0, {limit}]")
    return pa.array(values, pa.int32())


def id_list(values: object, where: str) -> "array[int]":
    """A Python list of ids as four bytes an id: no Python code runs for an id of a good list.

    Raises ``DataError`` naming ``where``, the index and what was found: a bool, a float, text, a negative number or one
    past 2^31.
    """
    if not isinstance(values, list):
        raise DataError(f"{where} is {str(values)[:60]!r}, expected a list of whole numbers")
    if len(values) > MAX_ROW_IDS:
        raise DataError(f"{where} holds {len(values)} ids, expected at most {MAX_ROW_IDS}")
    if set(map(type, values)) <= {int}:
        try:
            ids = array("i", values)
        except OverflowError:
            ids = None
        if ids is not None and (not values or min(values) >= 0):
            return ids
    position = next(index for index, value in enumerate(values) if type(value) is not int or not 0 <= value < LIMIT)
    shown = str(values[position])[:40]
    raise DataError(f"{where}[{position}] is {shown}, expected a whole number in [0, {LIMIT})")
