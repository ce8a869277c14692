"""``counts.parquet``: what of each sample is a count or a fact, and small enough to stay where ids and text do not.

Lengths, seeds, finish reasons, and where thinking began and ended, as ``take_apart`` finds it: a gate that asks no more
is judged by these alone. Where the rows are at hand, counts have to be theirs.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from gatepost import jsonfile
from gatepost.absence import Unread
from gatepost.audit.parquet import read_table, write_table
from gatepost.audit.rows import ROWS
from gatepost.errors import DataError
from gatepost.fingerprint import RowKey
from gatepost.record import Row, Sample
from gatepost.thinking import Block, Continuation, Ending

OF_ROWS = [column for column in ROWS if column.name not in ("token_ids", "forward_input_lengths")]
"""What a row is besides its ids, each column under its own name."""

_PLAIN = [column.name for column in OF_ROWS if column.name not in (*RowKey._fields, "claims")]
_FOUND = ("close_step", "orphan_closes", "reopened", "nested_opens", "prompt_open")

COUNTS = pa.schema(
    [
        *OF_ROWS,
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("forward_calls", pa.int32()),
        pa.field("ending", pa.string(), nullable=False),
        pa.field("block_tokens", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("last_block_closed", pa.bool_()),
        pa.field("close_step", pa.int32()),
        pa.field("answer_tokens", pa.int32()),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("orphan_closes", "reopened", "nested_opens")),
        pa.field("prompt_open", pa.bool_(), nullable=False),
    ]
)
"""Tokens and forward calls are lengths of the lists that are left out. Of blocks, all but the last are closed."""


def write_counts(path: Path, samples: Sequence[Sample]) -> None:
    """Write the counts of samples in stored order."""
    counted = list(map(_counts, samples))
    write_table(path, COUNTS, {name: [counts[name] for counts in counted] for name in COUNTS.names})


def read_counts(path: Path, where: str) -> tuple[Sample, ...]:
    """Read samples whose ids lie elsewhere, in stored order: every count is there, and no id.

    Args:
        where: what to say to whoever asks for an id.
    """
    return tuple(_sample(record, path, where) for record in read_table(path, COUNTS).to_pylist())


def difference_of(path: Path, samples: Iterable[Sample]) -> str | None:
    """How counts on record differ from those of the samples, ``None`` if they do not."""
    recorded, derived = read_table(path, COUNTS).to_pylist(), list(map(_counts, samples))
    if len(recorded) != len(derived):
        return f"recorded {len(recorded)} rows, recomputed {len(derived)}"
    for old, new in zip(recorded, derived, strict=True):
        if other := [name for name in COUNTS.names if old[name] != new[name]]:
            found = ", ".join(f"{name} recorded {old[name]!r}, recomputed {new[name]!r}" for name in other)
            return f"{new['task_id']} sample {new['sample_index']}: {found}"
    return None


def _counts(sample: Sample) -> dict[str, Any]:
    row, found = sample.row, sample.continuation
    return {
        **row.key._asdict(),
        **{name: getattr(row, name) for name in _PLAIN},
        "claims": jsonfile.canonical(dict(row.claims)).decode(),
        "tokens": len(row.token_ids),
        "forward_calls": None if row.forward_input_lengths is None else len(row.forward_input_lengths),
        "ending": str(found.ending),
        "block_tokens": [block.tokens for block in found.blocks],
        "last_block_closed": found.blocks[-1].closed if found.blocks else None,
        "answer_tokens": None if found.answer_ids is None else len(found.answer_ids),
        **{name: getattr(found, name) for name in _FOUND},
    }


def _sample(record: Mapping[str, Any], path: Path, where: str) -> Sample:
    def unread(length: int | None) -> Any:
        return None if length is None else Unread(length, where)

    if record["ending"] not in list(Ending):
        raise DataError(f"{path}: column ending: {record['ending']!r}, expected one of {', '.join(Ending)}")
    claims = jsonfile.loads(record["claims"].encode(), source=f"{path}: column claims")
    if not isinstance(claims, dict):
        raise DataError(f"{path}: column claims: {record['claims'][:60]!r}, expected an object")
    row = Row(
        key=RowKey(record["task_id"], record["sample_index"]),
        token_ids=cast("array[int]", unread(record["tokens"])),
        forward_input_lengths=unread(record["forward_calls"]),
        claims=claims,
        **{name: record[name] for name in _PLAIN},
    )
    last = len(record["block_tokens"]) - 1
    blocks = [
        Block(tokens, closed=index < last or bool(record["last_block_closed"]))
        for index, tokens in enumerate(record["block_tokens"])
    ]
    found = {name: record[name] for name in _FOUND}
    answer = unread(record["answer_tokens"])
    return Sample(row, Continuation(Ending(record["ending"]), tuple(blocks), answer_ids=answer, **found))
