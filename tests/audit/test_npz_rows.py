"""Rows as NumPy keeps them: as ``numpy.savez`` writes, and nothing else; packed zeros take no memory."""

import io
import subprocess
import sys
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatepost.audit.row_files import read_batches, write_batches
from gatepost.audit.row_model import BATCH_IDS, MAX_ROW_IDS
from gatepost.errors import DataError
from tests.audit.row_tables import mixed_rows, read, rows_of

ARRAYS: dict[str, Any] = {
    "task_id": np.array(["a", "b"]),
    "sample_index": np.array([0, 1]),
    "token_ids": np.array([5, 7, 9]),
    "offsets": np.array([0, 1, 3]),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["<i4", ">i4", "<i8", "<u2", "<u8"])
def test_what_numpy_writes(tmp_path: Path, save: Any, dtype: str) -> None:
    optional = {
        "thinking_tokens": np.array([-1, 2]),
        "finish_reason": np.array(["", "length"]),
        "text": np.array(["x"]),
    }
    save(tmp_path / "rows.npz", **{**ARRAYS, "token_ids": ARRAYS["token_ids"].astype(dtype), **optional})
    assert read(tmp_path / "rows.npz").to_pylist() == [
        {"task_id": "a", "sample_index": 0, "token_ids": [5], "thinking_tokens": None, "finish_reason": None},
        {"task_id": "b", "sample_index": 1, "token_ids": [7, 9], "thinking_tokens": 2, "finish_reason": "length"},
    ]


def test_numpy_reads_what_is_written(tmp_path: Path) -> None:
    rows = mixed_rows(6)
    write_batches(tmp_path / "rows.npz", [rows])
    with np.load(tmp_path / "rows.npz", allow_pickle=False) as arrays:
        offsets, ids = arrays["offsets"], arrays["token_ids"]
        assert [ids[start:end].tolist() for start, end in pairwise(offsets)] == rows.column("token_ids").to_pylist()
        assert arrays["task_id"].tolist() == rows.column("task_id").to_pylist()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"token_ids": None}, r"array token_ids: is missing; found task_id, sample_index, offsets"),
        ({"offsets": None}, r"array offsets: is missing"),
        ({"token_ids": np.array([5, 7, -9])}, r"row 1: token_ids\[1\] is -9, expected a whole number in \[0, 214"),
        ({"token_ids": np.array([5, 2**31, 9])}, r"row 1: token_ids\[0\] is 2147483648, expected"),
        ({"token_ids": np.array([5, -7, 9], np.int32)}, r"row 1: token_ids\[0\] is -7, expected"),
        ({"token_ids": np.array([5.0, 7, 9])}, r"array token_ids: 1-D float64, expected 1-D whole numbers"),
        ({"token_ids": np.array([True, True, False])}, r"array token_ids: 1-D bool, expected 1-D whole numbers"),
        ({"token_ids": np.array([[5, 7, 9]])}, r"array token_ids: 2-D int64, expected 1-D"),
        ({"token_ids": np.array([5, 7, 9], object)}, r"array token_ids: 1-D object, expected 1-D whole numbers"),
        ({"task_id": np.array(["a", "b"], object)}, r"array task_id: 1-D object, expected 1-D text"),
        ({"task_id": np.array([1, 2])}, r"array task_id: 1-D int64, expected 1-D text"),
        ({"task_id": np.array(["a", ""])}, r"row 1: column task_id is empty"),
        ({"task_id": np.array(["a", "b" * 1025])}, r"array task_id: <U1025, expected texts of at most 1024"),
        ({"task_id": np.array(["a"])}, r"array task_id: 1 long, expected 2 for 2 rows"),
        ({"sample_index": np.array([0, -1])}, r"row 1: sample_index is -1"),
        ({"offsets": np.array([0, 1])}, r"array offsets: 2 long, expected 3 for 2 rows"),
        ({"offsets": np.array([1, 1, 3])}, r"array offsets: starts elsewhere, expected at 0"),
        ({"offsets": np.array([0, 2, 1])}, r"row 1: offsets go from 2 to 1, expected at most 3, rising"),
        ({"offsets": np.array([0, 1, 4])}, r"row 1: offsets go from 1 to 4, expected at most 3"),
        ({"offsets": np.array([0, 1, 2])}, r"array offsets: ends at 2, expected at 3, all of token_ids"),
        ({"offsets": np.array([0, 2**63, 3], np.uint64)}, r"row 0: offsets go from 0 to 9223372036854775808"),
        ({"thinking_tokens": np.array([1, 3])}, r"row 1: thinking_tokens is 3, expected a whole number in \[0, 2\]"),
        ({"thinking_tokens": np.array([1, -2])}, r"row 1: thinking_tokens is -2, expected"),
    ],
)
def test_other_arrays(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    kept = {name: array for name, array in {**ARRAYS, **arrays}.items() if array is not None}
    np.savez(tmp_path / "rows.npz", **kept)
    with pytest.raises(DataError, match=f"rows.npz: {message}"):
        read(tmp_path / "rows.npz")


def npy(array: "np.ndarray[Any, Any]") -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("offsets.npy", npy(ARRAYS["offsets"])[:-1], r"array offsets: holds 23 bytes, expected 3 of int64"),
        ("offsets.npy", npy(ARRAYS["offsets"]) + b"\0", r"array offsets: holds 25 bytes, expected 3 of int64"),
        ("offsets.npy", b"\x93NUMPY\x03\x00", r"array offsets: npy version \(3, 0\), expected 1.0 or 2.0"),
        ("offsets.npy", b"not an array", r"row 0: not a readable npz file: .*magic"),
        ("offsets.npy", b"", r"row 0: not a readable npz file"),
        ("token_ids.npy", npy(ARRAYS["token_ids"]), r"array token_ids: is there 2 times, expected once"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_are_no_arrays(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        for own, array in ARRAYS.items():
            if f"{own}.npy" != name or own == "token_ids":
                archive.writestr(f"{own}.npy", npy(array))
        archive.writestr(name, data)
    with pytest.raises(DataError, match=f"rows.npz: {message}"):
        read(tmp_path / "rows.npz")


def test_an_encrypted_member(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", **ARRAYS)
    data = bytearray((tmp_path / "rows.npz").read_bytes())
    for mark, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        position = data.index(mark)
        data[position + flags] |= 1
    (tmp_path / "rows.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"rows.npz: row 0: not a readable npz file: .*encrypted"):
        read(tmp_path / "rows.npz")


def save_zeros(path: Path, offsets: "list[int]") -> None:
    keys = {
        "task_id": np.array([f"t{n}" for n in range(len(offsets) - 1)]),
        "sample_index": np.zeros(len(offsets) - 1, int),
    }
    np.savez_compressed(path, **keys, offsets=np.array(offsets), token_ids=np.zeros(offsets[-1], np.int32))


def test_batches_are_cut_by_ids_too(tmp_path: Path) -> None:
    save_zeros(tmp_path / "rows.npz", [0, 1, BATCH_IDS, 2 * BATCH_IDS + 1, 2 * BATCH_IDS + 2])
    assert [batch.rows.num_rows for batch in read_batches(tmp_path / "rows.npz")] == [2, 1, 1]


@pytest.mark.parametrize(("ids", "fits"), [(MAX_ROW_IDS, True), (MAX_ROW_IDS + 1, False)])
def test_the_longest_row(tmp_path: Path, ids: int, fits: bool) -> None:
    save_zeros(tmp_path / "rows.npz", [0, ids])
    if fits:
        assert read(tmp_path / "rows.npz").num_rows == 1
        return
    with pytest.raises(DataError, match=rf"rows.npz: row 0: token_ids holds {ids} ids, expected at most {MAX_ROW_IDS}"):
        read(tmp_path / "rows.npz")


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the peak of memory")
def test_packed_zeros_take_no_memory(tmp_path: Path) -> None:
    """400 MB of ids in half a megabyte, read by a process that never holds 200 MiB."""
    save_zeros(tmp_path / "rows.npz", [number * 100_000 for number in range(1001)])
    assert (tmp_path / "rows.npz").stat().st_size < 2**20
    code = (
        "import sys, pathlib\n"
        "from gatepost.audit import read_batches\n"
        "rows = sum(batch.rows.num_rows for batch in read_batches(pathlib.Path(sys.argv[1])))\n"
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(rows, status.partition('VmHWM:')[2].split()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "rows.npz")], check=True, capture_output=True, text=True
    )
    rows, peak_kib = map(int, done.stdout.split())
    assert rows == 1000
    assert peak_kib < 200 * 1024


def test_rows_of_no_ids(tmp_path: Path) -> None:
    write_batches(tmp_path / "rows.npz", [rows_of([[], []])])
    assert read(tmp_path / "rows.npz").column("token_ids").to_pylist() == [[], []]
