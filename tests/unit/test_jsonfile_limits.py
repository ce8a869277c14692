"""The limits of the strict reader, on both sides, and the file that a refusal names."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.errors import DataError, IntegrityError

NESTED: dict[str, Callable[[int], bytes]] = {
    "lists": lambda depth: b"[" * depth + b"1" + b"]" * depth,
    "objects": lambda depth: b'{"a":' * depth + b"1" + b"}" * depth,
    "both": lambda depth: b'[{"a":' * (depth // 2) + b"[" * (depth % 2) + b"1" + b"]" * (depth % 2)
    + b"}]" * (depth // 2),
}  # fmt: skip


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize(("depth", "fits"), [(1, True), (199, True), (200, False), (201, False)])
def test_nesting(kind: str, depth: int, fits: bool) -> None:
    data = NESTED[kind](depth)
    if fits:
        jsonfile.loads(data, source="x.json")
        return
    with pytest.raises(DataError) as refused:
        jsonfile.loads(data, source="x.json")
    assert str(refused.value) == "x.json: nested deeper than 200 levels"


@pytest.mark.parametrize("kind", NESTED)
def test_what_is_written_can_be_read(kind: str) -> None:
    document: Any = jsonfile.loads(NESTED[kind](199), source="x.json")
    assert jsonfile.canonical(document) == NESTED[kind](199)
    with pytest.raises(DataError) as refused:
        jsonfile.canonical([document], source="x.json")
    assert str(refused.value) == "x.json: has no canonical form: x.json: nested deeper than 200 levels"


@pytest.mark.parametrize("read", [jsonfile.read, jsonfile.read_canonical, jsonfile.read_frozen])
def test_a_record_has_a_largest_size(read: Callable[[Path], object], tmp_path: Path) -> None:
    path, most = tmp_path / "x.json", jsonfile.MAX_RECORD_BYTES
    path.touch()
    os.truncate(path, most + 1)
    with pytest.raises(DataError) as refused:
        read(path)
    assert str(refused.value) == f"{path}: is {most + 1} bytes long, expected at most {most}"


@pytest.mark.parametrize(("at_most", "fits"), [(4, True), (3, False), (5, True), (None, True)])
def test_bytes_are_read_whole_or_not_at_all(at_most: int | None, fits: bool, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"four")
    if fits:
        assert jsonfile.read_bytes(path, at_most=at_most) == b"four"
        return
    with pytest.raises(DataError) as refused:
        jsonfile.read_bytes(path, at_most=at_most)
    assert str(refused.value) == f"{path}: is 4 bytes long, expected at most {at_most}"


def test_a_folder_is_listed_in_order_and_a_file_is_no_folder(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name).touch()
    assert [path.name for path in jsonfile.entries(tmp_path)] == ["a", "b", "c"]
    assert jsonfile.entries(tmp_path / "absent") == []
    with pytest.raises(IntegrityError) as refused:
        jsonfile.entries(tmp_path / "a")
    assert str(refused.value) == f"{tmp_path}/a: is a file, expected a folder"


@pytest.mark.parametrize("read", [jsonfile.read, jsonfile.read_canonical, jsonfile.read_frozen])
def test_a_refusal_names_the_file(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a":1,"a":2}')
    with pytest.raises(DataError) as refused:
        read(path)
    assert str(refused.value) == f"{path}: key 'a' appears twice in one object"


@pytest.mark.parametrize("read", [jsonfile.read_canonical, jsonfile.read_frozen])
def test_what_is_frozen_is_stored_in_one_form(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": 1}')
    assert jsonfile.read(path) == {"a": 1}
    with pytest.raises(IntegrityError) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}: bytes are not the RFC 8785 form of their content")


def test_what_has_no_canonical_form_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(DataError) as refused:
        jsonfile.write_canonical(path, {"a": 2**53 + 1})
    assert str(refused.value).startswith(f"{path}: has no canonical form: ")
    assert list(tmp_path.iterdir()) == []
    assert jsonfile.write_canonical(path, {"b": 1, "a": 2}) == path.read_bytes() == b'{"a":2,"b":1}'


@pytest.mark.parametrize(("known", "named"), [(None, "x.json"), ("other.json", "other.json")])
def test_an_error_of_a_write_names_its_file(
    known: str | None, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error", known and str(tmp_path / known))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output") as refused:
        jsonfile.write_new(tmp_path / "x.json", b"{}")
    assert refused.value.filename == str(tmp_path / named)
