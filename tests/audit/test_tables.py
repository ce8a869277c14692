"""The audit of rows: what ``audit_trace`` says of each, in whatever batches and format they come."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gatepost.audit import RESULTS, STUDY_A, LoopRule, audit, audit_batch, audit_file, audit_trace, write_batches
from gatepost.audit.row_model import MODEL
from gatepost.audit.summary import Summary
from gatepost.errors import DataError
from tests.audit.row_tables import SUFFIXES, mixed_rows, rows_of
from tests.audit.traces import loop, text

ROOT = Path(__file__).resolve().parents[2]
RULE = LoopRule(tail_tokens=256, max_period_tokens=64, min_match_rate=0.99)


def expected(rows: pa.RecordBatch, rule: LoopRule, *, nearest: bool = False) -> list[dict[str, object]]:
    found = []
    for row in rows.to_pylist():
        ids = np.array(row["token_ids"], np.int32)[: row["thinking_tokens"]]
        keys = {name: row[name] for name in ("task_id", "sample_index", "finish_reason")}
        found.append({**keys, **audit_trace(ids, rule, compiled=False, nearest=nearest)._asdict()})
    return found


@pytest.mark.parametrize("nearest", [False, True])
def test_a_batch_is_audited_row_by_row(nearest: bool) -> None:
    rows = mixed_rows(12)
    found = audit_batch(rows, RULE, nearest=nearest)
    assert found.schema == RESULTS
    assert found.to_pylist() == expected(rows, RULE, nearest=nearest)
    assert {row["period"] is None for row in found.to_pylist()} == {True, False}


@pytest.mark.parametrize(("start", "length"), [(0, 12), (5, 4), (11, 1), (12, 0)])
def test_a_slice_is_audited_as_its_rows_are(start: int, length: int) -> None:
    rows = mixed_rows(12)
    found = audit_batch(rows.slice(start, length), RULE)
    assert found.to_pylist() == expected(rows, RULE)[start : start + length]


def test_the_audit_can_be_sent_elsewhere() -> None:
    send = pickle.dumps((audit_batch, mixed_rows(6), RULE))
    work, rows, rule = pickle.loads(send)
    assert work(rows, rule).equals(audit_batch(mixed_rows(6), RULE))


def test_thinking_alone_is_audited() -> None:
    rng = np.random.default_rng(3)
    ids = np.concatenate((loop(rng, 400, period=7), text(rng, 100)))
    cut, whole = audit_batch(rows_of([ids, ids], thinking_tokens=[400, None]), RULE).to_pylist()
    assert (cut["period"], cut["tokens"], whole["period"], whole["tokens"]) == (7, 400, None, 500)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("batch_rows", [1, 7, 64])
def test_any_format_in_any_batches(tmp_path: Path, suffix: str, batch_rows: int) -> None:
    rows, path = mixed_rows(12), tmp_path / f"rows{suffix}"
    write_batches(path, [rows])
    found = pa.Table.from_batches(audit_file(path, RULE, batch_rows=batch_rows))
    assert found.to_pylist() == expected(rows, RULE)


def test_tables_of_several_files(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("b.parquet", "a.npz")]
    for path in paths:
        write_batches(path, [mixed_rows(6)])
    table = audit(paths, RULE)
    assert table.column("file").to_pylist() == [str(path) for path in paths for _ in range(6)]
    assert table.drop_columns(["file"]).to_pylist() == 2 * expected(mixed_rows(6), RULE)
    assert audit(str(paths[0]), RULE).equals(table.slice(0, 6))
    with pytest.raises(DataError, match=r"a.npz: is named 2 times, expected once"):
        audit([paths[1], paths[0], paths[1]])
    with pytest.raises(DataError, match="no files to audit"):
        audit([])


def test_rows_of_an_archive() -> None:
    table = audit(ROOT / "receipts" / "native-seam-gpu", LoopRule(64, 16, 0.9))
    assert table.num_rows > 50
    assert set(table.column("finish_reason").to_pylist()) <= {"stop", "length"}
    files = list(dict.fromkeys(table.column("file").to_pylist()))
    assert all(file.endswith("rows.parquet") for file in files)
    assert len(files) > 1


@pytest.mark.parametrize(("folder", "message"), [("engine-geometry-too-wide", "holds no step with rows"), ("", "")])
def test_an_archive_without_rows(folder: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message or "holds no archive"):
        audit(ROOT / "receipts" / folder if folder else tmp_path)


@pytest.mark.parametrize("batch_rows", [1, 3, 64])
def test_a_sample_that_comes_twice(tmp_path: Path, batch_rows: int) -> None:
    rows = mixed_rows(9)
    write_batches(tmp_path / "rows.arrow", [rows, rows.slice(4, 1)])
    with pytest.raises(DataError, match=r"rows.arrow: row 9 is of the same task and sample as row 4"):
        list(audit_file(tmp_path / "rows.arrow", RULE, batch_rows=batch_rows))


def test_keys_that_look_alike_are_two(tmp_path: Path) -> None:
    keys = {"task_id": ["a', 1", "a", "a"], "sample_index": [1, 1, 11], "token_ids": [[1]] * 3}
    empty = {"thinking_tokens": [None] * 3, "finish_reason": [None] * 3}
    write_batches(tmp_path / "rows.npz", [pa.RecordBatch.from_pydict({**keys, **empty}, schema=MODEL)])
    assert audit(tmp_path / "rows.npz").num_rows == 3


@pytest.mark.parametrize(
    ("loops", "rows", "limit", "within"),
    [
        (1, 4, 0.25, True),
        (1, 4, 0.2499, False),
        (0, 4, 0.0, True),
        (1, 4, 0.0, False),
        (4, 4, 1.0, True),
        (0, 0, 1.0, False),
        (4, 4, None, None),
    ],
)
def test_both_sides_of_the_share(loops: int, rows: int, limit: float | None, within: bool | None) -> None:
    summary = Summary(STUDY_A, max_loop_share=limit)
    for number in range(rows):
        period = 5 if number < loops else None
        summary.add(Path("x"), {"tokens": 9, "period": period, "wasted_tokens": 4, "finish_reason": None})
    assert summary.within_limit is within
    assert (summary.loops, summary.wasted_tokens, summary.tokens) == (loops, 4 * loops, 9 * rows)


def test_without_numpy_the_extra_is_named_and_a_replay_needs_none() -> None:
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "import gatepost.audit.rows, gatepost.replay\n"
        "from gatepost.__main__ import main\n"
        "sys.exit(main(['audit', 'rows.parquet']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "gatepost: the audit of rows needs numpy, which is not installed: pip install 'gatepost[audit]'\n"
    )


def test_the_compiled_path_says_the_same(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    assert audit_batch(mixed_rows(12), RULE, compiled=True).equals(audit_batch(mixed_rows(12), RULE))
