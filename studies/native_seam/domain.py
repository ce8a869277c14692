"""The list-operation domain: which of twelve operations did a hidden two-step program run first?

A task shows input/output examples of one program of two list operations. The answer is the alias of the first
operation. A task is *identifiable* when every two-step program that reproduces all visible examples starts with the
same type of operation, so that exactly one alias is right; `answers` decides this by trying all 576 programs.

Everything here is pure and needs only the standard library, so that grading replays anywhere.
"""

import hashlib
import json
import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

NAME = "list_operations"
VERSION = 1

Values = tuple[int, ...]
Example = tuple[Values, Values]
Step = tuple[str, int | None]
Program = tuple[Step, ...]
Task = dict[str, Any]


class Operation(NamedTuple):
    """One type of operation: its alias in answers, its meaning in the prompt, its parameters and its function."""

    alias: str
    meaning: str
    parameters: tuple[int | None, ...]
    function: Callable[[Values, int], Values]


def _rotate_left(values: Values, k: int) -> Values:
    shift = k % len(values) if values else 0
    return values[shift:] + values[:shift]


_NONE = (None,)

OPERATIONS: dict[str, Operation] = {
    "reverse": Operation("cat", "reverse", _NONE, lambda x, _: x[::-1]),
    "sort_asc": Operation("dog", "sort up", _NONE, lambda x, _: tuple(sorted(x))),
    "sort_desc": Operation("horse", "sort down", _NONE, lambda x, _: tuple(sorted(x, reverse=True))),
    "abs_all": Operation("tiger", "absolute values", _NONE, lambda x, _: tuple(map(abs, x))),
    "square": Operation("apple", "square", _NONE, lambda x, _: tuple(v * v for v in x)),
    "negate": Operation("lemon", "negate", _NONE, lambda x, _: tuple(-v for v in x)),
    "running_sum": Operation("river", "running sums", _NONE, lambda x, _: tuple(accumulate(x))),
    "adjacent_diff": Operation("ocean", "differences", _NONE, lambda x, _: tuple(b - a for a, b in pairwise(x))),
    "add_k": Operation("silver", "add k", (-3, -2, -1, 1, 2, 3), lambda x, k: tuple(v + k for v in x)),
    "mul_k": Operation("gold", "multiply by k", (-2, 2, 3), lambda x, k: tuple(v * k for v in x)),
    "take_k": Operation("circle", "keep the first k", (1, 2, 3, 4), lambda x, k: x[:k]),
    "rotate_k": Operation("square", "rotate left by k", (1, 2, 3), _rotate_left),
}
ALIASES: dict[str, str] = {name: operation.alias for name, operation in OPERATIONS.items()}
ANSWERS: tuple[str, ...] = tuple(ALIASES.values())
ANSWER_TEXTS: tuple[str, ...] = tuple(f" {alias}" for alias in ANSWERS)
STEPS: tuple[Step, ...] = tuple((name, k) for name, operation in OPERATIONS.items() for k in operation.parameters)

# Negation commutes with most operations, so a program that starts with it is rarely identifiable.
FIRST_OPERATIONS: tuple[str, ...] = tuple(name for name in OPERATIONS if name != "negate")

DEPTH = 2
VISIBLE_EXAMPLES = HIDDEN_EXAMPLES = 8
MIN_LENGTH, MAX_LENGTH = 4, 8
MAX_MAGNITUDE = 9
EFFORTS = ("low", "high")

_MAX_DRAWS_PER_TASK = 10_000
_ANSWER_LINE = re.compile(r"^First: (\S+)[ \t]*$", re.MULTILINE)


def run(program: Iterable[Step], values: Values) -> Values:
    """Apply the steps in order. Differences of n values are n-1 values; rotation wraps past the length."""
    for name, parameter in program:
        values = OPERATIONS[name].function(values, parameter or 0)
    return values


def matched_prefixes(examples: Sequence[Example]) -> dict[str, int]:
    """Per type of first operation, the longest prefix of `examples` that one two-step program reproduces."""
    longest = dict.fromkeys(OPERATIONS, 0)
    for first in STEPS:
        # The first step is shared by all 24 second steps, so its results are computed once.
        halfway = [OPERATIONS[first[0]].function(values, first[1] or 0) for values, _ in examples]
        for second in STEPS:
            longest[first[0]] = max(longest[first[0]], _matched(second, halfway, examples))
    return longest


def _matched(second: Step, halfway: Sequence[Values], examples: Sequence[Example]) -> int:
    function, parameter = OPERATIONS[second[0]].function, second[1] or 0
    for index, (values, (_, output)) in enumerate(zip(halfway, examples, strict=True)):
        if function(values, parameter) != output:
            return index
    return len(examples)


def answers(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Sorted aliases of every first operation that can explain all visible examples; one means identifiable."""
    return tuple(sorted(ALIASES[name] for name in _explaining_types(examples(task, "visible"))))


def _explaining_types(shown: Sequence[Example]) -> list[str]:
    return [name for name, count in matched_prefixes(shown).items() if count == len(shown)]


def examples(task: Mapping[str, Any], part: str) -> list[Example]:
    """The `visible` or `hidden` examples as integer tuples; ValueError for a number that is not an integer."""
    return [(_integers(pair["input"]), _integers(pair["output"])) for pair in task[part]]


def program(task: Mapping[str, Any]) -> Program:
    """The program behind the examples, parameters as integers or None."""
    return tuple((step["name"], _parameter(step.get("parameter"))) for step in task["target_pipeline"])


def _parameter(value: Any) -> int | None:
    return None if value is None else _integers([value])[0]


def _integers(values: Iterable[Any]) -> Values:
    numbers = tuple(values)
    if not all(map(_is_integer, numbers)):
        raise ValueError(f"not a list of integers: {numbers!r}")
    return tuple(map(int, numbers))


def _is_integer(value: Any) -> bool:
    # JSON may spell an integer 1.0; Python counts True among the integers.
    return value.is_integer() if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)


def family(task: Mapping[str, Any]) -> str:
    """The class over which a split is balanced: the type of the first operation."""
    return str(task["first_op"])


def record_fingerprint(task: Mapping[str, Any]) -> str:
    """SHA-256 of the four defining fields exactly as stored: the study's published identity of a task."""
    return _digest({field: task[field] for field in ("depth", "visible", "hidden", "first_op")})


def content_fingerprint(task: Mapping[str, Any]) -> str:
    """SHA-256 of the examples alone, as a multiset.

    Reordering, renaming, relabelling, moving examples between the visible and the hidden part or writing 1 as 1.0
    leaves it unchanged, so a disguised copy collides with its original. Equal records have equal content.
    """
    return _digest(sorted(examples(task, "visible") + examples(task, "hidden")))


def program_fingerprint(task: Mapping[str, Any]) -> str:
    """SHA-256 of the program behind the examples: two tasks may share it and no example."""
    return _digest(program(task))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def messages(task: Mapping[str, Any], arm: str | None = None) -> list[dict[str, str]]:
    """The chat that asks for the first operation; only visible examples and the effort enter it. There are no arms."""
    names = "\n".join(f"{operation.alias} = {operation.meaning}" for operation in OPERATIONS.values())
    shown = "\n".join(f"in:{_spaced(given)} out:{_spaced(result)}" for given, result in examples(task, "visible"))
    return [
        {"role": "system", "content": f"Effort: {task.get('effort', EFFORTS[0])}"},
        {
            "role": "user",
            "content": f"Two steps turn each in into its out.\n{names}\n{shown}\n"
            "Which step runs first? Answer as First: name",
        },
    ]


def _spaced(values: Values) -> str:
    return "".join(f" {value}" for value in values)


def parse(text: str) -> str | None:
    """The alias of an answer, read from lines that are exactly `First: <alias>`.

    Case, spelling and the single space count; blanks after the alias and other lines do not. None when there is no
    such line, when one names something that is not an alias, or when two disagree.
    """
    named = set(_ANSWER_LINE.findall(text))
    return named.pop() if len(named) == 1 and named <= set(ANSWERS) else None


def grade(task: Mapping[str, Any], parsed: str | None) -> bool:
    """Whether the parsed alias names the first operation of the task's own program."""
    return parsed == ALIASES[task["first_op"]]


def generate(
    split: str,
    count: int,
    seed: int,
    *,
    exclude_records: Collection[str] = (),
    exclude_programs: Collection[str] = (),
    effort: str | None = None,
) -> list[Task]:
    """Draw `count` identifiable tasks, the same for the same arguments.

    `exclude_records` holds record or content fingerprints, `exclude_programs` program fingerprints that must not
    occur. First operations are dealt in rounds, so their counts differ by at most one. Raises ValueError when the
    exclusions leave no task to draw.
    """
    rng = random.Random(f"{NAME}/{split}/{seed}")
    order = rng.sample(FIRST_OPERATIONS, len(FIRST_OPERATIONS))
    seen, programs = set(exclude_records), frozenset(exclude_programs)
    tasks: list[Task] = []
    for index in range(count):
        task = _draw_allowed(rng, order[index % len(order)], seen, programs)
        seen.add(content_fingerprint(task))
        tasks.append({"task_id": f"{split}-{index:05d}", **task, **({"effort": effort} if effort else {})})
    return tasks


def _draw_allowed(rng: random.Random, first: str, seen: set[str], programs: frozenset[str]) -> Task:
    for _ in range(_MAX_DRAWS_PER_TASK):
        task = _draw(rng, first)
        if program_fingerprint(task) in programs or not seen.isdisjoint(_identities(task)):
            continue
        if task["visible_matching_first_types"] == [first]:
            return task
    raise ValueError(f"no identifiable task left that starts with {first}")


def _identities(task: Task) -> tuple[str, str]:
    return record_fingerprint(task), content_fingerprint(task)


def _draw(rng: random.Random, first: str) -> Task:
    pipeline: Program = ((first, rng.choice(OPERATIONS[first].parameters)), _random_step(rng))
    inputs: list[Values] = []
    while len(inputs) < VISIBLE_EXAMPLES + HIDDEN_EXAMPLES:
        values = _random_input(rng)
        if values not in inputs:
            inputs.append(values)
    pairs = [(values, run(pipeline, values)) for values in inputs]
    stored = [{"input": list(given), "output": list(result)} for given, result in pairs]
    return {
        "depth": DEPTH,
        "first_op": first,
        "target_pipeline": [{"name": name, "parameter": parameter} for name, parameter in pipeline],
        "visible": stored[:VISIBLE_EXAMPLES],
        "hidden": stored[VISIBLE_EXAMPLES:],
        "visible_matching_first_types": _explaining_types(pairs[:VISIBLE_EXAMPLES]),
    }


def _random_step(rng: random.Random) -> Step:
    # The type is drawn before the parameter: otherwise add_k would follow six times as often as reverse.
    name = rng.choice(tuple(OPERATIONS))
    return name, rng.choice(OPERATIONS[name].parameters)


def _random_input(rng: random.Random) -> Values:
    length = rng.randint(MIN_LENGTH, MAX_LENGTH)
    return tuple(rng.randint(-MAX_MAGNITUDE, MAX_MAGNITUDE) for _ in range(length))
