"""Do the files of one step agree with each other? Whatever gates are registered, and whatever they make of it.

1. There is one prompt for each registered task, whole or as a digest, and every row was fed as many tokens as it has.
2. Every row has a grade, and every row that was completed has a text; nothing else has either.
3. An engine is after generation what it was before it, but for its scheduler's ``COUNTERS``, ``HOST_FACTS`` and what is
   unknown on one side: of a scheduler before, all of it or sampling after, once a request came with other values.
4. It counted at least the ids that the rows hold (it may have sampled some past a limit), in no fewer steps than the
   longest row takes, and as many went through its graphs.
5. A live run asks for every registered sample, in order and under its seeds, and writes a row for each whatever came.
   What was published of a run of others may be less; gates judge it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from gatepost.absence import prompt_lengths
from gatepost.counts import count_of
from gatepost.engine import EngineFacts
from gatepost.engines.plain import to_plain
from gatepost.errors import IntegrityError
from gatepost.evidence import Record, Row
from gatepost.fingerprint import RowKey
from gatepost.jsonfile import same
from gatepost.plan import Plan
from gatepost.verdict import JSON

COUNTERS = ("preemptions", "steps", "sampled_tokens", "dispatch")
"""Of a scheduler: counted while it samples."""

HOST_FACTS = ("versions_changed", "search_path_added_folders")
"""Of an environment: what changed around the engine since it started, looked up each time."""


def require_agreement(folder: Path, record: Record, *, live: bool = False) -> None:
    """Raise ``IntegrityError`` for the first file of a step that does not agree with its rows or tasks.

    Args:
        live: whether gatepost itself ran the step.
    """
    lengths = prompt_lengths(record.prompts, record.prompt_digests)
    if lengths is not None:
        name = "prompt_digests.json" if record.prompts is None else "prompts.parquet"
        _require_prompts(folder, name, lengths, record)
    if live and record.rows is not None:
        _require_registered_rows(folder / "rows.parquet", record.rows, record.plan)
    rows = record.rows or ()
    keys = {row.key for row in rows}
    completed = {row.key for row in rows if row.finish_reason is not None}
    if record.text is not None:
        _require_keys(folder / "text.parquet", record.text, at_least=completed, at_most=keys)
    if record.grades is not None:
        _require_keys(folder / "grades.parquet", record.grades, at_least=keys, at_most=keys)
    require_counts(folder / "session.json", record.scheduler, rows)


def require_same_engine(path: Path, before: EngineFacts, after: EngineFacts) -> None:
    """Raise ``IntegrityError`` for the first fact of a running engine that is another one after generation.

    Args:
        path: of the file that holds the facts after generation.
    """
    old, new = to_plain(before), to_plain(after)
    known = {name for name, value in (old["scheduler"] or {}).items() if value is not None} - set(COUNTERS)
    for facts in (old, new):
        facts["environment"] = {name: facts["environment"][name] for name in facts["environment"].keys() - HOST_FACTS}
        if facts["scheduler"] is not None:
            facts["scheduler"] = {name: facts["scheduler"][name] for name in facts["scheduler"].keys() & known}
    old["scheduler"] = old["scheduler"] or {}
    for field in old:
        lost = field in ("sampling", "scheduler") and new[field] is None
        if not lost and not same(old[field], new[field]):
            found, expected = _unlike(new[field], old[field]), _unlike(old[field], new[field])
            raise IntegrityError(f"{path}: field engine.{field} is {found}, before generation it was {expected}")


def _unlike(one: JSON, other: JSON) -> JSON:
    """What of one fact the other has not got, where they are many facts."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one
    return {name: one[name] for name in sorted(one) if name not in other or not same(one[name], other[name])}


def require_counts(path: Path, counted: Mapping[str, JSON] | None, rows: Sequence[Row]) -> None:
    """Raise ``IntegrityError`` if an engine counted less than its rows take. A count that it has not got is unknown.

    Args:
        path: of the file that holds the counts.
        counted: what the scheduler says of itself after generation.
    """
    sampled, longest = sum(row.sampled_tokens for row in rows), max((row.sampled_tokens for row in rows), default=0)
    speculative = count_of(counted, "speculative_tokens")
    least_steps = 0 if speculative is None else -(-longest // (1 + speculative))
    least = {"sampled_tokens": sampled, "steps": least_steps}
    found = {name: count_of(counted, name) for name in least}
    dispatch = (counted or {}).get("dispatch")
    if isinstance(dispatch, list) and all(map(_is_entry, dispatch)):
        found["dispatch.steps"] = sum(entry["steps"] for entry in dispatch)
        found["dispatch.tokens"] = sum(entry["steps"] * entry["tokens"] for entry in dispatch)
        least |= {"dispatch.steps": least_steps, "dispatch.tokens": sampled}
    for name, count in found.items():
        if count is not None and count < least[name]:
            raise IntegrityError(
                f"{path}: field engine.scheduler.{name} is {count}, rows.parquet takes at least {least[name]}: "
                f"{sampled} sampled ids, {longest} in its longest row"
            )


def _is_entry(entry: JSON) -> bool:
    return count_of(entry, "steps") is not None and count_of(entry, "tokens") is not None


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


def _require_registered_rows(path: Path, rows: Sequence[Row], plan: Plan) -> None:
    for found, registered in zip_longest((row.key for row in rows), plan.keys):
        if found != registered:
            raise IntegrityError(f"{path}: holds {found or 'nothing'} where {registered or 'nothing'} is registered")
    for row in rows:
        seeds, two_stages = plan.seeds(row.key), row.injected_tokens and plan.protocol.thinking == "force_close"
        expected = (seeds.first, seeds.second if two_stages else None) if seeds else (None, None)
        if (row.seed, row.stage_two_seed) != expected:
            raise IntegrityError(
                f"{path}: {row.key}: seed is {row.seed}, stage_two_seed {row.stage_two_seed}; "
                f"registered are {expected[0]} and {expected[1]}"
            )


def _require_keys(
    path: Path, found: Iterable[RowKey], *, at_least: Collection[RowKey], at_most: Collection[RowKey]
) -> None:
    keys = set(found)
    for key in sorted((keys - set(at_most)) | (set(at_least) - keys)):
        problem = "is not in rows.parquet" if key in keys else "is missing, but is in rows.parquet"
        raise IntegrityError(f"{path}: {key.task_id} sample {key.sample_index}: {problem}")
