"""The macro domain: write a short program that explains examples, with or without a library of macros.

Values are lists of five integers modulo 17. A program is a row of calls, `A | B`, that run from left to right. A call
is one of ten primitives or, in the `designed` arm, a macro: a literal sequence of two or three primitives. A program
makes at most five calls and expands to at most five primitives, so a macro saves calls and never adds reach.

A right answer is any program that behaves as the examples say, and many do. So an answer is graded by running it: the
visible examples may choose among samples, the hidden ones grade.

Everything here is pure and needs only the standard library, so that grading replays anywhere.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple

NAME = "macro_programs"
VERSION = 1
ANSWER_TEXTS: tuple[str, ...] = ()
VISIBLE_FIELDS = ("task_id", "library", "visible")

MODULUS = 17
LENGTH = 5
MAX_CALLS = 5
MAX_DEPTH = 5
MACRO_LENGTHS = (2, 3)
ARMS = ("base", "designed")
PARTS = ("visible", "hidden", "probe")

Values = tuple[int, ...]
Example = tuple[Values, Values]
Behaviour = tuple[Values, ...]
Program = tuple[str, ...]
Library = Mapping[str, Program]
Task = dict[str, Any]


class Primitive(NamedTuple):
    """One primitive: its meaning in the prompt and its function."""

    meaning: str
    function: Callable[[Values], Values]


def _reduced(values: Iterable[int]) -> Values:
    return tuple([value % MODULUS for value in values])


PRIMITIVES: dict[str, Primitive] = {
    "ADD1": Primitive("add 1", lambda x: _reduced(v + 1 for v in x)),
    "MUL2": Primitive("double", lambda x: _reduced(2 * v for v in x)),
    "NEG": Primitive("negate", lambda x: _reduced(-v for v in x)),
    "REV": Primitive("reverse", lambda x: x[::-1]),
    "ROTL": Primitive("first goes last", lambda x: x[1:] + x[:1]),
    "SWAP": Primitive("swap the first two", lambda x: x[1::-1] + x[2:]),
    "SORT": Primitive("sort up", lambda x: tuple(sorted(x))),
    "PREFIX": Primitive("running sums", lambda x: _reduced(accumulate(x))),
    "DIFF": Primitive("differences, first kept", lambda x: _reduced(b - a for a, b in pairwise((0, *x)))),
    "ZIGZAG": Primitive("places 1 3 5, then 2 4", lambda x: x[::2] + x[1::2]),
}

# A signature looks at these inputs only. They keep apart all 20 829 behaviours that programs of up to five primitives
# show on 150 random inputs, which eight random ones did not in thirty draws.
SIGNATURE_INPUTS: Behaviour = (
    (10, 4, 16, 1, 14),
    (16, 6, 7, 16, 0),
    (0, 15, 1, 15, 8),
    (8, 15, 2, 1, 9),
    (9, 9, 8, 8, 12),
    (15, 9, 2, 4, 3),
    (1, 11, 14, 16, 13),
    (2, 5, 5, 4, 0),
)

_MACRO = re.compile(r"M[0-9]")
_CALL = "|".join((*PRIMITIVES, _MACRO.pattern))
_BAR = r"[ \t]*\|[ \t]*"
_ANSWER_LINE = re.compile(rf"^PROGRAM: ((?:{_CALL})(?:{_BAR}(?:{_CALL})){{0,{MAX_CALLS - 1}}})[ \t]*$", re.MULTILINE)


def run(program: Iterable[str], values: Values) -> Values:
    """Apply primitives in order."""
    for name in program:
        values = PRIMITIVES[name].function(values)
    return values


def expand(text: str, macros: Library) -> Program | None:
    """The primitives that `A | B` stands for; None for a call that does not exist or a program past a limit."""
    calls = text.split(" | ")
    if len(calls) > MAX_CALLS or not all(call in PRIMITIVES or call in macros for call in calls):
        return None
    program = tuple(name for call in calls for name in macros.get(call, (call,)))
    return program if len(program) <= MAX_DEPTH else None


def levels(inputs: Sequence[Values]) -> Iterator[set[Behaviour]]:
    """Depth by depth from zero, the outputs on `inputs` that some program of that depth gives and no shorter one.

    Programs that agree on the inputs go on as one, so that depth five has some 17 000 members and not 100 000.
    """
    functions = [primitive.function for primitive in PRIMITIVES.values()]
    seen: set[Behaviour] = set()
    level = {tuple(inputs)}
    while True:
        yield level
        seen |= level
        level = {tuple([function(values) for values in outputs]) for outputs in level for function in functions} - seen


def minimum_depth(shown: Sequence[Example], max_depth: int = MAX_DEPTH) -> int | None:
    """The least number of primitives that reproduces the examples, by enumeration; None if `max_depth` do not."""
    inputs, outputs = [given for given, _ in shown], tuple(result for _, result in shown)
    reached = enumerate(islice(levels(inputs), max_depth + 1))
    return next((depth for depth, level in reached if outputs in level), None)


def behaviour(program: Sequence[str]) -> Behaviour:
    """The outputs on the signature inputs."""
    return tuple(run(program, values) for values in SIGNATURE_INPUTS)


def signature(program: Sequence[str]) -> str:
    """SHA-256 of the behaviour: different digests prove different programs, equal ones agree on those inputs."""
    return _digest(behaviour(program))


def program_depth(program: Sequence[str]) -> int:
    """The least number of primitives that behaves like a program of at most five.

    Nothing shorter agrees even on the signature inputs, so a depth that equals the program's length is proven.
    """
    return _depths()[behaviour(program)]


@cache
def _depths() -> dict[Behaviour, int]:
    reached = enumerate(islice(levels(SIGNATURE_INPUTS), MAX_DEPTH + 1))
    return {outputs: depth for depth, level in reached for outputs in level}


def program(task: Mapping[str, Any]) -> Program:
    """The primitives behind the examples; ValueError for anything that is not a program."""
    names = tuple(task["program"])
    if not 1 <= len(names) <= MAX_DEPTH or not all(name in PRIMITIVES for name in names):
        raise ValueError(f"not a program: {names!r}")
    return names


def library(task: Mapping[str, Any], arm: str | None) -> Library:
    """The macros that may be called in an arm; ValueError for an arm or a macro that does not exist."""
    if arm not in ARMS:
        raise ValueError(f"arm {arm!r}, expected one of {', '.join(ARMS)}")
    macros = {token: tuple(names) for token, names in task["library"].items()} if arm == "designed" else {}
    for token, names in macros.items():
        if not (_MACRO.fullmatch(token) and len(names) in MACRO_LENGTHS and all(name in PRIMITIVES for name in names)):
            raise ValueError(f"not a macro: {token} = {names!r}")
    return macros


def examples(task: Mapping[str, Any], part: str) -> list[Example]:
    """The examples of a part as integer tuples; ValueError for what is not five integers modulo 17."""
    return [(_values(pair["input"]), _values(pair["output"])) for pair in task[part]]


def _values(stored: Iterable[Any]) -> Values:
    numbers = tuple(stored)
    if len(numbers) != LENGTH or any(isinstance(v, bool) or v not in range(MODULUS) for v in numbers):
        raise ValueError(f"not {LENGTH} integers modulo {MODULUS}: {numbers!r}")
    return tuple(int(v) for v in numbers)


def is_reuse(task: Mapping[str, Any]) -> bool:
    """Whether the program behind the examples was built from macros of the library."""
    return bool(task["motifs"])


def answers(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Empty: answers are programs, and every one that behaves alike is right."""
    return ()


def family(task: Mapping[str, Any]) -> str:
    """The class over which a split is balanced: tasks that reuse macros, and others."""
    return "reuse" if is_reuse(task) else "other"


def record_fingerprint(task: Mapping[str, Any]) -> str:
    """SHA-256 of the record as stored, less its id."""
    return _digest({field: value for field, value in task.items() if field != "task_id"})


def content_fingerprint(task: Mapping[str, Any]) -> str:
    """SHA-256 of the examples alone, as a multiset: order, part, names and 1 written as 1.0 leave it unchanged."""
    return _digest(sorted(example for part in PARTS for example in examples(task, part)))


def program_fingerprint(task: Mapping[str, Any]) -> str:
    """The signature of the program behind the examples, so that another spelling of it counts as the same."""
    return signature(program(task))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def messages(task: Mapping[str, Any], arm: str | None) -> list[dict[str, str]]:
    """The chat that asks for a program; only visible examples enter it, and macros in the `designed` arm."""
    primitives = [f"{name} = {primitive.meaning}" for name, primitive in PRIMITIVES.items()]
    macros = [f"{token} = {' | '.join(names)}" for token, names in sorted(library(task, arm).items())]
    shown = [f"in:{_spaced(given)} out:{_spaced(result)}" for given, result in examples(task, "visible")]
    ask = f"Which calls turn each in into its out? At most {MAX_DEPTH} primitives in all. Answer as PROGRAM: A | B"
    return [
        {"role": "system", "content": f"Numbers count modulo {MODULUS}."},
        {"role": "user", "content": "\n".join([*primitives, *macros, *shown, ask])},
    ]


def _spaced(values: Values) -> str:
    return "".join(f" {value}" for value in values)


def parse(text: str) -> str | None:
    """The program of the last line that is exactly `PROGRAM: A | B | …`, as `A | B`; None without such a line.

    It has one to five calls, each spelt as a primitive or as `M` and a digit. Case and the single space after the
    colon count; blanks around bars and at the end do not. Whether a macro exists, and how far it expands, is for
    `is_valid`, which knows the task.
    """
    lines = _ANSWER_LINE.findall(text)
    return " | ".join(re.split(_BAR, lines[-1])) if lines else None


def grade(task: Mapping[str, Any], parsed: str | None) -> bool:
    """Whether the program gets every hidden example right."""
    return 0 < len(task["hidden"]) == _right(task, parsed, "hidden")


def visible_score(task: Mapping[str, Any], parsed: str | None) -> int:
    """How many visible examples the program gets right: all that may choose among the samples of a task."""
    return _right(task, parsed, "visible")


def _right(task: Mapping[str, Any], parsed: str | None, part: str) -> int:
    expanded = None if parsed is None else expand(parsed, library(task, "designed"))
    if expanded is None:
        return 0
    return sum(run(expanded, given) == result for given, result in examples(task, part))


def is_valid(task: Mapping[str, Any], parsed: str | None, arm: str | None) -> bool:
    """Whether the program calls only what the arm offers and stays within the limits."""
    return parsed is not None and expand(parsed, library(task, arm)) is not None


def uses_macro(parsed: str | None, arm: str | None) -> bool:
    """Whether the program calls a macro, in an arm that has some."""
    return arm == "designed" and parsed is not None and any(map(_MACRO.fullmatch, parsed.split(" | ")))


def traits(task: Mapping[str, Any], parsed: str | None, arm: str | None) -> frozenset[str]:
    """`macro` for a program that calls one."""
    return frozenset({"macro"}) if uses_macro(parsed, arm) else frozenset()
