"""Import the published run of the native-thought seam study into an archive that replays.

Two layouts are read: the public repository's experiment folder (``runs/``, ``data/procedural/``), and a compact one
with token ids and text in two compressed files. The plan comes from ``studies/native_seam/published.toml``; the rows
keep what their authors stored about them as *claims*, which gates compare with the ids and never take for evidence.
"""

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gatepost import bundled, jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.audit.imports import TRANSCRIBED, commit_step, import_into, published_bytes
from gatepost.errors import DataError
from gatepost.evidence import Row
from gatepost.fingerprint import RowKey
from gatepost.gatefiles import Gates
from gatepost.journal import Clock, utc_now
from gatepost.ladder import Step
from gatepost.records import grade_samples, records_of
from gatepost.stepfiles import write_session
from gatepost.studyfiles import load_domain
from gatepost.verdict import JSON

SPLITS = ("budget_selection", "seam_confirmation")
SELECTION = Step("selection")

FINISH_REASONS = {
    "think_cap_without_close": "length",
    "answer_cap": "length",
    "eos": "stop",
    "eos_before_close": "stop",
}
"""The runner's ``stopped_by`` in the field's words. An unknown value is passed on, and fails token accounting."""

CLAIMS = (
    "natural_close",
    "close_step",
    "think_tokens",
    "answer_tokens",
    "stopped_by",
    "cache_contract_pass",
    "forward_calls",
)


def _is_integer(value: JSON) -> bool:
    return type(value) is int and 0 <= value < 2**31


_INTEGER = (_is_integer, "an integer in [0, 2^31)")
_INTEGERS = (lambda value: isinstance(value, list) and all(map(_is_integer, value)), "a list of integers in [0, 2^31)")
_TEXT = (lambda value: isinstance(value, str), "text")
_TRUTH = (lambda value: isinstance(value, bool), "true or false")

FIELDS: Mapping[str, tuple[Callable[[JSON], bool], str]] = {
    "task_id": _TEXT,
    "trace_index": _INTEGER,
    "seed": _INTEGER,
    "prompt_tokens": _INTEGER,
    "generated_token_ids": _INTEGERS,
    "generated_text": _TEXT,
    "natural_close": _TRUTH,
    "close_step": (lambda value: value is None or _is_integer(value), "an integer in [0, 2^31) or null"),
    "think_tokens": _INTEGER,
    "answer_tokens": _INTEGER,
    "stopped_by": _TEXT,
    "cache_contract_pass": _TRUTH,
    "forward_calls": _INTEGER,
}
"""Every field that is read of a published row, as a test and in words."""

KEY = ("task_id", "trace_index")

LIMITS = [
    TRANSCRIBED,
    "forward input lengths were not published: the cache contract is inconclusive, the stored flag is a claim",
    "engine facts, prompts and the model smoke's ids were not published, so no gate here judges them",
]


@dataclass(frozen=True)
class PublishedRun:
    """Where the published files are.

    Attributes:
        rows: dictionaries as published, token ids and text joined.
        rows_file: where the ids lie.
        rows_sha256: digest of the published rows file, recomputed from what was read.
        tasks: split -> task file.
    """

    rows: tuple[Mapping[str, JSON], ...]
    rows_file: Path
    rows_sha256: str
    tasks: Mapping[str, Path]


def read_run(source: Path) -> PublishedRun:
    """Read a published run in either layout. Raises ``DataError`` naming what is missing or malformed."""
    if (rows_file := source / "rows_tokens.jsonl.gz").is_file():
        rows = tuple(_joined(rows_file, source / "rows_decoded.jsonl.gz"))
        tasks = {split: source / f"tasks_{split}.jsonl" for split in SPLITS}
    elif (rows_file := source / "runs" / "budget_selection_rows.jsonl").is_file():
        rows = tuple(_lines(rows_file, FIELDS))
        tasks = {split: source / "data" / "procedural" / f"{split}.jsonl" for split in SPLITS}
    else:
        raise DataError(
            f"{source}: holds neither runs/budget_selection_rows.jsonl nor rows_tokens.jsonl.gz; expected the folder "
            "of the experiment qwen35_4b_native_thought_seam_budget_ladder"
        )
    # The authors wrote one row a line with sorted keys and Python's default separators.
    published = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    return PublishedRun(rows, rows_file, hashlib.sha256(published.encode()).hexdigest(), tasks)


def import_run(source: Path, into: Path, *, clock: Clock = utc_now) -> Archive:
    """Freeze the transcribed plan with the published tasks, and judge the published rows under it."""
    run = read_run(source)
    tasks = {f"tasks_{split}.jsonl": path for split, path in run.tasks.items()}
    draft = bundled.folder("studies") / "native_seam" / "published.toml"
    return import_into(
        into,
        draft,
        {name: jsonfile.read_bytes(path, at_most=jsonfile.MAX_RECORD_BYTES) for name, path in tasks.items()},
        lambda archive, gates: _import_selection(archive, run, gates),
        origins={**tasks, **dict.fromkeys(("rows.parquet", "text.parquet", "grades.parquet"), run.rows_file)},
        clock=clock,
    )


def _import_selection(archive: Archive, run: PublishedRun, gates: Gates) -> None:
    protocol = archive.protocol
    number, folder = archive.begin(SELECTION)
    tables.write_rows(folder / "rows.parquet", [_row(row) for row in run.rows])
    tables.write_text(folder / "text.parquet", {_key(row): row["generated_text"] for row in run.rows})
    write_session(folder, protocol, SELECTION, None, None)
    record = next(records_of(archive, SELECTION, folder, gates, recorded_digest=protocol.digest))
    domain = load_domain(protocol.study, protocol.domain_version, [], where=f"protocol {protocol.id}")
    stage = protocol.stage(SELECTION.stage)
    grades = grade_samples(archive, stage, domain, record.samples or (), record.text or {})
    tables.write_grades(folder / "grades.parquet", grades)
    limits = [*LIMITS, f"published rows file: sha256 {run.rows_sha256}"]
    commit_step(archive, SELECTION, number, folder, gates, limits=limits)


def _row(row: Mapping[str, JSON]) -> Row:
    """A published row, its fields checked as it was read."""
    lengths, stopped_by = row.get("forward_input_lengths"), row["stopped_by"]
    return Row(
        key=_key(row),
        seed=row["seed"],
        prompt_tokens=row["prompt_tokens"],
        token_ids=array("i", row["generated_token_ids"]),
        forward_input_lengths=None if lengths is None else array("i", lengths),
        finish_reason=FINISH_REASONS.get(stopped_by, stopped_by),
        claims={name: row[name] for name in CLAIMS},
    )


def _key(row: Mapping[str, JSON]) -> RowKey:
    return RowKey(row["task_id"], row["trace_index"])


def _joined(tokens: Path, decoded: Path) -> Iterator[Mapping[str, JSON]]:
    """Put the two compressed files' rows together again by their key."""
    text = {_key(row): row["generated_text"] for row in _lines(decoded, (*KEY, "generated_text"))}
    for row in _lines(tokens, [name for name in FIELDS if name != "generated_text"]):
        if _key(row) not in text:
            raise DataError(f"{decoded}: no text for {row['task_id']!r} trace {row['trace_index']}")
        yield {**row, "generated_text": text.pop(_key(row))}
    for key in text:
        raise DataError(f"{decoded}: {key.task_id!r} trace {key.sample_index} has text, but no row in {tokens}")


def _lines(path: Path, fields: Iterable[str]) -> Iterator[Mapping[str, JSON]]:
    """The rows of a file, each once and each with these fields, of the types that were published."""
    seen: dict[RowKey, int] = {}
    for number, line in enumerate(published_bytes(path).splitlines(), start=1):
        row = jsonfile.loads(line, source=f"{path}:{number}")
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: is a {type(row).__name__}, expected an object")
        for name in (*fields, *({"forward_input_lengths"} & row.keys())):
            is_published, expected = FIELDS.get(name, _INTEGERS)
            if name not in row:
                raise DataError(f"{path}:{number}: field {name!r} is missing, expected {expected}")
            if not is_published(row[name]):
                raise DataError(f"{path}:{number}: field {name!r} is {str(row[name])[:60]!r}, expected {expected}")
        if (first := seen.setdefault(_key(row), number)) != number:
            raise DataError(f"{path}:{number}: {row['task_id']!r} trace {row['trace_index']} is that of line {first}")
        yield row
