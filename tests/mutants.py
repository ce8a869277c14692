"""Documents with one thing wrong, or perhaps not: structure-aware mutations of JSON, drawn by a seeded generator.

A mutation knows where a value may stand, not what it means: fields are dropped, added, renamed, taken from elsewhere in
the same document, put into another type, or moved to the edge of what their type holds.
"""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from gatepost import jsonfile
from gatepost.verdict import JSON

Place = tuple[Any, Any]
"""A container and the key or index of one value in it."""

NUMBERS = [
    0, 1, -1, 2, 0.5, -0.5, 1e-7, 5e-324, 0.1 + 0.2, 1.0000000000000002, 2**31 - 1, 2**31, 2**53 - 1, -(2**53) + 1,
    1e21, -1e21, 1e30, 1.7976931348623157e308, 1000000, 1000001, 9999, 10000,
]  # fmt: skip
STRINGS = [
    "", " ", "x", "\n", "\0", "..", ".", "/", "a/../b", "./a", "/etc/passwd", "a//b", "é", "e\u0301", "\u2028",
    "\ufeff", "\U0001f600", "x" * 99, "x" * 100, "x" * 101, "x" * 1000, "x" * 1001, "true", "null", "0", "pass", "fail",
    "inconclusive", "0" * 40, "0" * 64, "0" * 63, "0" * 65, "g" * 64, "F" * 64, "\u0660" * 64, "sha256:" + "0" * 64,
    "sha256:" + "0" * 64 + "\n", "ed25519:" + "0" * 64, "1.2", "1.2.3", "2026-01-01T00:00:00Z", "2026-13-99T99:99:99Z",
    "\uff12\uff1026-01-01T00:00:00Z", "gatepost/protocol/1", "A", "a", "A_1", "a@1", "a@" + "1" * 17, "\x7f", "\x9f",
    "\r\n",
]  # fmt: skip
LEAVES: list[JSON] = [None, True, False, *NUMBERS, *STRINGS]


def places(document: JSON) -> Iterator[Place]:
    """Every place in a document where a value stands, in stored order."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield document, key
        if isinstance(value, dict | list):
            yield from places(value)


def changes(before: JSON, after: JSON, at: str = "$") -> Iterator[str]:
    """The places in which two documents differ, without indices; a list of another length differs as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if key in before and key in after:
                yield from changes(before[key], after[key], f"{at}.{key}")
            else:
                yield f"{at}.{key}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from changes(one, other, f"{at}[]")
    elif not jsonfile.same(before, after):
        yield at


def mutate(document: JSON, source: random.Random) -> tuple[JSON, str]:
    """A changed copy of an object, and in words how it was changed."""
    changed = copy.deepcopy(document)
    everywhere = list(places(changed))
    container, key = source.choice(everywhere)
    name = source.choice(list(MUTATIONS))
    MUTATIONS[name](container, key, source, everywhere)
    return changed, f"{name} at {key!r}"


def _drop(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    del container[key]


def _add(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    if isinstance(container, dict):
        container[source.choice(["extra", "", "schema ", "Schema", "\u017fchema", *map(str, container)])] = _any(source)
    else:
        container.insert(key, _any(source))


def _rename(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    if isinstance(container, dict):
        value = container.pop(key)
        container[source.choice([key.upper(), f"{key} ", f"{key}s", key[1:], f"{key}\n"])] = value
    else:
        container.reverse()


def _retype(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    container[key] = _any(source)


def _number(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    value = container[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        container[key] = source.choice(NUMBERS)
    else:
        container[key] = source.choice([value + 1, value - 1, -value, value + 0.5, str(value), [value], not value])


def _string(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    value = container[key]
    if not isinstance(value, str) or not value:
        container[key] = source.choice(STRINGS)
        return
    at = source.randrange(len(value))
    container[key] = source.choice([
        f"{value}\n", f"\n{value}", f" {value}", value[:-1], value * 2, value.upper(), value.lower(), value.swapcase(),
        f"{value[:at]}\0{value[at:]}", f"{value[:at]}\u0661{value[at + 1 :]}", f"{value[:at]}\n{value[at:]}",
        f"{value[:at]}/{value[at:]}", f"../{value}", f"/{value}", f"{value}\u2028", f"{value}\r",
    ])  # fmt: skip


def _graft(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    other, name = source.choice(everywhere)
    container[key] = copy.deepcopy(other[name])


def _swap(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    beside = [other for other in (container if isinstance(container, dict) else range(len(container))) if other != key]
    if beside:
        other = source.choice(beside)
        container[key], container[other] = container[other], container[key]


def _nest(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    value = container[key]
    container[key] = source.choice([[value], {"value": value}, [[]], {}, []])


def _repeat(container: Any, key: Any, source: random.Random, everywhere: list[Place]) -> None:
    if isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    elif isinstance(container[key], list):
        container[key] = container[key] * 2
    else:
        container[key] = [container[key], container[key]]


def _any(source: random.Random) -> JSON:
    value: JSON = source.choice(LEAVES)
    return source.choice([value, value, value, [value], {"x": value}, [], {}])


MUTATIONS: dict[str, Callable[[Any, Any, random.Random, list[Place]], None]] = {
    "drop": _drop,
    "add": _add,
    "rename": _rename,
    "retype": _retype,
    "number": _number,
    "string": _string,
    "graft": _graft,
    "swap": _swap,
    "nest": _nest,
    "repeat": _repeat,
}
