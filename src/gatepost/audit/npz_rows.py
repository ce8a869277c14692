"""Rows of the audit as NumPy's ``.npz``: the ids of all rows end to end, and where each row's begin.

    task_id          <U…     one per row
    sample_index     integer, one per row
    token_ids        integer, the ids of all rows, one row after the other
    offsets          integer, one per row and one more: row r is token_ids[offsets[r]:offsets[r + 1]]
    thinking_tokens  integer, one per row, -1 for none; may be missing
    finish_reason    <U…     one per row, "" for none; may be missing

Such as ``numpy.savez`` and ``numpy.savez_compressed`` write. Arrays of other names are not read. Members are read side
by side and piece by piece, so that a packed file of zeros takes no memory; pickled objects are never loaded.
"""

import io
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gatepost.audit.row_model import (
    BATCH_IDS,
    LIMIT,
    MAX_ROW_IDS,
    Batch,
    Place,
    as_numpy,
    checked_rows,
    flat,
    id_column,
)
from gatepost.errors import DataError

ARRAYS = {
    "task_id": "U",
    "sample_index": "iu",
    "token_ids": "iu",
    "offsets": "iu",
    "thinking_tokens": "i",
    "finish_reason": "U",
}
"""Name -> kinds of dtype that it may have."""

OPTIONAL = ("thinking_tokens", "finish_reason")
MAX_TEXT_BYTES = 4 * 1024
"""Of one task id: NumPy makes every text of an array as long as the longest."""

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


class Member:
    """One array of the file, read from front to back."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, name: str) -> None:
        self.path, self.name = path, name
        info = archive.getinfo(f"{name}.npy")
        self._stream = archive.open(info)
        version = np.lib.format.read_magic(self._stream)
        if version not in ((1, 0), (2, 0)):
            raise DataError(f"{path}: array {name}: npy version {version}, expected 1.0 or 2.0")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, self._dtype = read(self._stream)
        if len(shape) != 1 or self._dtype.kind not in ARRAYS[name] or self._dtype.hasobject:
            expected = "text" if ARRAYS[name] == "U" else "whole numbers"
            raise DataError(f"{path}: array {name}: {len(shape)}-D {self._dtype}, expected 1-D {expected}")
        if self._dtype.kind == "U" and self._dtype.itemsize > MAX_TEXT_BYTES:
            raise DataError(f"{path}: array {name}: {self._dtype}, expected texts of at most {MAX_TEXT_BYTES // 4}")
        (self.length,) = shape
        held = info.file_size - self._stream.tell()
        if held != self.length * self._dtype.itemsize:
            raise DataError(f"{path}: array {name}: holds {held} bytes, expected {self.length} of {self._dtype}")

    def read(self, count: int) -> NDArray[Any]:
        """The next so many items."""
        wanted = count * self._dtype.itemsize
        data = self._stream.read(wanted)
        if len(data) != wanted:
            raise DataError(f"{self.path}: array {self.name}: ends early: truncated or damaged")
        return np.frombuffer(data, self._dtype)

    def finish(self) -> None:
        """Read to the end, where the checksum is compared."""
        if self._stream.read(1):
            raise DataError(f"{self.path}: array {self.name}: holds more than it says")


def npz_batches(path: Path, stream: IO[bytes], batch_rows: int) -> Iterator[Batch]:
    """Read rows, some at a time. Raises ``DataError`` for a file that is truncated, damaged or of other arrays."""
    row = 0
    try:
        with zipfile.ZipFile(stream) as archive:
            members = _members(path, archive)
            rows, next_offset = members["sample_index"].length, 0
            if int(members["offsets"].read(1)[0]) != 0:
                raise DataError(f"{path}: array offsets: starts elsewhere, expected at 0")
            while row < rows:
                ends = members["offsets"].read(min(batch_rows, rows - row)).astype(object)
                starts = np.array([next_offset, *ends], dtype=object)
                _require_rising(path, starts, members["token_ids"].length, row)
                for part in _parts(starts.astype(np.int64)):
                    yield _batch(path, members, part, row, rows)
                    row += len(part) - 1
                next_offset = int(starts[-1])
            if next_offset != members["token_ids"].length:
                held = members["token_ids"].length
                raise DataError(f"{path}: array offsets: ends at {next_offset}, expected at {held}, all of token_ids")
            for member in members.values():
                member.finish()
    except DAMAGED as error:
        raise DataError(f"{path}: row {row}: not a readable npz file: {error or type(error).__name__}") from None


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, Member]:
    names = archive.namelist()
    for name in ARRAYS:
        if (count := names.count(f"{name}.npy")) > 1 or (count == 0 and name not in OPTIONAL):
            problem = f"is there {count} times, expected once" if count else "is missing"
            found = ", ".join(name.removesuffix(".npy") for name in names)[:200] or "none"
            raise DataError(f"{path}: array {name}: {problem}; found {found}")
    members = {name: Member(path, archive, name) for name in ARRAYS if f"{name}.npy" in names}
    rows = members["sample_index"].length
    for name, member in members.items():
        expected = rows + 1 if name == "offsets" else rows
        if name != "token_ids" and member.length != expected:
            raise DataError(f"{path}: array {name}: {member.length} long, expected {expected} for {rows} rows")
    return members


def _require_rising(path: Path, starts: NDArray[Any], held: int, row: int) -> None:
    for index, (start, end) in enumerate(pairwise(starts)):
        if not start <= end <= held:
            Place(path, None, row).refuse(index, f"offsets go from {start} to {end}, expected at most {held}, rising")
        if end - start > MAX_ROW_IDS:
            problem = f"token_ids holds {end - start} ids, expected at most {MAX_ROW_IDS}"
            Place(path, None, row).refuse(index, problem)


def _parts(starts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut rows into parts of not too many ids, each of at least one row."""
    first = 0
    while first < len(starts) - 1:
        end = int(np.searchsorted(starts, starts[first] + BATCH_IDS, side="right")) - 1
        end = min(max(end, first + 1), len(starts) - 1)
        yield starts[first : end + 1]
        first = end


def _batch(path: Path, members: dict[str, Member], starts: NDArray[np.int64], row: int, rows: int) -> Batch:
    count, place = len(starts) - 1, Place(path, None, row)
    ids = members["token_ids"].read(int(starts[-1] - starts[0]))
    columns = {
        "task_id": pa.array(members["task_id"].read(count).tolist(), pa.string()),
        "sample_index": pa.array(members["sample_index"].read(count).tolist(), pa.int64()),
        "token_ids": _ids(ids, starts - starts[0], place),
    }
    if "thinking_tokens" in members:
        values = members["thinking_tokens"].read(count).tolist()
        columns["thinking_tokens"] = pa.array([None if value == -1 else value for value in values], pa.int64())
    if "finish_reason" in members:
        columns["finish_reason"] = pa.array([text or None for text in members["finish_reason"].read(count).tolist()])
    read = pa.RecordBatch.from_pydict(columns)
    return Batch(checked_rows(read, place), row, (row + count) / rows)


def _ids(ids: NDArray[Any], starts: NDArray[np.int64], place: Place) -> pa.Array:
    """A column of 32 bit as it is, and of another width as far as it fits."""
    if ids.dtype != np.dtype("<i4") and len(ids):
        bad = np.flatnonzero((ids < 0) | (ids >= LIMIT))
        if len(bad):
            row = int(np.searchsorted(starts, bad[0], side="right")) - 1
            problem = f"token_ids[{bad[0] - starts[row]}] is {ids[bad[0]]}, expected a whole number in [0, {LIMIT})"
            place.refuse(row, problem)
    return id_column(starts, ids)


def write_npz(sink: IO[bytes], batches: Iterable[pa.RecordBatch], folder: Path) -> None:
    """Write rows; the ids wait in a file in ``folder`` until their number is known, which npy says first."""
    task_ids: list[str] = []
    samples: list[int] = []
    thinking: list[int] = []
    reasons: list[str] = []
    offsets = [0]
    with tempfile.TemporaryFile(dir=folder) as spooled, zipfile.ZipFile(sink, "w") as archive:
        for batch in batches:
            starts, ids = flat(batch.column("token_ids"))
            spooled.write(as_numpy(ids).astype("<i4", copy=False).data)
            offsets.extend((offsets[-1] + starts[1:].astype(np.int64)).tolist())
            task_ids += batch.column("task_id").to_pylist()
            samples += batch.column("sample_index").to_pylist()
            thinking += [-1 if value is None else value for value in batch.column("thinking_tokens").to_pylist()]
            reasons += [text or "" for text in batch.column("finish_reason").to_pylist()]
        for name, values in (
            ("task_id", np.array(task_ids, dtype=np.str_)),
            ("sample_index", np.array(samples, dtype=np.int32)),
            ("offsets", np.array(offsets, dtype=np.int64)),
            ("thinking_tokens", np.array(thinking, dtype=np.int32)),
            ("finish_reason", np.array(reasons, dtype=np.str_)),
        ):
            _write_member(archive, name, values.dtype, len(values), io.BytesIO(values.tobytes()))
        spooled.seek(0)
        _write_member(archive, "token_ids", np.dtype("<i4"), offsets[-1], spooled)


def _write_member(archive: zipfile.ZipFile, name: str, dtype: "np.dtype[Any]", length: int, data: IO[bytes]) -> None:
    info = zipfile.ZipInfo(f"{name}.npy")  # of a fixed date, so that the same rows are the same bytes
    with archive.open(info, "w", force_zip64=True) as member:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (length,)}
        np.lib.format.write_array_header_1_0(member, header)
        while chunk := data.read(2**20):
            member.write(chunk)
