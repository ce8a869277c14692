"""Drafts as people write them: TOML, each value where it is expected, and one draft that extends another."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from gatepost import jsonfile
from gatepost.errors import DataError, RegistrationError

T = TypeVar("T")

_IN_WORDS = {dict: "a table", list: "a list", str: "a string", int: "an integer"}


def read_draft(path: Path) -> dict[str, Any]:
    """What a draft says, with what it says nothing of taken from the draft beside it that it ``extends``, if any.

    Tables are merged field by field, lists of tables with names by name; any other value stands for the one before it.
    ``without`` lists what is not taken over, such as ``engine.packages`` or ``stages.probe.gates.dispatch``. The frozen
    protocol holds the result and no trace of the parts. Raises ``RegistrationError`` or ``DataError``.
    """
    try:
        return _extended(path, [])
    except RecursionError:
        raise DataError(f"{path}: nested too deeply, or extends too many drafts") from None


def _extended(path: Path, seen: Sequence[str]) -> dict[str, Any]:
    if path.is_dir():
        drafts = ", ".join(sorted(file.name for file in path.glob("*.toml"))) or "none"
        raise DataError(f"{path}: is a folder, expected a draft (TOML); in it are {drafts}")
    written = _read_toml(path)
    if (base := written.pop("extends", None)) is None:
        return written
    name, extending = expect(base, str, f"{path}: extends"), [*seen, path.name]
    if name in extending or PurePosixPath(name).name != name:
        raise RegistrationError(f"{path}: extends is {name!r}, expected another draft in the same folder")
    extended = _extended(path.parent / name, extending)
    for field in expect(written.pop("without", []), list, f"{path}: without"):
        _remove(extended, expect(field, str, f"{path}: without"), where=f"{path}: without")
    merged: dict[str, Any] = _merged(extended, written, where=str(path))
    return merged


def expect(value: object, kind: type[T], where: str) -> T:
    """The value, which has to be of that kind. TOML has no null: ``None`` is a field that is not there."""
    if value is None:
        raise RegistrationError(f"{where} is missing, expected {_IN_WORDS[kind]}")
    if not isinstance(value, kind):
        raise RegistrationError(f"{where} is {_shown(value)}, expected {_IN_WORDS[kind]}")
    return value


def tables(value: object, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of a list, each with its name."""
    for index, item in enumerate(expect(value, list, where)):
        yield f"{where}[{index}]", expect(item, dict, f"{where}[{index}]")


def _merged(base: Any, over: Any, *, where: str) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: _merged(base.get(key), value, where=f"{where}: {key}") for key, value in over.items()}}
    if not (base and over and _is_named(base) and _is_named(over)):
        return over
    by_name = {entry["name"]: entry for entry in over}
    for entries in (base, over):
        if len({entry["name"] for entry in entries}) < len(entries):
            raise RegistrationError(f"{where}: names {[entry['name'] for entry in entries]}, expected all different")
    known = [_merged(entry, by_name.pop(entry["name"], {}), where=where) for entry in base]
    return [*known, *by_name.values()]


def _is_named(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("name"), str) for item in value
    )


def _remove(document: Any, field: str, *, where: str) -> None:
    """Remove a field by its path; in a list of tables with names, a name is a step of the path. Names may hold dots."""
    rest = field
    while (children := _children(document)) and rest not in (keys := [key for key, _ in children]):
        name = max((key for key in keys if rest.startswith(f"{key}.")), key=len, default=None)
        document = next((item for key, item in children if key == name), None)
        rest = rest[len(name or "") + 1 :]
    if not children:
        raise RegistrationError(f"{where}: there is no {field} to leave out")
    del document[rest if isinstance(document, dict) else keys.index(rest)]


def _children(node: Any) -> list[tuple[str, Any]]:
    if isinstance(node, dict):
        return list(node.items())
    return [(item["name"], item) for item in node] if _is_named(node) else []


def _read_toml(path: Path) -> dict[str, Any]:
    data = jsonfile.read_bytes(path)
    try:
        document = tomllib.loads(data.decode("utf-8"))
        _refuse_odd_values(document, str(path))
    except RecursionError:
        raise DataError(f"{path}: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits is one, beside those of TOML and UTF-8
        raise DataError(f"{path}: not TOML: {error}") from None
    return document


def _refuse_odd_values(value: object, where: str) -> None:
    """TOML has values that JSON has not, dates, nan and inf, and numbers that another reader would round."""
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_odd_values(item, f"{where}: {key}" if ":" not in where else f"{where}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_odd_values(item, f"{where}[{index}]")
    elif isinstance(value, int | float):
        if not abs(value) <= jsonfile.MAX_INTEGER:  # written so that nan is refused too
            raise RegistrationError(f"{where} is {_shown(value)}, expected a finite number of at most 2^53")
    elif not isinstance(value, str):
        raise RegistrationError(f"{where} is {value}, expected a string, a finite number, a boolean, a list or a table")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
