"""JSON lines of the audit: strict as every JSON here, and without a look at each number of a good list."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatepost.audit.row_model import MAX_ROW_IDS, id_list
from gatepost.errors import DataError
from tests.audit.row_tables import read

LINE: dict[str, Any] = {"task_id": "t", "sample_index": 0, "token_ids": [5, 7], "thinking_tokens": 1, "text": "…"}


def with_fields(**fields: Any) -> str:
    return json.dumps({**LINE, "sample_index": 1, **fields})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (with_fields(token_ids=[5, True]), r"token_ids\[1\] is True, expected a whole number in \[0, 2147483648\)"),
        (with_fields(token_ids=[5.0]), r"token_ids\[0\] is 5.0, expected"),
        (with_fields(token_ids=[5, -1]), r"token_ids\[1\] is -1, expected"),
        (with_fields(token_ids=[2**31]), r"token_ids\[0\] is 2147483648, expected"),
        (with_fields(token_ids=[10**30]), r"token_ids\[0\] is 1000000000000000000000000000000, expected"),
        (with_fields(token_ids=["5"]), r"token_ids\[0\] is 5, expected"),
        (with_fields(token_ids=[None]), r"token_ids\[0\] is None, expected"),
        (with_fields(token_ids=[[5]]), r"token_ids\[0\] is \[5\], expected"),
        (with_fields(token_ids="57"), r"token_ids is '57', expected a list"),
        (with_fields(task_id=""), r"task_id is '', expected text"),
        (with_fields(sample_index=True), r"sample_index is 'True', expected a whole number"),
        (with_fields(sample_index=-1), r"sample_index is '-1', expected a whole number"),
        (with_fields(sample_index=2**31), r"sample_index is '2147483648', expected a whole number"),
        (with_fields(thinking_tokens=3), r"thinking_tokens is '3', expected a whole number in \[0, 2\]"),
        (with_fields(thinking_tokens=1.0), r"thinking_tokens is '1.0', expected a whole number"),
        (
            with_fields(finish_reason="stop"),
            r"field 'finish_reason' is new, expected those of line 1: sample_index, task",
        ),
        (json.dumps({**LINE, "thinking_tokens": None})[:-1], r"not JSON"),
        (
            '{"task_id": "t", "sample_index": 1, "token_ids": [5]}',
            r"field 'thinking_tokens' is missing, expected those",
        ),
        ('{"task_id": "t", "token_ids": [5], "thinking_tokens": 1}', r"field sample_index is missing"),
        (with_fields()[:-1] + ', "token_ids": [1]}', r"key 'token_ids' appears twice"),
        (with_fields(score=float("nan")), r"NaN is not a JSON number"),
        (with_fields(seed=2**53 + 1), r"integer 9007199254740993 is beyond 2\^53"),
        (with_fields()[:-1] + ', "n": 1e999}', r"number 1e999 overflows a double"),
        (with_fields()[:-1] + f', "n": {"9" * 5000}}}', r"an integer is beyond 2\^53"),
        (with_fields(task_id="\ud800"), r"a string holds a lone surrogate"),
        (with_fields() + " {}", r"not JSON at line 1 column \d+: Extra data"),
        ("", r"not JSON"),
        ("[1]", r"field task_id is missing"),
    ],
)
def test_a_line_that_is_no_row(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(LINE)}\n{line}\n")
    with pytest.raises(DataError, match=rf"rows.jsonl:2: {message}"):
        read(tmp_path / "rows.jsonl")


def test_a_line_of_an_archive_is_a_row(tmp_path: Path) -> None:
    """As ``gatepost.audit.jsonl`` has them."""
    line = {
        "task_id": "t",
        "sample_index": 0,
        "seed": 1,
        "prompt_tokens": 9,
        "token_ids": [5, 7, 8],
        "injected_start": 2,
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(line))
    (row,) = read(tmp_path / "rows.jsonl").to_pylist()
    assert (row["token_ids"], row["thinking_tokens"]) == ([5, 7, 8], 2)


@pytest.mark.parametrize(("length", "fits"), [(MAX_ROW_IDS, True), (MAX_ROW_IDS + 1, False)])
def test_the_longest_list(length: int, fits: bool) -> None:
    if fits:
        assert len(id_list([0] * length, "ids")) == length
        return
    with pytest.raises(DataError, match=f"ids holds {length} ids, expected at most {MAX_ROW_IDS}"):
        id_list([0] * length, "ids")
