"""The strict reader and the durable writer: both sides of every refusal, and nothing half-written."""

import contextlib
import errno
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from gatepost import jsonfile
from gatepost.errors import DataError, IntegrityError
from tests.bad_json import BAD

ACCEPTED = {
    "float": (b'{"rate":0.05}', {"rate": 0.05}),
    "minus_zero": (b'{"x":-0.0}', {"x": -0.0}),
    "integer_2_53": (b"9007199254740992", 2**53),
    "minus_integer_2_53": (b"-9007199254740992", -(2**53)),
    "surrogate_pair": (b'"\\ud83d\\ude00"', "\U0001f600"),
    "underflow": (b"1e-400", 0.0),
    "white_space": (b" {\n} ", {}),
    "exponent_integer": (b"1e2", 100.0),
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("columns", [frozenset(), frozenset({"token_ids"})], ids=["whole", "columns"])
def test_refuses(name: str, columns: frozenset[str]) -> None:
    data, said = BAD[name]
    with pytest.raises(DataError, match=rf"^protocol\.json: .*{re.escape(said)}"):
        jsonfile.loads(data, source="protocol.json", columns=columns)


@pytest.mark.parametrize("data", [b"", b" ", b"\n"])
def test_nothing_is_no_document(data: bytes) -> None:
    with pytest.raises(DataError, match=r"^x: not JSON at line"):
        jsonfile.loads(data, source="x")


@pytest.mark.parametrize(("depth", "fits"), [(199, True), (200, False)])
def test_depth(depth: int, fits: bool) -> None:
    data = b"[" * depth + b"1" + b"]" * depth
    with contextlib.nullcontext() if fits else pytest.raises(DataError, match="deeper than 200"):
        jsonfile.loads(data, source="x")


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepts(name: str) -> None:
    data, value = ACCEPTED[name]
    assert jsonfile.loads(data, source="x") == value


def test_minus_zero_is_canonically_zero() -> None:
    assert jsonfile.canonical({"x": -0.0}) == b'{"x":0}'


def test_canonical_form_is_rfc_8785() -> None:
    document = {"b": [1.0, 1e21, 1e-7, 0.1], "a": "\u20ac\n", "\u00f6": None}
    assert jsonfile.canonical(document) == '{"a":"€\\n","b":[1,1e+21,1e-7,0.1],"ö":null}'.encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53 + 1, 2.0**53 + 2, "\ud800"])
def test_has_no_canonical_form(value: object) -> None:
    with pytest.raises(DataError, match="canonical"):
        jsonfile.canonical({"x": value})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_round_trip(value: object) -> None:
    data = jsonfile.canonical(value)
    assert jsonfile.canonical(jsonfile.loads_canonical(data, source="x")) == data


@given(json_values)
def test_only_canonical_bytes_are_taken_for_frozen(value: object) -> None:
    pretty = json.dumps(value, indent=1).encode()
    if pretty != rfc8785.dumps(value):
        with pytest.raises(DataError):
            jsonfile.loads_canonical(pretty, source="x")


@given(st.binary(max_size=40))
def test_any_bytes_give_a_value_or_a_data_error(data: bytes) -> None:
    with contextlib.suppress(DataError):
        jsonfile.loads(data, source="x")


def test_write_new_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    jsonfile.write_new(path, b"one")
    with pytest.raises(IntegrityError, match="exists already"):
        jsonfile.write_new(path, b"two")
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["receipt.json"]


@pytest.mark.parametrize("call", ["fsync", "link"])
def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space"):
        jsonfile.write_new(tmp_path / "receipt.json", b"data")
    assert names(tmp_path) == []


def test_a_write_that_cannot_be_read_back_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"other")
    with pytest.raises(IntegrityError, match="read back"):
        jsonfile.write_new(tmp_path / "receipt.json", b"data")
    assert names(tmp_path) == []


@pytest.mark.parametrize("call", ["os.fsync", "os.link"])
def test_a_killed_write_leaves_no_file_of_that_name(tmp_path: Path, call: str) -> None:
    program = (
        "import os, signal, pathlib\nfrom gatepost import jsonfile\n"
        f"{call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"jsonfile.write_new(pathlib.Path({str(tmp_path / 'receipt.json')!r}), b'x' * 100000)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert not (tmp_path / "receipt.json").exists()
    assert all(name.startswith(jsonfile.TEMPORARY_PREFIX) for name in names(tmp_path))


def test_reads_only_regular_files(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_bytes(b"{}")
    (tmp_path / "link.json").symlink_to(real)
    os.mkfifo(tmp_path / "pipe.json")
    assert jsonfile.read(real) == {}
    with pytest.raises(IntegrityError, match="symbolic link"):
        jsonfile.read_bytes(tmp_path / "link.json")
    with pytest.raises(IntegrityError, match="not a regular file"):
        jsonfile.read_bytes(tmp_path / "pipe.json")
    with pytest.raises(IntegrityError, match="not a regular file"):
        jsonfile.read_bytes(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        jsonfile.read_bytes(tmp_path / "absent.json")


@pytest.mark.parametrize("repeated", ["k0", "k99999"])
def test_a_repeated_key_among_many_is_found_in_time(repeated: str) -> None:
    members = ",".join(f'"k{index}":1' for index in range(100_000))
    began = time.process_time()
    with pytest.raises(DataError, match=rf"many: key '{repeated}' appears twice in one object"):
        jsonfile.loads(f'{{{members},"{repeated}":1}}'.encode(), source="many")
    assert time.process_time() - began < 2
