"""Row files: what is written is what is read, whatever the format; what is another thing is refused by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatepost.audit.row_files import read_batches, write_batches
from gatepost.audit.row_model import MODEL
from gatepost.errors import DataError, IntegrityError
from tests.audit.row_tables import SUFFIXES, mixed_rows, read, rows_of


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("batch_rows", [1, 5, 32])
def test_what_is_written_is_what_is_read(tmp_path: Path, suffix: str, batch_rows: int) -> None:
    rows, path = mixed_rows(12), tmp_path / f"rows{suffix}"
    write_batches(path, [rows.slice(0, 5), rows.slice(5, 7)])
    assert read(path, batch_rows=batch_rows).equals(pa.Table.from_batches([rows]))
    batches = list(read_batches(path, batch_rows=batch_rows))
    assert all(batch.rows.num_rows <= batch_rows for batch in batches)
    firsts = np.cumsum([0, *(batch.rows.num_rows for batch in batches[:-1])]).tolist()
    assert [batch.first_row for batch in batches] == firsts
    done = [batch.done for batch in batches]
    assert done == sorted(done)
    assert 0.99 < done[-1] <= 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_rows_are_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for name in ("one", "two"):
        write_batches(tmp_path / f"{name}{suffix}", [mixed_rows(6)])
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_format_is_known_by_its_bytes(tmp_path: Path, suffix: str) -> None:
    write_batches(tmp_path / f"rows{suffix}", [mixed_rows(3)])
    path = (tmp_path / f"rows{suffix}").rename(tmp_path / "rows.bin")
    assert read(path).num_rows == 3


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_extremes(tmp_path: Path, suffix: str) -> None:
    rows = rows_of([[], [0], [2**31 - 1] * 3], thinking_tokens=[0, 1, 3], finish_reason=["length", None, "stop"])
    write_batches(tmp_path / f"rows{suffix}", [rows])
    assert read(tmp_path / f"rows{suffix}").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_is_overwritten_and_nothing_is_left_over(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    path.write_text("kept")
    with pytest.raises(IntegrityError, match=f"rows{suffix}: exists already"):
        write_batches(path, [mixed_rows(3)])

    def break_off() -> Any:
        yield mixed_rows(3)
        raise DataError("the source broke off")

    with pytest.raises(DataError, match="broke off"):
        write_batches(tmp_path / f"other{suffix}", break_off())
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "kept"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_row_is_written_that_could_not_be_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    with pytest.raises(DataError, match=rf"rows{suffix}: row 4 \(to write\): token_ids\[1\] is -1, expected"):
        write_batches(path, [mixed_rows(3), rows_of([[1], [1, -1]])])
    assert not path.exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_file(tmp_path: Path, suffix: str, share: float) -> None:
    write_batches(tmp_path / f"rows{suffix}", [mixed_rows(30).slice(start, 10) for start in (0, 10, 20)])
    data = (tmp_path / f"rows{suffix}").read_bytes()
    cut = tmp_path / f"cut{suffix}"
    cut.write_bytes(data[: int(share * len(data))])
    with pytest.raises(DataError, match=rf"cut{suffix}"):
        read(cut)


def test_a_stream_that_ends_between_batches(tmp_path: Path) -> None:
    write_batches(tmp_path / "rows.arrows", [mixed_rows(3), mixed_rows(3)])
    data = (tmp_path / "rows.arrows").read_bytes()
    (tmp_path / "cut.arrows").write_bytes(data[:-8])
    with pytest.raises(DataError, match=rf"cut.arrows: batch 2: ends at byte {len(data) - 8} without the mark"):
        read(tmp_path / "cut.arrows")
    (tmp_path / "two.arrows").write_bytes(data + data)
    with pytest.raises(DataError, match=rf"two.arrows: goes on after the end of its stream at byte {len(data)}"):
        read(tmp_path / "two.arrows")


@pytest.mark.parametrize(
    ("suffix", "where"),
    [(".parquet", r"rows.parquet: row group 0, from row 0 on: .*CRC"), (".npz", r"rows.npz: row \d+: .*CRC-32")],
)
def test_a_flipped_bit_where_a_format_has_checksums(tmp_path: Path, suffix: str, where: str) -> None:
    rows = rows_of([np.random.default_rng(1).integers(0, 2**31, 20_000, dtype=np.int32)])
    write_batches(tmp_path / f"rows{suffix}", [rows])
    data = bytearray((tmp_path / f"rows{suffix}").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / f"rows{suffix}").write_bytes(data)
    with pytest.raises(DataError, match=where):
        read(tmp_path / f"rows{suffix}")


PLAIN: dict[str, Any] = {"task_id": ["a", "b"], "sample_index": [0, 1], "token_ids": [[1], [2, 3]]}
IDS64 = pa.list_(pa.int64())
COLUMNS: list[tuple[str, pa.Array, str]] = [
    (
        "token_ids",
        pa.array([[1], [2, -3]], IDS64),
        r"row 1 .*token_ids\[1\] is -3, expected a whole number in \[0, 214",
    ),
    ("token_ids", pa.array([[1], [2**31]], IDS64), r"row 1 .*token_ids\[0\] is 2147483648, expected"),
    ("token_ids", pa.array([[1], [2, None]], IDS64), r"row 1 .*token_ids\[1\] is null, expected"),
    ("token_ids", pa.array([[1], None], IDS64), r"row 1 .*column token_ids is null, expected a value"),
    ("token_ids", pa.array([[1.0], [2.0]]), r"row 0 .*column token_ids is of list<.*double>, expected list<int32>"),
    ("token_ids", pa.array([[True], [False]]), r"row 0 .*column token_ids is of list<.*bool>, expected list<int32>"),
    ("token_ids", pa.array(["1", "2"]), r"row 0 .*column token_ids is of string, expected list<int32>"),
    ("sample_index", pa.array([0, -1]), r"row 1 .*sample_index is -1, expected a whole number in \[0, 2147483647\]"),
    ("sample_index", pa.array([0, None]), r"row 1 .*column sample_index is null"),
    ("sample_index", pa.array([0.0, 1.0]), r"row 0 .*column sample_index is of double, expected int32"),
    ("sample_index", pa.array([True, False]), r"row 0 .*column sample_index is of bool, expected int32"),
    ("task_id", pa.array(["a", ""]), r"row 1 .*column task_id is empty, expected text"),
    ("task_id", pa.array(["a", None]), r"row 1 .*column task_id is null"),
    ("task_id", pa.array([1, 2]), r"row 0 .*column task_id is of int64, expected string"),
    ("thinking_tokens", pa.array([1, 3]), r"row 1 .*thinking_tokens is 3, expected a whole number in \[0, 2\]"),
    ("thinking_tokens", pa.array([-1, None]), r"row 0 .*thinking_tokens is -1, expected"),
    ("thinking_tokens", pa.array([1.0, 2.0]), r"row 0 .*column thinking_tokens is of double, expected int32"),
    ("injected_start", pa.array([None, 3]), r"row 1 .*thinking_tokens is 3, expected"),
    ("finish_reason", pa.array([None, ""]), r"row 1 .*column finish_reason is empty"),
    ("finish_reason", pa.array([1, 2]), r"row 0 .*column finish_reason is of int64, expected string"),
]


def write_parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path)


def write_arrow(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_arrow_stream(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


WRITERS = [write_parquet, write_arrow, write_arrow_stream]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("name", "column", "message"), COLUMNS)
def test_a_column_of_another_kind(
    tmp_path: Path, write: Callable[[Path, pa.Table], None], name: str, column: pa.Array, message: str
) -> None:
    write(tmp_path / "rows", pa.table({**PLAIN, name: column}))
    with pytest.raises(DataError, match=f"rows: {message}"):
        read(tmp_path / "rows")


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    "ids",
    [
        pa.array([[1], [2, 3]], pa.list_(pa.uint8())),
        pa.array([[1], [2, 3]], pa.list_(pa.uint64())),
        pa.array([[1], [2, 3]], pa.large_list(pa.int16())),
        pa.array([[1], [2, 3]], pa.list_(pa.int32())),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_any_width_that_fit(tmp_path: Path, write: Callable[[Path, pa.Table], None], ids: pa.Array) -> None:
    texts = pa.array(["a", "b"]).dictionary_encode()
    write(tmp_path / "rows", pa.table({**PLAIN, "token_ids": ids, "task_id": texts, "answer": ["not", "read"]}))
    found = read(tmp_path / "rows")
    assert found.schema == MODEL
    expected = {**PLAIN, "thinking_tokens": [None] * 2, "finish_reason": [None] * 2}
    assert found.to_pydict() == expected


def test_ids_in_lists_of_one_length(tmp_path: Path) -> None:
    ids = pa.array([[9, 9], [1, 4], [2, 3]], pa.list_(pa.int64(), 2)).slice(1)
    write_arrow(tmp_path / "rows", pa.table({**PLAIN, "token_ids": ids}))
    assert read(tmp_path / "rows").column("token_ids").to_pylist() == [[1, 4], [2, 3]]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("missing", ["task_id", "sample_index", "token_ids"])
def test_a_missing_column(tmp_path: Path, write: Callable[[Path, pa.Table], None], missing: str) -> None:
    write(tmp_path / "rows", pa.table({name: values for name, values in PLAIN.items() if name != missing}))
    with pytest.raises(
        DataError, match=rf"rows: column {missing} is missing, expected task_id, sample_index, token_ids"
    ):
        read(tmp_path / "rows")


@pytest.mark.parametrize("write", WRITERS)
def test_a_column_twice(tmp_path: Path, write: Callable[[Path, pa.Table], None]) -> None:
    names = [*PLAIN, "token_ids"]
    write(tmp_path / "rows", pa.Table.from_arrays([pa.array(PLAIN[name]) for name in names], names=names))
    with pytest.raises(DataError, match=r"rows: column token_ids: is there 2 times, expected once"):
        read(tmp_path / "rows")


@pytest.mark.parametrize("write", WRITERS)
def test_the_offset_of_a_bad_row_far_in(tmp_path: Path, write: Callable[[Path, pa.Table], None]) -> None:
    ids = [[1]] * 100
    ids[77] = [1, -1]
    keys = {"task_id": [f"t{number}" for number in range(100)], "sample_index": [0] * 100}
    write(tmp_path / "rows", pa.table({**keys, "token_ids": pa.array(ids, IDS64)}))
    with pytest.raises(DataError, match=r"rows: row 77 \((row group|batch) 0\): token_ids\[1\] is -1"):
        read(tmp_path / "rows", batch_rows=10)


def test_no_rows(tmp_path: Path) -> None:
    for write in WRITERS:
        write(tmp_path / "rows", pa.table(MODEL.empty_table()))
        with pytest.raises(DataError, match=r"rows: holds no rows"):
            read(tmp_path / "rows")


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "is empty"), (b"task_id,ids\n", r"begins with b'task', expected Parquet, Arrow IPC")]
)
def test_a_file_of_no_known_format(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "rows").write_bytes(data)
    with pytest.raises(DataError, match=f"rows: {message}"):
        read(tmp_path / "rows")


def test_what_is_no_file(tmp_path: Path) -> None:
    write_batches(tmp_path / "rows.npz", [mixed_rows(3)])
    (tmp_path / "link").symlink_to(tmp_path / "rows.npz")
    for path, message in (
        (tmp_path / "link", "is a symbolic link"),
        (tmp_path, "is not a regular file"),
        (tmp_path / "none", "does not exist"),
    ):
        with pytest.raises(DataError, match=message):
            read(path)
