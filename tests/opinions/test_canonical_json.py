"""Canonical JSON beside a JavaScript engine's, which RFC 8785 defines numbers, strings and order of keys by."""

import base64
import contextlib
import json
import math
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from gatepost import jsonfile
from gatepost.errors import DataError
from tests.every import EVERY
from tests.mutants import LEAVES, mutate
from tests.opinions.test_schema_validators import originals

PROGRAM = Path(__file__).with_name("canonical.js")
NODE = shutil.which("node")
DOUBLES = 1_000_000 if EVERY else 40_000
DOCUMENTS = 50_000 if EVERY else 1_000
BATCH = 1_000

pytestmark = pytest.mark.skipif(NODE is None, reason="needs node, a JavaScript engine, on the search path")


def ask(requests: Sequence[Any]) -> list[str]:
    """One process answers all requests, a line each."""
    lines = "\n".join(json.dumps(request) for request in requests)
    assert NODE is not None
    done = subprocess.run([NODE, str(PROGRAM)], input=lines.encode(), capture_output=True, check=True)
    return done.stdout.decode("utf-8").split("\n")[:-1]


def packed(doubles: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(doubles)}d", *doubles)).decode()


def of_bits(bits: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    return float(value)


def edges() -> Iterator[float]:
    """Where the notation changes, where a format ends, and the neighbours of each."""
    at = [10.0**exponent for exponent in range(-323, 309)] + [2.0**exponent for exponent in range(-1074, 1024)]
    at += [
        0.1,
        1 / 3,
        123456789.125,
        5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        9.5e-7,
        999999999999999.9,
    ]
    for value in at:
        for neighbour in (math.nextafter(value, 0), value, math.nextafter(value, math.inf)):
            if math.isfinite(neighbour):
                yield from (neighbour, -neighbour)
    yield from (0.0, -0.0)


def drawn(count: int) -> Iterator[float]:
    """Every edge, then bit patterns, subnormals, short decimals and whole numbers, all finite."""
    yield from edges()
    source = random.Random(8785)
    for _ in range(count):
        exponent = source.randrange(-330, 310)
        yield from filter(math.isfinite, (
            of_bits(source.getrandbits(64)),
            of_bits(source.getrandbits(52) | source.getrandbits(1) << 63),
            float(f"{source.randrange(10 ** source.randrange(1, 18))}e{exponent}"),
            float(source.randrange(-(2**70), 2**70)),
        ))  # fmt: skip


def batches(count: int) -> Iterator[list[float]]:
    doubles = list(drawn(count // 4))
    assert len(doubles) >= count
    yield from (doubles[begin : begin + BATCH] for begin in range(0, len(doubles), BATCH))


def storable(value: float) -> bool:
    """RFC 8785 writes these as integers past 2^53, which gatepost has no record hold."""
    return not 2**53 < abs(value) < 1e21


def test_doubles_are_written_alike_and_read_alike() -> None:
    asked = list(batches(DOUBLES))
    written = ask([{"doubles": packed(doubles)} for doubles in asked])
    for doubles, theirs in zip(asked, written, strict=True):
        assert rfc8785.dumps(doubles).decode() == theirs
        ours = [value for value in doubles if storable(value)]
        kept = [text for value, text in zip(doubles, theirs[1:-1].split(","), strict=True) if storable(value)]
        assert jsonfile.canonical(ours).decode() == f"[{','.join(kept)}]"
        for value in set(doubles) - set(ours):
            with pytest.raises(DataError, match="beyond 2"):
                jsonfile.canonical(value)
    texts = [jsonfile.canonical([value for value in doubles if storable(value)]).decode() for doubles in asked]
    for text, theirs in zip(texts, ask([{"read": text} for text in texts]), strict=True):
        assert packed(list(map(float, jsonfile.loads(text.encode(), source="doubles")))) == theirs


def text(source: random.Random) -> str:
    """Text of code points from every range that is written or ordered in another way, never half a pair."""
    ranges = [(0, 0x20), (0x20, 0x7F), (0x7F, 0xA0), (0x2028, 0x202A), (0xD700, 0xD800), (0xE000, 0x10000),
              (0x10000, 0x10FFFF), (0xFB00, 0xFFFF), (0x1F600, 0x1F650)]  # fmt: skip
    return "".join(chr(source.randrange(*source.choice(ranges))) for _ in range(source.randrange(6)))


def test_documents_are_written_alike() -> None:
    source = random.Random(4)
    kinds = list(originals().values())
    documents: list[Any] = [
        {"\U0001f600": 1, "\ufb33": 2, "\u20ac": 3, "\r": 4, "1": 5, "10": 6, "9": 7, "__proto__": 8}
    ]
    while len(documents) < DOCUMENTS:
        document, _ = mutate(source.choice(source.choice(kinds)), source)
        documents.append({text(source): document, **{text(source): source.choice(LEAVES) for _ in range(4)}})
    for document, theirs in zip(documents, ask([{"document": document} for document in documents]), strict=True):
        assert rfc8785.dumps(document).decode() == theirs
        with contextlib.suppress(DataError):  # a whole number past 2^53, which no record holds
            assert jsonfile.canonical(document).decode() == theirs


HALVES = {"first": "\ud800", "last": "\udfff", "at the end": "a\ud83d", "swapped": "\ude00\ud83d"}


@pytest.mark.parametrize("name", HALVES)
def test_half_a_pair_has_a_form_in_javascript_alone(name: str) -> None:
    half = HALVES[name]
    (theirs,) = ask([{"document": half}])
    assert "\\ud" in theirs
    for document in (half, {half: 1}):
        with pytest.raises(DataError, match="no canonical form"):
            jsonfile.canonical(document)
    with pytest.raises(DataError, match="lone surrogate"):
        jsonfile.loads(theirs.encode(), source="record")
