"""Small tables of rows for readers, writers and the command."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from gatepost.audit.row_files import read_batches
from gatepost.audit.row_model import MODEL, id_column
from tests.audit.traces import loop, text

SUFFIXES = (".parquet", ".arrow", ".arrows", ".npz", ".jsonl")


def rows_of(
    ids: Sequence[Sequence[int] | np.ndarray],
    *,
    thinking_tokens: Sequence[int | None] | None = None,
    finish_reason: Sequence[str | None] | None = None,
) -> pa.RecordBatch:
    """Rows of the model, three samples a task."""
    count = len(ids)
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in ids], dtype=np.int64)))
    flat = np.concatenate([np.asarray(row, np.int32) for row in ids]) if count else np.empty(0, np.int32)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([f"task-{number // 3}" for number in range(count)], pa.string()),
            pa.array([number % 3 for number in range(count)], pa.int32()),
            id_column(offsets, flat),
            pa.array(thinking_tokens or [None] * count, pa.int32()),
            pa.array(finish_reason or [None] * count, pa.string()),
        ],
        schema=MODEL,
    )


@cache
def mixed_rows(count: int = 12, *, tokens: int = 600, seed: int = 7) -> pa.RecordBatch:
    """Texts and loops in turn, some with thinking before a text, some with a reason why they ended."""
    rng = np.random.default_rng(seed)
    ids = [
        text(rng, tokens) if number % 3 == 0 else loop(rng, tokens, period=5 + number, before=100)
        for number in range(count)
    ]
    thinking = [tokens // 2 if number % 4 == 1 else None for number in range(count)]
    reasons = ["length" if number % 2 else None for number in range(count)]
    return rows_of(ids, thinking_tokens=thinking, finish_reason=reasons)


def read(path: Path, *, batch_rows: int = 32) -> pa.Table:
    """All rows of a file."""
    return pa.Table.from_batches([batch.rows for batch in read_batches(path, batch_rows=batch_rows)], schema=MODEL)
