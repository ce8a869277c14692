"""What a manifest says of the rows of a step, recomputed from the file: read as a stream, however long it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gatepost.audit import rows as tables
from gatepost.audit.parquet import read_ahead, read_batches
from gatepost.evidence import Row


class RowSums(NamedTuple):
    """How many rows, how many sampled ids, and the logical digest that binds them."""

    rows: int
    sampled_tokens: int
    rows_digest: str


def sums_of(path: Path) -> RowSums:
    """The sums of a file of rows. Raises ``DataError`` for one that is damaged, or has no page checksums."""
    rows = sampled_tokens = 0

    def counted() -> Iterator[Row]:
        nonlocal rows, sampled_tokens
        for table in read_ahead(read_batches(path, tables.ROWS, "token_ids")):
            for row in tables.rows_of(table, path):
                rows, sampled_tokens = rows + 1, sampled_tokens + row.sampled_tokens
                yield row

    digest = tables.digest_of(counted())
    return RowSums(rows, sampled_tokens, digest)
