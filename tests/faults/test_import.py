"""A published run with a field of another type, or rows that do not fit each other, is refused by one sentence."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatepost.audit.native_seam import import_run, read_run
from gatepost.errors import DataError

Rows = list[dict[str, Any]]


def published() -> tuple[Rows, Rows]:
    """Two rows in the compact layout: ids, and text."""
    keys = [{"task_id": "t0", "trace_index": index} for index in range(2)]
    rest = {
        "seed": 1, "prompt_tokens": 5, "generated_token_ids": [1, 2], "natural_close": False, "close_step": None,
        "think_tokens": 2, "answer_tokens": 0, "stopped_by": "eos", "cache_contract_pass": True, "forward_calls": 2,
    }  # fmt: skip
    return [{**key, **rest} for key in keys], [{**key, "generated_text": "thought"} for key in keys]


def write(folder: Path, tokens: Rows, decoded: Rows) -> Path:
    for name, rows in (("rows_tokens", tokens), ("rows_decoded", decoded)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def test_a_sound_run_is_read(tmp_path: Path) -> None:
    tokens, decoded = published()
    tokens[0]["forward_input_lengths"] = [5, 1]
    assert len(read_run(write(tmp_path, tokens, decoded)).rows) == 2


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("seed", "x", "an integer"),
        ("seed", True, "an integer"),
        ("seed", 2**40, "an integer"),
        ("prompt_tokens", 1.5, "an integer"),
        ("trace_index", "0", "an integer"),
        ("task_id", 5, "text"),
        ("task_id", ["a"], "text"),
        ("generated_token_ids", "abc", "a list of integers"),
        ("generated_token_ids", [True], "a list of integers"),
        ("generated_token_ids", [2**31], "a list of integers"),
        ("forward_input_lengths", None, "a list of integers"),
        ("forward_input_lengths", [-1], "a list of integers"),
        ("stopped_by", 5, "text"),
        ("natural_close", "yes", "true or false"),
        ("close_step", 1.5, "an integer"),
        ("cache_contract_pass", 1, "true or false"),
    ],
)
def test_a_field_of_another_type(tmp_path: Path, field: str, value: object, expected: str) -> None:
    tokens, decoded = published()
    tokens[1][field] = value
    with pytest.raises(DataError, match=rf"rows_tokens.jsonl.gz:2: field '{field}' is .*, expected {expected}"):
        read_run(write(tmp_path, tokens, decoded))


@pytest.mark.parametrize("field", sorted(published()[0][0]))
def test_a_missing_field(tmp_path: Path, field: str) -> None:
    tokens, decoded = published()
    del tokens[0][field]
    with pytest.raises(DataError, match=rf"rows_tokens.jsonl.gz:1: field '{field}' is missing, expected"):
        read_run(write(tmp_path, tokens, decoded))


Change = Callable[[Rows, Rows], None]
MISFITS: dict[str, tuple[Change, str]] = {
    "a row twice": (lambda tokens, _: tokens.append(tokens[0]), r"rows_tokens.*:3: 't0' trace 0 is that of line 1"),
    "a text twice": (lambda _, decoded: decoded.append(decoded[0]), r"rows_decoded.*:3: .* is that of line 1"),
    "a text of no row": (lambda tokens, _: tokens.clear(), r"rows_decoded.*: 't0' trace 0 has text, but no"),
    "no text": (lambda _, decoded: decoded.clear(), r"no text for 't0' trace 0"),
    "text that is null": (lambda _, decoded: decoded[0].update(generated_text=None), r":1: field 'generated_text' is"),
    "text left out": (lambda _, decoded: decoded[0].pop("generated_text"), r":1: field 'generated_text' is missing"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_rows_that_do_not_fit_each_other(tmp_path: Path, name: str) -> None:
    change, message = MISFITS[name]
    tokens, decoded = published()
    change(tokens, decoded)
    with pytest.raises(DataError, match=message):
        read_run(write(tmp_path, tokens, decoded))


def test_a_file_where_the_archives_should_go(tmp_path: Path) -> None:
    source = write(tmp_path, *published())
    (tmp_path / "receipts").write_text("")
    with pytest.raises(DataError, match=r"receipts: cannot be the folder of archives"):
        import_run(source, tmp_path / "receipts")
