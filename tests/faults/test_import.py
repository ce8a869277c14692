"""A published run with a field of another type, or rows that do not fit each other, is refused by one sentence."""

import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatepost.audit.imports import published_bytes
from gatepost.audit.native_seam import SPLITS, import_run, read_run
from gatepost.errors import DataError, IntegrityError
from gatepost.jsonfile import MAX_RECORD_BYTES, TEMPORARY_PREFIX

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


def with_tasks(folder: Path, tasks: bytes) -> Path:
    for split in SPLITS:
        (folder / f"tasks_{split}.jsonl").write_bytes(tasks)
    return write(folder, *published())


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (b"", r": is empty, expected"),
        (b'{"task_id": "t"}\n{', r":2: not JSON at line 1"),
        (b'{"task_id": "t"}\n{"task_id": 1}\n', r":2: field task_id is 1, expected"),
    ],
)
def test_tasks_that_are_none_are_named_where_they_were_published(tmp_path: Path, tasks: bytes, message: str) -> None:
    into = tmp_path / "receipts"
    with pytest.raises(DataError, match=f"^{tmp_path}/tasks_budget_selection.jsonl{message}") as refused:
        import_run(with_tasks(tmp_path, tasks), into)
    assert ".writing-" not in str(refused.value)
    assert list(into.iterdir()) == []


@pytest.mark.parametrize(("unpacked_bytes", "fits"), [(MAX_RECORD_BYTES, True), (MAX_RECORD_BYTES + 1, False)])
def test_what_is_packed_is_bounded(tmp_path: Path, unpacked_bytes: int, fits: bool) -> None:
    path = tmp_path / "rows_tokens.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(unpacked_bytes), 1))
    if fits:
        assert len(published_bytes(path)) == unpacked_bytes
        return
    with pytest.raises(DataError, match=rf"rows_tokens.jsonl.gz: unpacks to more than {MAX_RECORD_BYTES} bytes"):
        published_bytes(path)


def test_several_packed_members_and_a_cut_one(tmp_path: Path) -> None:
    path = tmp_path / "rows_tokens.jsonl.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert published_bytes(path) == b"a\nb\n"
    for data in (path.read_bytes()[:-3], path.read_bytes() + b"trailing", b"\x1f\x8b"):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"rows_tokens.jsonl.gz: not a readable gzip file"):
            published_bytes(path)


def test_what_is_not_packed_is_bounded_too(tmp_path: Path) -> None:
    path = tmp_path / "audits.json"
    with path.open("wb") as stream:
        stream.truncate(MAX_RECORD_BYTES + 1)
    with pytest.raises(DataError, match=rf"audits.json: is {MAX_RECORD_BYTES + 1} bytes long, expected at most"):
        published_bytes(path)


KILLED = """
import os, signal, sys
from pathlib import Path
from gatepost.audit import imports, native_seam

imports.plan = lambda *args, **options: os.kill(os.getpid(), signal.SIGKILL)
native_seam.import_run(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_what_a_killed_import_left_is_gone_after_the_next(tmp_path: Path) -> None:
    source, into = with_tasks(tmp_path, b""), tmp_path / "receipts"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(source), str(into)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = into.iterdir()
    assert left.name.startswith(TEMPORARY_PREFIX)
    (left / "archive" / "steps").mkdir(parents=True)
    with pytest.raises(DataError, match=r"tasks_budget_selection.jsonl: is empty"):
        import_run(source, into)
    assert list(into.iterdir()) == []


def test_an_import_beside_another_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    source, into = with_tasks(tmp_path, b""), tmp_path / "receipts"
    used = into / f"{TEMPORARY_PREFIX}import-native_seam"
    (used / "half").mkdir(parents=True)
    descriptor = os.open(used, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(IntegrityError, match=f"^{used}: another import is at work here"):
            import_run(source, into)
    finally:
        os.close(descriptor)
    assert [path.name for path in used.iterdir()] == ["half"]


def test_a_link_is_not_built_in(tmp_path: Path) -> None:
    source, into, elsewhere = with_tasks(tmp_path, b""), tmp_path / "receipts", tmp_path / "elsewhere"
    into.mkdir()
    (elsewhere / "kept").mkdir(parents=True)
    (into / f"{TEMPORARY_PREFIX}import-native_seam").symlink_to(elsewhere)
    with pytest.raises(IntegrityError, match=r"import-native_seam: cannot be built in"):
        import_run(source, into)
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]


def test_a_file_where_the_archives_should_go(tmp_path: Path) -> None:
    source = with_tasks(tmp_path, b"")
    (tmp_path / "receipts").write_text("")
    with pytest.raises(DataError, match=r"receipts: cannot be the folder of archives"):
        import_run(source, tmp_path / "receipts")
