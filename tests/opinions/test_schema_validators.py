"""jsonschema decides; jsonschema-rs, which shares no code with it and has another regex engine, has to say the same.

One kind of number is told apart by design: JSON Schema takes 1e30 for an integer, and ``gatepost.schema`` does not.
RFC 8785 writes every double from 1e21 on with an exponent, so in a stored document that difference can be seen.
"""

import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gatepost import bundled, jsonfile
from gatepost.errors import DataError
from gatepost.schema import validate
from tests.every import EVERY
from tests.mutants import mutate, places
from tests.protocols import DIGEST, document, stage

RECEIPTS = Path(__file__).resolve().parents[2] / "receipts"
MUTANTS = 100_000 if EVERY else 1_100
KINDS = sorted(path.name.removesuffix(".schema.json") for path in bundled.folder("schemas").glob("*.json"))

# Kinds of which the archives in the repository hold none.
BY_HAND: dict[str, dict[str, Any]] = {
    "approval.1": {"protocol": DIGEST, "step": "confirmation@32", "statement": "Read it; the limits are fair."},
    "prompt_digests.1": {"prompts": [{"task_id": "t0", "prompt_tokens": 9, "rendered_sha256": "0" * 64}]},
    "absent_rows.1": {"path": "rows.jsonl", "size_bytes": 7, "sha256": "1" * 64, "rows": 8, "claims": {"cut": 0.25}},
    "elsewhere.1": {
        "protocol": DIGEST,
        "files": [
            {
                "path": "steps/selection/rows.parquet",
                "size_bytes": 9,
                "sha256": "2" * 64,
                "rows": 4,
                "sampled_tokens": 12,
                "rows_digest": DIGEST,
                "channels": ["completions", "token_ids"],
                "regenerate": {
                    "step": "selection",
                    "engine": "vllm",
                    "seed_rule": "blake2b64",
                    "base_seed": 11,
                    "command": None,
                },
            },
        ],
    },
    "protocol.1": document(stage("checks", "once"), stage("selection", "nested"), stage("confirmation", "selected")),
}


@cache
def originals() -> dict[str, list[Any]]:
    """Every document of the archives in the repository, by kind and version."""
    found = {kind: [{**fields, "schema": f"gatepost/{kind.replace('.', '/')}"}] for kind, fields in BY_HAND.items()}
    for path in sorted(RECEIPTS.glob("*/**/*.json")):
        record = jsonfile.read(path)
        if "schema" in record:
            found.setdefault(record["schema"].removeprefix("gatepost/").replace("/", "."), []).append(record)
    return found


def accepted(record: Any, kind: str) -> bool:
    try:
        validate(record, kind=kind.partition(".")[0], source="record")
    except DataError:
        return False
    return True


def second_opinion(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(jsonfile.read(bundled.folder("schemas") / f"{kind}.schema.json"))


def whole_floats(record: Any) -> bool:
    """Whether a document holds a number that is written with an exponent and is whole."""
    values = (container[key] for container, key in places(record))
    return any(type(value) is float and value.is_integer() for value in values)


def test_every_kind_has_originals() -> None:
    assert sorted(originals()) == KINDS, "a kind that no archive here has is written by hand above"
    assert sum(map(len, originals().values())) > 300


@pytest.mark.parametrize("kind", KINDS)
def test_validators_agree(kind: str, record_property: Any) -> None:
    source, second, said = random.Random(kind), second_opinion(kind), Counter[str]()
    for record in originals()[kind]:
        assert accepted(record, kind)
        assert second.is_valid(record)
    while said.total() < MUTANTS // len(KINDS):
        record = source.choice(originals()[kind])
        for _ in range(source.choice([1, 1, 1, 2, 3])):
            if record:
                record, how = mutate(record, source)
        try:
            stored = jsonfile.loads(jsonfile.canonical(record), source="record")
        except DataError:
            continue  # no record can hold it
        first = accepted(stored, kind)
        if first is not second.is_valid(stored):
            assert not first, f"{how}: the second alone refuses {stored}"
            assert whole_floats(stored), f"{how}: the first alone refuses {stored}"
            said["whole numbers with an exponent"] += 1
        else:
            said["accepted" if first else "refused"] += 1
    record_property("said", dict(said))
    print(kind, dict(said))
    assert said["accepted"] > said.total() / 100
    assert said["refused"] > said.total() / 5


@pytest.mark.parametrize("size", [10, 1000])
@pytest.mark.parametrize("number", [1e21, 1e30])
def test_only_whole_numbers_with_an_exponent_are_told_apart(number: float, size: int) -> None:
    record = {**originals()["event.1"][0], "sequence": number}
    assert second_opinion("event.1").is_valid(record)
    assert not accepted(record, "event.1")
    assert accepted({**record, "sequence": size}, "event.1")
