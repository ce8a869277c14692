"""Dataclasses to plain JSON values and back, strict both ways.

The annotations of the dataclass are the schema: exact types, no unknown field, no missing one. What the contract
in ``gatepost.engine`` uses is supported and nothing else: scalars, ``X | None``, ``tuple[X, ...]``, ``Sequence``,
``Mapping`` with text keys, JSON, and dataclasses of these.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gatepost.errors import DataError
from gatepost.verdict import JSON

T = TypeVar("T")

_SCALARS = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


def to_plain(value: object) -> JSON:
    """The same data as dicts, lists and scalars. What JSON cannot carry is left for the writer to refuse."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], value: JSON, *, where: str, defaults: bool = False) -> T:
    """Build a dataclass from plain values.

    Args:
        kind: the dataclass.
        where: what to call the value in messages.
        defaults: whether a field that has a default may be left out.

    Raises:
        DataError: an unknown or missing field, or a value of another type; the message names the field.
    """
    return cast(T, _read_dataclass(kind, value, where, defaults))


def _read_dataclass(kind: type, value: JSON, where: str, defaults: bool) -> object:
    if not isinstance(value, dict):
        raise DataError(f"{where}: found {_shown(value)}, expected an object")
    required, optional = _fields(kind)
    if unknown := value.keys() - required - optional:
        raise DataError(f"{where}: unknown {_listed(unknown)}, expected {_listed(required | optional)}")
    if missing := (required if defaults else required | optional) - value.keys():
        raise DataError(f"{where}: {_listed(missing)} is missing")
    hints = _hints(kind)
    return kind(**{name: _read(hints[name], item, f"{where}: {name}", defaults) for name, item in value.items()})


def _read(annotation: Any, value: JSON, where: str, defaults: bool) -> object:
    if annotation is Any:
        return value
    if annotation in _SCALARS:
        return _read_scalar(annotation, value, where)
    if dataclasses.is_dataclass(annotation):
        return _read_dataclass(cast(type, annotation), value, where, defaults)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        (present,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else _read(present, value, where, defaults)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise DataError(f"{where}: found {_shown(value)}, expected an object")
        return {key: _read(arguments[1], item, f"{where}[{key!r}]", defaults) for key, item in value.items()}
    if origin not in (tuple, Sequence):
        raise TypeError(f"{where}: {annotation} is not a type that this format carries")
    if not isinstance(value, list):
        raise DataError(f"{where}: found {_shown(value)}, expected a list")
    items = [_read(arguments[0], item, f"{where}[{index}]", defaults) for index, item in enumerate(value)]
    return tuple(items) if origin is tuple else items


def _read_scalar(kind: type, value: JSON, where: str) -> object:
    # RFC 8785 writes 1.0 as 1, so a number may arrive as an integer; bool is a subclass of int in Python only.
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise DataError(f"{where}: found {_shown(value)}, expected {_SCALARS[kind]}")
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _fields(kind: type) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the fields without a default, and of those with one."""
    optional = frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    )
    return frozenset(field.name for field in dataclasses.fields(kind)) - optional, optional


def _listed(names: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(names))


def _shown(value: JSON) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
