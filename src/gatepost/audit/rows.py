"""Evidence tables as Parquet: exact schemas, page checksums written and verified, ids apart from text.

Columns are read into plain Python; ids into ``array('i')``, four bytes each, so that millions of them fit a laptop.
"""

import io
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gatepost import jsonfile
from gatepost.engine import Prompt
from gatepost.errors import DataError
from gatepost.evidence import Grade, Parent, Row, Task, Tasks
from gatepost.fingerprint import RowKey, rows_digest

_IDS = pa.list_(pa.field("element", pa.int32(), nullable=False))
_KEY = [pa.field("task_id", pa.string(), nullable=False), pa.field("sample_index", pa.int32(), nullable=False)]

ROWS = pa.schema(
    [
        *_KEY,
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("prompt_tokens", pa.int32(), nullable=False),
        pa.field("token_ids", _IDS, nullable=False),
        pa.field("forward_input_lengths", _IDS),
        pa.field("finish_reason", pa.string()),
        pa.field("claims", pa.string(), nullable=False),
        pa.field("stage_two_seed", pa.int64()),
        pa.field("stage_one_finish_reason", pa.string()),
        pa.field("injected_start", pa.int32()),
        pa.field("injected_tokens", pa.int32(), nullable=False),
        pa.field("reprefilled_tokens", pa.int32(), nullable=False),
    ]
)
_PLAIN = tuple(
    name
    for name in ROWS.names
    if name not in ("task_id", "sample_index", "token_ids", "forward_input_lengths", "claims")
)
PROMPTS = pa.schema(
    [
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("token_ids", _IDS, nullable=False),
    ]
)
TEXT = pa.schema([*_KEY, pa.field("text", pa.string(), nullable=False)])
GRADES = pa.schema([*_KEY, pa.field("parsed", pa.string()), pa.field("correct", pa.bool_(), nullable=False)])
TASKS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("task_id", "split", "family")),
        *(pa.field(f"{level}_fingerprint", pa.string(), nullable=False) for level in ("record", "content", "program")),
        pa.field("answers", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
    ]
)
PARENTS = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("corpus", "level", "fingerprint")])


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write sampled rows. Claims are stored as canonical JSON text."""
    _write(
        path,
        ROWS,
        {
            **_keys(row.key for row in rows),
            **{name: [getattr(row, name) for row in rows] for name in _PLAIN},
            "token_ids": _id_lists([row.token_ids for row in rows]),
            "forward_input_lengths": _id_lists([row.forward_input_lengths for row in rows]),
            "claims": [jsonfile.canonical(dict(row.claims)).decode() for row in rows],
        },
    )


def read_rows(path: Path) -> tuple[Row, ...]:
    """Read sampled rows in stored order."""
    table = _read(path, ROWS)
    ids, lengths = _arrays(table, "token_ids"), _arrays(table, "forward_input_lengths")
    plain = table.drop_columns(["token_ids", "forward_input_lengths"]).to_pylist()
    return tuple(
        Row(
            key=_key(record),
            token_ids=_present(token_ids, path),
            forward_input_lengths=forward,
            **{name: record[name] for name in _PLAIN},
            claims=jsonfile.loads(record["claims"].encode(), source=f"{path}: column claims"),
        )
        for record, token_ids, forward in zip(plain, ids, lengths, strict=True)
    )


def digest_of(rows: Sequence[Row]) -> str:
    """The logical digest that binds rows, whatever file holds them."""
    return rows_digest((row.key, _id_lists_of(row)) for row in rows)


def _id_lists_of(row: Row) -> dict[str, Sequence[int] | None]:
    """A row as lists of numbers: its ids, and the rest as the bytes of its canonical JSON."""
    rest = {name: getattr(row, name) for name in _PLAIN} | {"claims": dict(row.claims)}
    return {
        "token_ids": row.token_ids,
        "forward_input_lengths": row.forward_input_lengths,
        "rest": list(jsonfile.canonical(rest)),
    }


def write_prompts(path: Path, prompts: Sequence[Prompt]) -> None:
    """Write rendered prompts with the ids that the model was fed."""
    columns = {
        "task_id": [prompt.task_id for prompt in prompts],
        "text": [prompt.text for prompt in prompts],
        "token_ids": _id_lists([array("i", prompt.token_ids) for prompt in prompts]),
    }
    _write(path, PROMPTS, columns)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Read rendered prompts in stored order."""
    records = _read(path, PROMPTS).to_pylist()
    return tuple(Prompt(record["task_id"], record["text"], tuple(record["token_ids"])) for record in records)


def write_text(path: Path, text: Mapping[RowKey, str]) -> None:
    """Write decoded continuations, apart from the ids, so that a blind reader need not open them."""
    _write(path, TEXT, {**_keys(text), "text": list(text.values())})


def read_text(path: Path) -> dict[RowKey, str]:
    """Read decoded continuations."""
    return _by_key(path, ((_key(record), record["text"]) for record in _read(path, TEXT).to_pylist()))


def write_grades(path: Path, grades: Mapping[RowKey, Grade]) -> None:
    """Write what the task domain made of the answers."""
    values = list(grades.values())
    columns = {"parsed": [grade.parsed for grade in values], "correct": [grade.correct for grade in values]}
    _write(path, GRADES, {**_keys(grades), **columns})


def read_grades(path: Path) -> dict[RowKey, Grade]:
    """Read grades."""
    records = _read(path, GRADES).to_pylist()
    return _by_key(
        path, ((_key(record), Grade(_key(record), record["parsed"], record["correct"])) for record in records)
    )


def write_tasks(folder: Path, tasks: Tasks) -> None:
    """Write the task domain's analysis as ``tasks.parquet`` and ``parents.parquet``."""
    _write(
        folder / "tasks.parquet", TASKS, {name: [getattr(task, name) for task in tasks.tasks] for name in TASKS.names}
    )
    triples = [
        (parent.name, level, fingerprint)
        for parent in tasks.parents
        for level in ("records", "contents", "programs")
        for fingerprint in sorted(getattr(parent, level))
    ]
    columns = {name: [triple[index] for triple in triples] for index, name in enumerate(PARENTS.names)}
    _write(folder / "parents.parquet", PARENTS, columns)


def read_tasks(folder: Path) -> Tasks:
    """Read the task domain's analysis."""
    records = _read(folder / "tasks.parquet", TASKS).to_pylist()
    tasks = tuple(Task(**{**record, "answers": tuple(record["answers"])}) for record in records)
    levels: dict[str, dict[str, set[str]]] = {}
    for record in _read(folder / "parents.parquet", PARENTS).to_pylist():
        corpus = levels.setdefault(record["corpus"], {"records": set(), "contents": set(), "programs": set()})
        if record["level"] not in corpus:
            raise DataError(f"{folder / 'parents.parquet'}: level {record['level']!r}, expected {', '.join(corpus)}")
        corpus[record["level"]].add(record["fingerprint"])
    parents = tuple(
        Parent(name, *(frozenset(corpus[level]) for level in ("records", "contents", "programs")))
        for name, corpus in levels.items()
    )
    return Tasks(tasks, parents)


def _keys(keys: Iterable[RowKey]) -> dict[str, list[Any]]:
    listed = list(keys)
    return {"task_id": [key.task_id for key in listed], "sample_index": [key.sample_index for key in listed]}


def _key(record: Mapping[str, Any]) -> RowKey:
    return RowKey(record["task_id"], record["sample_index"])


def _by_key(path: Path, pairs: Iterable[tuple[RowKey, Any]]) -> dict[RowKey, Any]:
    result: dict[RowKey, Any] = {}
    for key, value in pairs:
        if key in result:
            raise DataError(f"{path}: row {key.task_id} sample {key.sample_index} appears twice")
        result[key] = value
    return result


def _id_lists(lists: "Sequence[array[int] | None]") -> pa.Array:
    """A list column built from buffers: no Python integer is made for an id, and numpy is not needed."""
    offsets = array("i", accumulate((0 if ids is None else len(ids) for ids in lists), initial=0))
    values = _int32(b"".join(ids.tobytes() for ids in lists if ids is not None))
    missing = [ids is None for ids in lists]
    mask = pa.array(missing, pa.bool_()) if any(missing) else None
    return pa.ListArray.from_arrays(_int32(offsets.tobytes()), values, type=_IDS, mask=mask)


def _int32(data: bytes) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), len(data) // 4, [None, pa.py_buffer(data)])


def _arrays(table: pa.Table, column: str) -> "list[array[int] | None]":
    lists: list[array[int] | None] = []
    for chunk in table.column(column).chunks:
        values = chunk.values
        data = values.buffers()[1]
        ids = memoryview(b"" if data is None else data).cast("B").cast("i")[values.offset :]
        offsets = chunk.offsets.to_pylist()
        for valid, start, stop in zip(chunk.is_valid().to_pylist(), offsets, offsets[1:], strict=False):
            lists.append(array("i", ids[start:stop].tobytes()) if valid else None)
    return lists


def _present(ids: "array[int] | None", path: Path) -> "array[int]":
    if ids is None:
        raise DataError(f"{path}: column token_ids: null, expected a list of ids")
    return ids


def _write(path: Path, schema: pa.Schema, columns: Mapping[str, Any]) -> None:
    sink = io.BytesIO()
    table = pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, store_schema=False)
    jsonfile.write_new(path, sink.getvalue())


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    source = pa.BufferReader(jsonfile.read_bytes(path))
    try:
        table = pq.read_table(source, page_checksum_verification=True)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
    found = [(f.name, str(f.type)) for f in table.schema]
    expected = [(f.name, str(f.type)) for f in schema]
    if found != expected:
        raise DataError(f"{path}: columns {found}, expected {expected}")
    for f in schema:
        if not f.nullable and table.column(f.name).null_count:
            raise DataError(f"{path}: column {f.name}: holds null, expected a value in every row")
    return table
