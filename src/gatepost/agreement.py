"""Do the files of one step agree with each other? Whatever gates are registered, and whatever they make of it.

1. There is one prompt for each registered task, whole or as a digest, and every row was fed as many tokens as it has.
2. Every row has a grade, and every row that was completed has a text; nothing else has either.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from gatepost.absence import prompt_lengths
from gatepost.errors import IntegrityError
from gatepost.evidence import Record
from gatepost.fingerprint import RowKey


def require_agreement(folder: Path, record: Record) -> None:
    """Raise ``IntegrityError`` for the first file of a step that does not agree with its rows or tasks."""
    lengths = prompt_lengths(record.prompts, record.prompt_digests)
    if lengths is not None:
        name = "prompt_digests.json" if record.prompts is None else "prompts.parquet"
        _require_prompts(folder, name, lengths, record)
    rows = record.rows or ()
    keys = {row.key for row in rows}
    completed = {row.key for row in rows if row.finish_reason is not None}
    if record.text is not None:
        _require_keys(folder / "text.parquet", record.text, at_least=completed, at_most=keys)
    if record.grades is not None:
        _require_keys(folder / "grades.parquet", record.grades, at_least=keys, at_most=keys)


def _require_prompts(folder: Path, name: str, lengths: Sequence[tuple[str, int]], record: Record) -> None:
    found, expected = sorted(task_id for task_id, _ in lengths), sorted(record.plan.task_ids)
    if found != expected:
        raise IntegrityError(f"{folder / name}: prompts of tasks {found}, expected one of each {expected}")
    tokens = dict(lengths)
    for row in record.rows or ():
        if row.prompt_tokens != tokens.get(row.key.task_id):
            raise IntegrityError(
                f"{folder / 'rows.parquet'}: {row.key.task_id} sample {row.key.sample_index}: prompt_tokens is "
                f"{row.prompt_tokens}, its prompt in {name} has {tokens.get(row.key.task_id)}"
            )


def _require_keys(
    path: Path, found: Iterable[RowKey], *, at_least: Collection[RowKey], at_most: Collection[RowKey]
) -> None:
    keys = set(found)
    for key in sorted((keys - set(at_most)) | (set(at_least) - keys)):
        problem = "is not in rows.parquet" if key in keys else "is missing, but is in rows.parquet"
        raise IntegrityError(f"{path}: {key.task_id} sample {key.sample_index}: {problem}")
