"""Files of six pieces of four rows, whole and with every kind of fault that a reader refuses."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gatepost.audit import write_batches
from gatepost.audit.row_files import Format
from tests.audit.row_tables import mixed_rows

PIECE_ROWS = 4
Fault = Callable[[Path], tuple[Path, Format | None]]
"""Writes a file into a folder; what it is to be read as."""


def six_pieces() -> list[pa.RecordBatch]:
    return [mixed_rows(24).slice(start, PIECE_ROWS) for start in range(0, 24, PIECE_ROWS)]


def write_pieces(path: Path, batches: Sequence[pa.RecordBatch] | None = None) -> Path:
    """Each batch as a row group or record batch of its own, unchecked; other formats as gatepost writes them."""
    batches = six_pieces() if batches is None else batches
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, batches[0].schema, compression="none", write_page_checksum=True) as writer:
            for batch in batches:
                writer.write_batch(batch)
    elif path.suffix in (".arrow", ".arrows"):
        new = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        with new(path, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    else:
        write_batches(path, batches)
    return path


def _negative_id(path: Path) -> tuple[Path, None]:
    """In row 14: the third of the fourth piece."""
    pieces = six_pieces()
    rows = pieces[3].to_pylist()
    rows[2]["token_ids"][7] = -1
    pieces[3] = pa.RecordBatch.from_pylist(rows, schema=pieces[3].schema)
    return write_pieces(path, pieces), None


def _changed(path: Path, change: Callable[[bytes], bytes]) -> tuple[Path, None]:
    path.write_bytes(change(write_pieces(path).read_bytes()))
    return path, None


def _flip_in_row_group_4(data: bytes) -> bytes:
    """A bit in the middle of the ids, which a page checksum tells."""
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(4).column(2)
    assert column.path_in_schema.startswith("token_ids")
    place = column.dictionary_page_offset or column.data_page_offset
    place += column.total_compressed_size // 2
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def _flip_in_batch_2(data: bytes) -> bytes:
    """The type of a message, behind which nothing of the batch can be read."""
    starts = [place for place in range(0, len(data), 8) if data[place : place + 4] == b"\xff\xff\xff\xff"]
    place = starts[3]  # the schema is the first message
    return data[: place + 4] + b"\0\0\0\x7f" + data[place + 8 :]


def _no_rows(path: Path) -> tuple[Path, None]:
    return write_pieces(path, [mixed_rows(24).slice(0, 0)]), None


def _bad_line(path: Path) -> tuple[Path, None]:
    lines = write_pieces(path).read_text().splitlines()
    lines[17] = lines[17].replace('"sample_index": ', '"sample_index": -')
    path.write_text("\n".join(lines) + "\n")
    return path, None


def _other_column(path: Path) -> tuple[Path, None]:
    pieces = [batch.rename_columns(["task_id", "sample", *batch.schema.names[2:]]) for batch in six_pieces()]
    return write_pieces(path, pieces), None


def _link(path: Path) -> tuple[Path, None]:
    path.symlink_to(write_pieces(path.with_name("other.parquet")))
    return path, None


def _empty(path: Path) -> tuple[Path, None]:
    path.touch()
    return path, None


FAULTY: dict[str, Fault] = {
    "negative id, parquet": lambda folder: _negative_id(folder / "rows.parquet"),
    "negative id, arrow": lambda folder: _negative_id(folder / "rows.arrow"),
    "negative id, arrow stream": lambda folder: _negative_id(folder / "rows.arrows"),
    "page checksum": lambda folder: _changed(folder / "rows.parquet", _flip_in_row_group_4),
    "batch damaged": lambda folder: _changed(folder / "rows.arrow", _flip_in_batch_2),
    "cut off, parquet": lambda folder: _changed(folder / "rows.parquet", lambda data: data[:-100]),
    "cut off, arrow": lambda folder: _changed(folder / "rows.arrow", lambda data: data[: len(data) // 2]),
    "cut off, arrow stream": lambda folder: _changed(folder / "rows.arrows", lambda data: data[: len(data) // 2]),
    "cut off, npz": lambda folder: _changed(folder / "rows.npz", lambda data: data[: len(data) // 2]),
    "bad line": lambda folder: _bad_line(folder / "rows.jsonl"),
    "other column, parquet": lambda folder: _other_column(folder / "rows.parquet"),
    "other column, arrow": lambda folder: _other_column(folder / "rows.arrow"),
    "no rows, parquet": lambda folder: _no_rows(folder / "rows.parquet"),
    "no rows, arrow": lambda folder: _no_rows(folder / "rows.arrow"),
    "empty": lambda folder: _empty(folder / "rows.parquet"),
    "absent": lambda folder: (folder / "rows.parquet", None),
    "link": lambda folder: _link(folder / "rows.parquet"),
    "other format": lambda folder: (write_pieces(folder / "rows.arrow"), "parquet"),
    "unknown format": lambda folder: _changed(folder / "rows.parquet", lambda data: b"....." + data),
}
