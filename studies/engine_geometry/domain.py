"""Prompts that are there to be long: what a step needs if only the engine is of interest.

Nothing is asked and nothing is graded. A task is ``{"task_id": …, "prompt": …}``.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

NAME, VERSION = "engine_geometry", 1
ANSWER_TEXTS = ()

Task = Mapping[str, Any]


def answers(task: Task) -> tuple[str, ...]:
    """There are none."""
    return ()


def family(task: Task) -> str:
    """All prompts are of one kind."""
    return "prompt"


def record_fingerprint(task: Task) -> str:
    """Digest of the record as it is."""
    return _digest(dict(task))


def content_fingerprint(task: Task) -> str:
    """Digest of the prompt, white space apart."""
    return _digest(task["prompt"].split())


def program_fingerprint(task: Task) -> str:
    """There is no program behind a prompt: the content stands for it."""
    return content_fingerprint(task)


def messages(task: Task, arm: str | None) -> Sequence[Mapping[str, str]]:
    """The prompt, as one turn."""
    return [{"role": "user", "content": task["prompt"]}]


def parse(text: str) -> str | None:
    """Nothing is an answer."""
    return None


def grade(task: Task, parsed: str | None) -> bool:
    """So nothing is right."""
    return False


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
