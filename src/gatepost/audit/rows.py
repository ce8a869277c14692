"""The tables of evidence, a writer beside its reader: ids apart from text, choices apart from grades."""

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from gatepost import jsonfile
from gatepost.audit.parquet import IDS, TEXTS, id_arrays, id_lists, read_table, write_table
from gatepost.engine import Prompt
from gatepost.errors import DataError
from gatepost.evidence import Choice, Grade, Parent, Row, Score, Task, Tasks
from gatepost.fingerprint import Ids, RowKey, rows_digest

_KEY = [pa.field("task_id", pa.string(), nullable=False), pa.field("sample_index", pa.int32(), nullable=False)]

ROWS = pa.schema(
    [
        *_KEY,
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("prompt_tokens", pa.int32(), nullable=False),
        pa.field("token_ids", IDS, nullable=False),
        pa.field("forward_input_lengths", IDS),
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
_PLAIN_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
PROMPTS = pa.schema(
    [
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("token_ids", IDS, nullable=False),
    ]
)
TEXT = pa.schema([*_KEY, pa.field("text", pa.string(), nullable=False)])
GRADES = pa.schema([*_KEY, pa.field("parsed", pa.string()), pa.field("correct", pa.bool_(), nullable=False)])
CHOICES = pa.schema(
    [
        pa.field("stage", pa.string(), nullable=False),
        pa.field("arm", pa.string()),
        *_KEY,
        pa.field("parsed", pa.string()),
        pa.field("visible_score", pa.int64()),
        pa.field("chosen", pa.bool_(), nullable=False),
    ]
)
SCORES = pa.schema(
    [
        pa.field("stage", pa.string(), nullable=False),
        *_KEY,
        pa.field("correct", pa.bool_(), nullable=False),
        pa.field("valid", pa.bool_(), nullable=False),
        pa.field("traits", TEXTS, nullable=False),
    ]
)
TASKS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("task_id", "split", "family")),
        *(pa.field(f"{level}_fingerprint", pa.string(), nullable=False) for level in ("record", "content", "program")),
        pa.field("answers", TEXTS, nullable=False),
    ]
)
PARENTS = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("corpus", "level", "fingerprint")])


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write sampled rows. Claims are stored as canonical JSON text."""
    write_table(
        path,
        ROWS,
        {
            **_keys(row.key for row in rows),
            **{name: [getattr(row, name) for row in rows] for name in _PLAIN},
            "token_ids": id_lists([row.token_ids for row in rows]),
            "forward_input_lengths": id_lists([row.forward_input_lengths for row in rows]),
            "claims": [jsonfile.canonical(dict(row.claims)).decode() for row in rows],
        },
    )


def read_rows(path: Path) -> tuple[Row, ...]:
    """Read sampled rows in stored order."""
    return tuple(rows_of(read_table(path, ROWS), path))


def rows_of(table: pa.Table, path: Path) -> Iterator[Row]:
    """The rows of a table, or of a part of one, that was read from a file."""
    ids, lengths = id_arrays(table, "token_ids"), id_arrays(table, "forward_input_lengths")
    plain = table.drop_columns(["token_ids", "forward_input_lengths"]).to_pylist()
    for record, token_ids, forward in zip(plain, ids, lengths, strict=True):
        yield Row(
            key=_key(record),
            token_ids=_present(token_ids, path),
            forward_input_lengths=forward,
            **{name: record[name] for name in _PLAIN},
            claims=_claims(record["claims"], path),
        )


def digest_of(rows: Iterable[Row]) -> str:
    """The logical digest that binds rows, whatever file holds them."""
    return rows_digest((row.key, _id_lists_of(row)) for row in rows)


def _id_lists_of(row: Row) -> dict[str, Ids | None]:
    """A row as lists of numbers: its ids, and the rest as the bytes of its canonical JSON."""
    return {
        "token_ids": row.token_ids,
        "forward_input_lengths": row.forward_input_lengths,
        "rest": array("i", list(_rest_of(row))),
    }


def _rest_of(row: Row) -> bytes:
    """RFC 8785 bytes of a row without its ids. Rows without claims, which are nearly all, need no general writer."""
    rest = {name: getattr(row, name) for name in _PLAIN} | {"claims": dict(row.claims)}
    if not row.claims and all(_is_plain(rest[name]) for name in _PLAIN):
        return _PLAIN_JSON.encode(rest).encode()
    return jsonfile.canonical(rest)


def _is_plain(value: object) -> bool:
    """Whether Python's own writer and RFC 8785 agree on it."""
    if isinstance(value, str):
        return value.isascii()
    return value is None or (type(value) is int and abs(value) < jsonfile.MAX_INTEGER)


def write_prompts(path: Path, prompts: Sequence[Prompt]) -> None:
    """Write rendered prompts with the ids that the model was fed."""
    columns = {
        "task_id": [prompt.task_id for prompt in prompts],
        "text": [prompt.text for prompt in prompts],
        "token_ids": id_lists([array("i", prompt.token_ids) for prompt in prompts]),
    }
    write_table(path, PROMPTS, columns)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Read rendered prompts in stored order."""
    records = read_table(path, PROMPTS).to_pylist()
    return tuple(Prompt(record["task_id"], record["text"], tuple(record["token_ids"])) for record in records)


def write_text(path: Path, text: Mapping[RowKey, str]) -> None:
    """Write decoded continuations, apart from the ids, so that a blind reader need not open them."""
    write_table(path, TEXT, {**_keys(text), "text": list(text.values())})


def read_text(path: Path) -> dict[RowKey, str]:
    """Read decoded continuations."""
    return _by_key(path, ((_key(record), record["text"]) for record in read_table(path, TEXT).to_pylist()))


def write_grades(path: Path, grades: Mapping[RowKey, Grade]) -> None:
    """Write what the task domain made of the answers."""
    values = list(grades.values())
    columns = {"parsed": [grade.parsed for grade in values], "correct": [grade.correct for grade in values]}
    write_table(path, GRADES, {**_keys(grades), **columns})


def read_grades(path: Path) -> dict[RowKey, Grade]:
    """Read grades."""
    records = read_table(path, GRADES).to_pylist()
    return _by_key(
        path, ((_key(record), Grade(_key(record), record["parsed"], record["correct"])) for record in records)
    )


def write_choices(path: Path, choices: Sequence[Choice]) -> None:
    """Write which samples the visible examples chose."""
    write_table(path, CHOICES, _columns(CHOICES, choices))


def read_choices(path: Path) -> tuple[Choice, ...]:
    """Read choices in stored order."""
    return tuple(Choice(key=_key(record), **_rest(record)) for record in read_table(path, CHOICES).to_pylist())


def write_scores(path: Path, scores: Sequence[Score]) -> None:
    """Write how choices were graded, beside the file that holds them."""
    write_table(path, SCORES, {**_columns(SCORES, scores), "traits": [sorted(score.traits) for score in scores]})


def read_scores(folder: Path) -> tuple[Score, ...]:
    """Read choices together with their grades, which have to be of the same samples in the same order."""
    choices = read_choices(folder / "choices.parquet")
    records = read_table(folder / "scores.parquet", SCORES).to_pylist()
    if [(choice.stage, choice.key) for choice in choices] != [(record["stage"], _key(record)) for record in records]:
        raise DataError(f"{folder / 'scores.parquet'}: its samples are not those of choices.parquet")
    return tuple(
        Score(**{**vars(choice), **_rest(record), "traits": frozenset(record["traits"])})
        for choice, record in zip(choices, records, strict=True)
    )


def write_tasks(folder: Path, tasks: Tasks) -> None:
    """Write the task domain's analysis as ``tasks.parquet`` and ``parents.parquet``."""
    write_table(
        folder / "tasks.parquet", TASKS, {name: [getattr(task, name) for task in tasks.tasks] for name in TASKS.names}
    )
    triples = [
        (parent.name, level, fingerprint)
        for parent in tasks.parents
        for level in ("records", "contents", "programs")
        for fingerprint in sorted(getattr(parent, level))
    ]
    columns = {name: [triple[index] for triple in triples] for index, name in enumerate(PARENTS.names)}
    write_table(folder / "parents.parquet", PARENTS, columns)


def read_tasks(folder: Path) -> Tasks:
    """Read the task domain's analysis."""
    records = read_table(folder / "tasks.parquet", TASKS).to_pylist()
    tasks = tuple(Task(**{**record, "answers": tuple(record["answers"])}) for record in records)
    levels: dict[str, dict[str, set[str]]] = {}
    for record in read_table(folder / "parents.parquet", PARENTS).to_pylist():
        corpus = levels.setdefault(record["corpus"], {"records": set(), "contents": set(), "programs": set()})
        if record["level"] not in corpus:
            raise DataError(f"{folder / 'parents.parquet'}: level {record['level']!r}, expected {', '.join(corpus)}")
        corpus[record["level"]].add(record["fingerprint"])
    parents = tuple(
        Parent(name, *(frozenset(corpus[level]) for level in ("records", "contents", "programs")))
        for name, corpus in levels.items()
    )
    return Tasks(tasks, parents)


def _columns(schema: pa.Schema, items: Sequence[Choice]) -> dict[str, list[Any]]:
    plain = [name for name in schema.names if name not in RowKey._fields]
    return {**_keys(item.key for item in items), **{name: [getattr(item, name) for item in items] for name in plain}}


def _rest(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in RowKey._fields}


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


def _present(ids: "array[int] | None", path: Path) -> "array[int]":
    if ids is None:
        raise DataError(f"{path}: column token_ids: null, expected a list of ids")
    return ids


def _claims(text: str, path: Path) -> dict[str, Any]:
    if text == "{}":
        return {}
    claims = jsonfile.loads(text.encode(), source=f"{path}: column claims")
    if not isinstance(claims, dict):
        raise DataError(f"{path}: column claims: {text[:60]!r}, expected an object")
    return claims
