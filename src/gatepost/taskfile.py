"""Task splits as JSONL: one strict JSON object a line, each with a ``task_id`` of its own."""

from pathlib import Path

from gatepost import jsonfile
from gatepost.errors import DataError
from gatepost.studyfiles import TaskDocument


def read_jsonl(path: Path) -> list[TaskDocument]:
    """Read JSON objects, one a line. Raises ``DataError`` naming file and line."""
    documents: list[TaskDocument] = []
    for number, line in enumerate(jsonfile.read_bytes(path).splitlines(), start=1):
        document = jsonfile.loads(line, source=f"{path}:{number}")
        if not isinstance(document, dict):
            raise DataError(f"{path}:{number}: is a {type(document).__name__}, expected an object")
        documents.append(document)
    if not documents:
        raise DataError(f"{path}: is empty, expected at least one object")
    return documents


def read_tasks(path: Path) -> list[TaskDocument]:
    """Read the tasks of a split, in file order. Raises ``DataError`` for a missing or repeated ``task_id``."""
    tasks = read_jsonl(path)
    seen: dict[str, int] = {}
    for number, task in enumerate(tasks, start=1):
        name = task.get("task_id")
        if not isinstance(name, str) or not name:
            raise DataError(f"{path}:{number}: field task_id is {name!r}, expected a non-empty string")
        if name in seen:
            raise DataError(f"{path}:{number}: task_id {name!r} is that of line {seen[name]} already")
        seen[name] = number
    return tasks
