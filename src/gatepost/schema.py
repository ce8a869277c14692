"""JSON Schema 2020-12 validation against the shipped schemas."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatepost import bundled, jsonfile
from gatepost.errors import DataError, shortened
from gatepost.verdict import JSON

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

MAX_SHOWN = 300
"""A message quotes the value that it is about, which may be as long as a file."""


def validate(document: JSON, *, kind: str, source: str) -> None:
    """Validate a document of that kind by the schema version that it names.

    Raises ``DataError`` naming the source, the field, what was found and what was expected. A document of an
    unknown version is refused, never read by the nearest schema.
    """
    name = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(name, str) or not re.fullmatch(rf"gatepost/{kind}/[0-9]{{1,4}}", name):
        raise DataError(f"{source}: field 'schema' is {name!r:.80}, expected 'gatepost/{kind}/1'")
    path = bundled.folder("schemas") / f"{name.removeprefix('gatepost/').replace('/', '.')}.schema.json"
    if not path.is_file():
        raise DataError(f"{source}: schema {name!r} is not known to this version of gatepost")
    error = next(iter(sorted(_validator(path).iter_errors(document), key=lambda error: error.json_path)), None)
    if error is not None:
        cause = _cause(error)
        raise DataError(
            f"{source}: field {shortened(cause.json_path, MAX_SHOWN)}: {shortened(cause.message, MAX_SHOWN)}"
        )


def _cause(error: "ValidationError") -> "ValidationError":
    """Where a value is of the type of one alternative, what that one says of it: none of them fits, says nothing."""
    while error.context:
        of_other_types = {
            other.schema_path[0] for other in error.context if other.validator == "type" and not other.path
        }
        near = [other for other in error.context if other.schema_path[0] not in of_other_types]
        if not near:
            break
        error = min(near, key=lambda other: other.json_path)
    return error


@cache
def _validator(path: Path) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator, validators

    # JSON Schema takes 1e30 for an integer. It would reach code that counts with it as a float.
    strict = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    extend: Any = validators.extend  # has no types
    validator: type[Draft202012Validator] = extend(Draft202012Validator, type_checker=strict)
    return validator(jsonfile.read(path))
