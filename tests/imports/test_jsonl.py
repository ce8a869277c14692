"""Rows as JSON lines: every field by its own name and of its own kind, or one sentence."""

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from gatepost.audit.jsonl import FORCED, REQUIRED, read_rows
from gatepost.errors import DataError
from gatepost.evidence import Row
from gatepost.fingerprint import RowKey
from gatepost.jsonfile import MAX_RECORD_BYTES

PLAIN: dict[str, Any] = {
    "task_id": "t", "sample_index": 0, "seed": 1, "prompt_tokens": 9, "token_ids": [5, 7], "finish_reason": "stop",
}  # fmt: skip
CLOSED: dict[str, Any] = {
    **PLAIN, "stage_two_seed": 3, "stage_one_finish_reason": "length", "injected_start": 1, "injected_tokens": 1,
    "reprefilled_tokens": 11,
}  # fmt: skip


def read(folder: Path, *rows: dict[str, Any]) -> list[Row]:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_rows(path))


def test_rows_are_read_as_they_are(tmp_path: Path) -> None:
    second = {**CLOSED, "sample_index": 1, "forward_input_lengths": [9, 1], "claims": {"a": 1}}
    assert read(tmp_path, PLAIN, second) == [
        Row(RowKey("t", 0), 1, 9, array("i", [5, 7]), None, "stop", {}),
        Row(RowKey("t", 1), 1, 9, array("i", [5, 7]), array("i", [9, 1]), "stop", {"a": 1}, 3, "length", 1, 1, 11),
    ]  # fmt: skip


def test_a_row_without_a_reason_is_read_as_one(tmp_path: Path) -> None:
    assert read(tmp_path, {**PLAIN, "finish_reason": None})[0].finish_reason is None


@pytest.mark.parametrize("field", REQUIRED)
def test_a_missing_field(tmp_path: Path, field: str) -> None:
    row = {name: value for name, value in PLAIN.items() if name != field}
    with pytest.raises(DataError, match=rf"rows.jsonl:1: field '{field}' is missing; the fields of a row are task_id"):
        read(tmp_path, row)


@pytest.mark.parametrize("field", FORCED)
def test_half_a_forced_close(tmp_path: Path, field: str) -> None:
    row = {name: value for name, value in CLOSED.items() if name != field}
    with pytest.raises(DataError, match=rf"rows.jsonl:1: field '{field}' is missing"):
        read(tmp_path, row)


@pytest.mark.parametrize("field", ["trace_index", "generated_token_ids", "stopped_by", "n_thinking_tokens", "Seed"])
def test_the_name_of_another_runner(tmp_path: Path, field: str) -> None:
    with pytest.raises(DataError, match=rf"rows.jsonl:2: field '{field}' is not one; the fields of a row are"):
        read(tmp_path, PLAIN, {**PLAIN, "sample_index": 1, field: 1})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", ""),
        ("task_id", 1),
        ("sample_index", "0"),
        ("sample_index", True),
        ("seed", 2**31),
        ("seed", -1),
        ("prompt_tokens", 1.0),
        ("token_ids", "57"),
        ("token_ids", [2**31]),
        ("token_ids", [-1]),
        ("token_ids", [None]),
        ("finish_reason", ""),
        ("finish_reason", 1),
        ("stage_two_seed", None),
        ("injected_start", None),
        ("stage_one_finish_reason", 0),
        ("claims", []),
        ("forward_input_lengths", [True]),
    ],
)
def test_a_field_of_another_kind(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(DataError, match=rf"rows.jsonl:1: {field} is .*, expected"):
        read(tmp_path, {**CLOSED, field: value})


@pytest.mark.parametrize(
    ("start", "injected", "fits"),
    [(0, 2, True), (1, 1, True), (2, 0, True), (1, 2, False), (0, 3, False), (3, 0, False)],
)
def test_what_was_injected_lies_among_the_ids(tmp_path: Path, start: int, injected: int, fits: bool) -> None:
    row = {**CLOSED, "injected_start": start, "injected_tokens": injected}
    if fits:
        assert read(tmp_path, row)[0].sampled_tokens == 2 - injected
        return
    with pytest.raises(DataError, match=rf"rows.jsonl:1: injected_tokens is '{injected}', expected at most .*2 ids"):
        read(tmp_path, row)


@pytest.mark.parametrize(("limit", "fits"), [(2**31 - 1, True), (2**31, False)])
def test_the_largest_number(tmp_path: Path, limit: int, fits: bool) -> None:
    for field, value in (("seed", limit), ("token_ids", [limit])):
        if fits:
            assert read(tmp_path, {**PLAIN, field: value})
        else:
            with pytest.raises(DataError, match=field):
                read(tmp_path, {**PLAIN, field: value})


def test_lines_that_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for data, message in (
        (b"", "is empty, expected a row a line"),
        (b"[1]\n", "rows.jsonl:1: field 'finish_reason' is missing"),
        (json.dumps(PLAIN).encode() + b"\n{", "rows.jsonl:2: not JSON"),
        (b'{"seed": NaN}\n', "rows.jsonl:1: NaN is not a JSON number"),
        (b"\xff\n", "rows.jsonl:1: byte 0 is not UTF-8"),
    ):
        path.write_bytes(data)
        with pytest.raises(DataError, match=message):
            list(read_rows(path))


def test_a_row_twice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows.jsonl:3: t/0 is that of line 1"):
        read(tmp_path, PLAIN, {**PLAIN, "sample_index": 1}, PLAIN)


def test_a_folder_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not a regular file"):
        list(read_rows(tmp_path))


def test_a_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with path.open("wb") as stream:
        stream.truncate(MAX_RECORD_BYTES + 1)
    with pytest.raises(DataError, match=rf"rows.jsonl:1: is longer than {MAX_RECORD_BYTES} bytes, expected a row"):
        list(read_rows(path))
