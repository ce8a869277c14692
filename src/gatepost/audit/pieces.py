"""Row files in pieces that can be read apart from one another, each by another process or machine."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import IO, NamedTuple

from gatepost.audit.columnar import ARROW_FILE, arrow_file, parquet_file, record_batch, row_group
from gatepost.audit.row_files import Format, open_rows, read_batches
from gatepost.audit.row_model import BATCH_ROWS, Batch
from gatepost.errors import DataError


class Piece(NamedTuple):
    """A part of a file that is read alone.

    Attributes:
        path: the file.
        part: number of the row group of Parquet, or of the record batch of an Arrow file; ``None`` for all of the file.
        first_row: index in the file of its first row.
        rows: how many it holds; ``None`` where only reading will tell.
        done: share of the file that has been read with it and those before it, for progress.
    """

    path: Path
    part: int | None = None
    first_row: int = 0
    rows: int | None = None
    done: float = 1.0

    def __str__(self) -> str:
        return f"{self.path}: {'all of it' if self.part is None else f'piece {self.part}'}"


def pieces_of(path: Path, format: Format | None = None) -> list[Piece]:
    """Cut a file at its row groups (Parquet) or record batches (Arrow file), by what its footer says of them.

    Other formats are read from front to back, so all of such a file is one piece. So is a file that cannot be cut
    because it is damaged: whoever reads it says why.
    """
    try:
        with open_rows(path, format) as (kind, stream):
            counts = _row_counts(path, kind, stream)
    except DataError:
        counts = []
    if not sum(counts):
        return [Piece(path)]
    ends = list(accumulate(counts))
    return [
        Piece(path, part, end - count, count, end / ends[-1])
        for part, (count, end) in enumerate(zip(counts, ends, strict=True))
    ]


def _row_counts(path: Path, kind: Format, stream: IO[bytes]) -> list[int]:
    """Rows of each piece; none where the file has no pieces."""
    if kind == "parquet":
        footer = parquet_file(path, stream).metadata
        counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        return counts if sum(counts) == footer.num_rows else []
    if kind == "arrow" and stream.read(len(ARROW_FILE)) == ARROW_FILE:
        read, count = arrow_file(path, stream, ("sample_index",))  # of each batch four bytes a row
        return [read(number).num_rows for number in range(count)]
    return []


def read_piece(piece: Piece, *, format: Format | None = None, batch_rows: int = BATCH_ROWS) -> Iterator[Batch]:
    """Read a piece, some rows at a time: the batches that ``read_batches`` gives of it, and the errors it raises."""
    path, part, first_row, rows, _ = piece
    if part is None:
        yield from read_batches(path, format=format, batch_rows=batch_rows)
        return
    end = first_row
    with open_rows(path, format) as (kind, stream):
        for batch in _part(path, kind, stream, part, first_row, batch_rows):
            yield batch
            end += batch.rows.num_rows
    if end - first_row != rows:
        raise DataError(f"{piece}: holds {end - first_row} rows, held {rows} when the audit began")


def _part(path: Path, kind: Format, stream: IO[bytes], part: int, first_row: int, batch_rows: int) -> Iterator[Batch]:
    if kind == "parquet":
        parquet = parquet_file(path, stream)
        if part < parquet.num_row_groups:
            yield from row_group(path, parquet, part, first_row, batch_rows)
    else:
        read, count = arrow_file(path, stream)
        if part < count:
            yield from record_batch(path, part, read(part), first_row, batch_rows, lambda share: share)
