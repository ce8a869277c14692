"""Prompt manifests as JSONL: one line for each task in each arm, with the fields of ``PromptIdentity``."""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from gatepost import jsonfile
from gatepost.engines.plain import from_plain, to_plain
from gatepost.errors import DataError
from gatepost.prompts import PromptIdentity
from gatepost.studyfiles import TaskDocument
from gatepost.taskfile import read_jsonl


def read_manifest(path: Path) -> tuple[PromptIdentity, ...]:
    """Read a manifest, in file order.

    Raises ``DataError`` naming file, line and field for a line that is none, and for a task that comes twice in an arm.
    """
    lines: dict[tuple[str, str | None], int] = {}
    manifest = []
    for number, document in enumerate(read_jsonl(path), start=1):
        where = f"{path}:{number}"
        line = from_plain(PromptIdentity, document, where=where)
        for field in ("input_record_sha256", "rendered_prompt_sha256", "prompt_token_ids_sha256"):
            if not re.fullmatch("[0-9a-f]{64}", found := document[field]):
                raise DataError(f"{where}: {field} is {found!r:.80}, expected 64 hex digits in lower case")
        if line.prompt_tokens < 1:
            raise DataError(f"{where}: prompt_tokens is {line.prompt_tokens}, expected at least 1")
        if line.posed in lines:
            arm = "without an arm" if line.arm is None else f"in arm {line.arm}"
            raise DataError(f"{where}: task_id {line.task_id!r} {arm} is that of line {lines[line.posed]} already")
        lines[line.posed] = number
        manifest.append(line)
    return tuple(manifest)


def manifest_line(prompt: PromptIdentity) -> str:
    """One line of a manifest, without its end."""
    return json.dumps(to_plain(prompt), separators=(",", ":"))


def record_digests(tasks: Iterable[TaskDocument]) -> dict[str, str]:
    """Task -> SHA-256 of its record as canonical JSON, as hex digits, in order."""
    records = {task["task_id"]: jsonfile.canonical(dict(task), source=f"task {task['task_id']}") for task in tasks}
    return {task_id: hashlib.sha256(record).hexdigest() for task_id, record in records.items()}
