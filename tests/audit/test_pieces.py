"""A file in pieces is the file: the same rows under the same numbers, and the same refusals."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from gatepost.audit.pieces import Piece, pieces_of, read_piece
from gatepost.audit.row_files import Format, read_batches
from gatepost.errors import DataError
from tests.audit.faulty_rows import FAULTY, write_pieces
from tests.audit.row_tables import SUFFIXES, mixed_rows

APART = {".parquet": 6, ".arrow": 6}


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(DataError) as refused:
        work()
    return str(refused.value)


def by_pieces(path: Path, format: Format | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
    for piece in pieces_of(path, format):
        for batch in read_piece(piece, format=format, batch_rows=3):
            yield batch.first_row, batch.rows


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pieces_are_the_file(tmp_path: Path, suffix: str) -> None:
    path = write_pieces(tmp_path / f"rows{suffix}")
    pieces, whole = pieces_of(path), [(batch.first_row, batch.rows) for batch in read_batches(path, batch_rows=3)]
    assert len(pieces) == APART.get(suffix, 1)
    assert list(by_pieces(path)) == whole
    assert sum(batch.num_rows for _, batch in whole) == 24
    shares = [piece.done for piece in pieces]
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize("name", FAULTY)
def test_pieces_are_refused_as_the_file_is(tmp_path: Path, name: str) -> None:
    path, format = FAULTY[name](tmp_path)
    by_file = refusal(lambda: list(read_batches(path, format=format, batch_rows=3)))
    assert refusal(lambda: list(by_pieces(path, format))) == by_file


@pytest.mark.parametrize("suffix", APART)
@pytest.mark.parametrize("left", [0, 2])
def test_a_file_that_changed_since_it_was_cut(tmp_path: Path, suffix: str, left: int) -> None:
    path = write_pieces(tmp_path / f"rows{suffix}")
    last = pieces_of(path)[-1]
    path.unlink()
    write_pieces(path, [*[mixed_rows(24).slice(0, 4)] * 5, *[mixed_rows(24).slice(4, left)] * (left > 0)])
    found = refusal(lambda: list(read_piece(last)))
    assert found == f"{path}: piece 5: holds {left} rows, held 4 when the audit began"


def test_what_a_piece_is_called() -> None:
    assert str(Piece(Path("a.npz"))) == "a.npz: all of it"
    assert str(Piece(Path("a.parquet"), 7)) == "a.parquet: piece 7"
