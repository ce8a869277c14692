"""What a task is: how it is posed, answered, graded and recognised.

A task shows examples of one list operation, and the answer is the name of that operation. Everything here is pure and
needs the standard library alone, so that grading replays anywhere. Change what a function says, and `VERSION` with it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

NAME = "named_operation"
VERSION = 1

OPERATIONS: dict[str, tuple[str, Callable[[list[int]], list[int]]]] = {
    "cat": ("reverse", lambda values: values[::-1]),
    "dog": ("sort up", sorted),
    "horse": ("sort down", lambda values: sorted(values, reverse=True)),
    "lemon": ("negate", lambda values: [-value for value in values]),
}
ANSWER_TEXTS = tuple(f" {name}" for name in OPERATIONS)

_ANSWER_LINE = re.compile(r"^First: (\S+)[ \t]*$", re.MULTILINE)


def answers(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Every name whose operation explains all examples: one, or the task has no single answer."""
    return tuple(
        name
        for name, (_, operation) in OPERATIONS.items()
        if all(operation(example["input"]) == example["output"] for example in task["examples"])
    )


def family(task: Mapping[str, Any]) -> str:
    """The class over which a split is balanced."""
    return str(task["answer"])


def record_fingerprint(task: Mapping[str, Any]) -> str:
    """Digest of the task as stored, without its id."""
    return _digest({field: value for field, value in task.items() if field != "task_id"})


def content_fingerprint(task: Mapping[str, Any]) -> str:
    """Digest of the examples in any order: a copy under another id, or reordered, is the same content."""
    return _digest(sorted([example["input"], example["output"]] for example in task["examples"]))


def program_fingerprint(task: Mapping[str, Any]) -> str:
    """Digest of what is behind the examples."""
    return _digest(task["answer"])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def messages(task: Mapping[str, Any], arm: str | None = None) -> list[dict[str, str]]:
    """The chat that poses the task. The answer itself does not enter it; there are no arms."""
    names = "\n".join(f"{name} = {meaning}" for name, (meaning, _) in OPERATIONS.items())
    shown = "\n".join(f"in:{_spaced(one['input'])} out:{_spaced(one['output'])}" for one in task["examples"])
    question = f"One step turns each in into its out.\n{names}\n{shown}\nWhich step is it? Answer as First: name"
    return [{"role": "system", "content": "Effort: low"}, {"role": "user", "content": question}]


def _spaced(values: list[int]) -> str:
    return "".join(f" {value}" for value in values)


def parse(text: str) -> str | None:
    """The word in a line that is exactly `First: <word>`; `None` without one, or with several that disagree."""
    named = set(_ANSWER_LINE.findall(text))
    return str(named.pop()) if len(named) == 1 else None


def grade(task: Mapping[str, Any], parsed: str | None) -> bool:
    """Whether the answer is right."""
    return parsed == str(task["answer"])
