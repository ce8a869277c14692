"""A manifest of prompts: what counts as one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gatepost.errors import DataError
from gatepost.promptfile import manifest_line, read_manifest
from gatepost.prompts import PromptIdentity

SHA = "0a" * 32
LINE = {
    "task_id": "t1",
    "arm": None,
    "input_record_sha256": SHA,
    "rendered_prompt_sha256": SHA,
    "prompt_token_ids_sha256": SHA,
    "prompt_tokens": 3,
}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in LINE.items() if key != name}


def test_a_manifest_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    lines = [PromptIdentity(**{**LINE, "task_id": task_id, "arm": arm}) for task_id in "tü" for arm in (None, "a", "b")]
    path.write_text("".join(f"{manifest_line(line)}\n" for line in lines))
    assert list(read_manifest(path)) == lines


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], ": is empty, expected at least one object"),
        ([[LINE]], ":1: is a list, expected an object"),
        *[([LINE, without(name)], f":2: {name} is missing") for name in LINE],
        ([{**LINE, "suffix": 1}], ":1: unknown suffix"),
        ([{**LINE, "task_id": 1}], ":1: task_id: found 1, expected text"),
        ([{**LINE, "arm": 1}], ":1: arm: found 1, expected text"),
        ([{**LINE, "prompt_tokens": "3"}], ":1: prompt_tokens: found '3', expected an integer"),
        ([{**LINE, "prompt_tokens": True}], ":1: prompt_tokens: found True, expected an integer"),
        ([{**LINE, "prompt_tokens": 0}], ":1: prompt_tokens is 0, expected at least 1"),
        ([{**LINE, "input_record_sha256": SHA.upper()}], ":1: input_record_sha256 is '0A.*, expected 64 hex digits"),
        ([{**LINE, "rendered_prompt_sha256": f"sha256:{SHA}"}], ":1: rendered_prompt_sha256 is 'sha256:"),
        ([{**LINE, "prompt_token_ids_sha256": f"{SHA}\n"}], ":1: prompt_token_ids_sha256 is '0a"),
        ([LINE, LINE], ":2: task_id 't1' without an arm is that of line 1 already"),
        ([{**LINE, "arm": "a"}, LINE, {**LINE, "arm": "a"}], ":3: task_id 't1' in arm a is that of line 1 already"),
    ],
)
def test_refuses_what_is_no_manifest(tmp_path: Path, lines: Sequence[Any], message: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(DataError, match=f"prompts.jsonl{message}"):
        read_manifest(path)
