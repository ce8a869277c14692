"""The schemas are valid, closed, and named by what they describe."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gatepost import bundled, jsonfile
from gatepost.errors import DataError
from gatepost.schema import validate
from tests.protocols import document, stage

SCHEMAS = sorted(bundled.folder("schemas").glob("*.json"))


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every subschema that describes an object."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schema(path: Any) -> None:
    schema = jsonfile.read(path)
    Draft202012Validator.check_schema(schema)
    kind, version, *_ = path.name.split(".")
    assert schema["$id"] == f"gatepost/{kind}/{version}"
    assert schema["properties"]["schema"] == {"const": schema["$id"]}
    for described in objects(schema):
        assert "additionalProperties" in described, "an object says what else it may hold"
        if "properties" in described:
            assert described["additionalProperties"] is False


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema": "gatepost/protocol/2"}, "is not known to this version"),
        ({"schema": "gatepost/receipt/1"}, "expected 'gatepost/protocol/1'"),
        ({"schema": "gatepost/protocol/../../etc"}, "expected 'gatepost/protocol/1'"),
        ({"schema": None}, "field 'schema' is None"),
        ({"extra": 1}, "'extra' was unexpected"),
        ({"rungs": []}, r"\$\.rungs"),
        ({"splits": {"a": "/etc/passwd"}}, r"\$\.splits\.a"),
        ({"splits": {"a": "../a.jsonl"}}, r"\$\.splits\.a"),
        ({"splits": {"a": "b/../a.jsonl"}}, r"\$\.splits\.a"),
        ({"id": "a/b"}, r"\$\.id"),
        ({"id": ".."}, r"\$\.id"),
    ],
)
def test_a_document_is_refused_by_field(change: dict[str, Any], problem: str) -> None:
    plan = document(stage("selection", "nested"))
    validate(plan, kind="protocol", source="draft.toml")
    with pytest.raises(DataError, match=problem) as caught:
        validate({**plan, **change}, kind="protocol", source="draft.toml")
    assert str(caught.value).startswith("draft.toml: ")
