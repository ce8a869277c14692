"""The files of one step, evidence and receipt: written by a live run or an import, read back to judge and to replay.

A live run judges what it reads back from here, never what it has in memory, so that a replay sees the same.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from gatepost import elsewhere, jsonfile, schema
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.audit.absent import read_absent_rows, read_prompt_digests
from gatepost.audit.counts import read_counts, write_counts
from gatepost.engine import EngineFacts
from gatepost.engines.plain import from_plain, to_plain
from gatepost.errors import IntegrityError
from gatepost.evidence import Record, Row
from gatepost.ladder import Decision, Judgement, Step
from gatepost.protocol import Protocol
from gatepost.verdict import JSON

EVIDENCE = (
    "session.json",
    "tasks.parquet",
    "parents.parquet",
    "prompts.parquet",
    "rows.parquet",
    "text.parquet",
    "grades.parquet",
    "choices.parquet",
    "scores.parquet",
    "counts.parquet",
    "prompt_digests.json",
    "absent_rows.json",
)
"""Every file that can be evidence. ``rows.json`` lists those that a step has; ``receipt.json`` binds that list."""

TAKEN_OVER = ("preflight.json", "prompts.parquet", "rows.parquet", "text.parquet", "session.json")
"""What an engine gave, in the order in which it is taken over: the session says that the rest is there, so it is last.

All else in a step's folder is derived, and a mistake in deriving it is what the next attempt is to make good.
"""


def write_session(
    folder: Path,
    protocol: Protocol,
    step: Step,
    facts: EngineFacts | None,
    elapsed_seconds: float | None,
    generation_seconds: float | None = None,
) -> None:
    """Write what the engine was, and how long the step took, in all and from the first request to the last id.

    Its presence says that sampling is complete.
    """
    document = {
        "schema": "gatepost/session/1",
        "protocol": protocol.digest,
        "step": step.to_json(),
        "engine": to_plain(facts),
        "elapsed_seconds": elapsed_seconds,
        "generation_seconds": generation_seconds,
    }
    schema.validate(document, kind="session", source=str(folder / "session.json"))
    jsonfile.write_canonical(folder / "session.json", document)


def facts_of(folder: Path) -> EngineFacts | None:
    """The engine facts of a step, or ``None`` where it had no engine or nobody recorded one."""
    path = folder / "session.json"
    if not path.exists():
        return None
    document = jsonfile.read_canonical(path)
    schema.validate(document, kind="session", source=str(path))
    if document["engine"] is None:
        return None
    return from_plain(EngineFacts, document["engine"], where=f"{path}: engine", defaults=True)


def read_record(archive: Archive, folder: Path, record: Record) -> Record:
    """Fill a record that holds only the plan with all that a step's folder holds, and what lies elsewhere for it.

    Where rows are not at hand, their counts stand for them as far as counts go.
    """
    facts = facts_of(folder)
    present, away = elsewhere.locate(archive, folder, EVIDENCE)
    digests, absent = folder / "prompt_digests.json", folder / "absent_rows.json"
    counted = None
    if "rows.parquet" in away and "counts.parquet" in present:
        counted = read_counts(present["counts.parquet"], away["rows.parquet"])
    rows = tables.read_rows(present["rows.parquet"]) if "rows.parquet" in present else None
    missing = {name: said for name, said in away.items() if counted is None or name != "rows.parquet"}
    return dataclasses.replace(
        record,
        engine=facts,
        scheduler=facts.scheduler if facts else None,
        tasks=tables.read_tasks(folder) if "tasks.parquet" in present else None,
        prompts=tables.read_prompts(folder / "prompts.parquet") if "prompts.parquet" in present else None,
        rows=rows if counted is None else tuple(sample.row for sample in counted),
        text=tables.read_text(present["text.parquet"]) if "text.parquet" in present else None,
        grades=tables.read_grades(folder / "grades.parquet") if "grades.parquet" in present else None,
        scores=tables.read_scores(folder) if "scores.parquet" in present else None,
        prompt_digests=read_prompt_digests(digests) if digests.name in present else None,
        absent_rows=read_absent_rows(absent) if absent.name in present else None,
        counted=counted,
        elsewhere={channel: said for name, said in missing.items() for channel in elsewhere.LARGE[name]},
    )


def write_manifest(folder: Path, protocol: Protocol, step: Step, rows: Sequence[Row] | None) -> str:
    """List the evidence of a step in ``rows.json``; returns the manifest's digest."""
    files = []
    for name in sorted(name for name in EVIDENCE if (folder / name).exists()):
        data = jsonfile.read_bytes(folder / name)
        files.append({"path": name, "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)})
    document = {
        "schema": "gatepost/rows/1",
        "protocol": protocol.digest,
        "step": step.to_json(),
        "rows": None if rows is None else len(rows),
        "sampled_tokens": None if rows is None else sum(row.sampled_tokens for row in rows),
        "rows_digest": None if rows is None else tables.digest_of(rows),
        "files": files,
    }
    schema.validate(document, kind="rows", source=str(folder / "rows.json"))
    return jsonfile.digest(jsonfile.write_canonical(folder / "rows.json", document))


def write_receipt(
    protocol: Protocol,
    step: Step,
    number: int,
    folder: Path,
    record: Record,
    judgements: list[Judgement],
    decision: Decision,
    *,
    origin: str,
    limits: list[str],
) -> None:
    """Write the counts of a step's samples, its manifest, then its receipt, the last file of the folder."""
    if record.samples is not None:
        write_counts(folder / "counts.parquet", record.samples)
    manifest = write_manifest(folder, protocol, step, record.rows)
    document = {
        "schema": "gatepost/receipt/1",
        "protocol": protocol.digest,
        "step": step.to_json(),
        "attempt": number,
        "origin": origin,
        "manifest": manifest,
        "judgements": [judgement.to_json() for judgement in judgements],
        "decision": decision.to_json(),
        "limits": limits,
    }
    path = folder / "receipt.json"
    data = jsonfile.canonical(document, source=str(path))
    schema.validate(jsonfile.loads(data, source=str(path)), kind="receipt", source=str(path))
    jsonfile.write_new(path, data)


def verify_manifest(archive: Archive, folder: Path, receipt: Mapping[str, JSON], record: Record) -> tuple[str, ...]:
    """Raise ``IntegrityError`` unless the evidence is what the receipt bound, by bytes and by logical digest.

    Returns which files were not at hand. Counts tell how many rows and ids there were; no digest follows from them.
    """
    path = folder / "rows.json"
    manifest, digest = jsonfile.read_frozen(path)
    if digest != receipt["manifest"]:
        raise IntegrityError(f"{path}: digest is {digest}, the receipt bound {receipt['manifest']}")
    schema.validate(manifest, kind="rows", source=str(path))
    _require_same_step(path, manifest, receipt)
    listed = {entry["path"]: entry for entry in manifest["files"]}
    if len(listed) < len(manifest["files"]):
        raise IntegrityError(f"{path}: field files lists a file twice")
    if list(listed) != sorted(listed):
        raise IntegrityError(f"{path}: field files is not in the order of the paths, which is the one form it has")
    present, away = elsewhere.locate(archive, folder, EVIDENCE)
    if odd := sorted({*present, *away} ^ set(listed)):
        state = "is missing" if odd[0] in listed else "is not in rows.json"
        raise IntegrityError(f"{folder / odd[0]}: {state}")
    for name, file in present.items():
        if (size_bytes := file.stat().st_size) != listed[name]["size_bytes"]:
            raise IntegrityError(f"{file}: is {size_bytes} bytes long, rows.json bound {listed[name]['size_bytes']}")
        found = jsonfile.sha256_of(file)
        if found != listed[name]["sha256"]:
            raise IntegrityError(f"{file}: SHA-256 is {found}, rows.json bound {listed[name]['sha256']}")
    rows, unread = record.rows, "rows.parquet" in away
    recomputed = {
        "rows": None if rows is None else len(rows),
        "sampled_tokens": None if rows is None else sum(row.sampled_tokens for row in rows),
        "rows_digest": manifest["rows_digest"] if unread else None if rows is None else tables.digest_of(rows),
    }
    for field, value in recomputed.items():
        if manifest[field] != value and not (unread and rows is None):
            raise IntegrityError(f"{path}: field {field} is {manifest[field]!r}, recomputed {value!r}")
    return tuple(away.values())


def verify_session(folder: Path, receipt: Mapping[str, JSON]) -> None:
    """Raise ``IntegrityError`` unless a step's session, where there is one, is its own, and of an engine if live."""
    path = folder / "session.json"
    if not path.exists():
        return
    session = jsonfile.read_canonical(path)
    schema.validate(session, kind="session", source=str(path))
    _require_same_step(path, session, receipt)
    if session["engine"] is None and receipt["origin"] == "live":
        raise IntegrityError(f"{path}: field engine is null, expected what the engine of a live step was")
    elapsed, generated = session["elapsed_seconds"], session.get("generation_seconds")
    if elapsed is not None and generated is not None and generated > elapsed:
        raise IntegrityError(f"{path}: field generation_seconds is {generated}, in a step that took {elapsed}")


def _require_same_step(path: Path, record: Mapping[str, JSON], receipt: Mapping[str, JSON]) -> None:
    for field in ("protocol", "step"):
        if record[field] != receipt[field]:
            raise IntegrityError(f"{path}: field {field} is {record[field]!r}, the receipt says {receipt[field]!r}")


def count_ids(stream: Path) -> tuple[int, int]:
    """(samples begun, ids) in a stream, up to the first line that was cut off or never was one of a stream."""
    samples: set[str] = set()
    ids = 0
    for line in jsonfile.read_bytes(stream).splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(record, dict) or not isinstance(record.get("request_id"), str):
            break
        if isinstance(record.get("token_ids"), list):
            samples.add(record["request_id"])
            ids += len(record["token_ids"])
    return len(samples), ids
