"""``gatepost audit``: what it prints, what it writes, how it ends, and that it looks at nothing but ids."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatepost import audit_command
from gatepost.__main__ import main
from gatepost.audit import LoopRule, audit, write_batches
from tests.archives import create_project
from tests.audit.row_tables import SUFFIXES, mixed_rows, rows_of

RULE = ["--tail-tokens", "256", "--max-period-tokens", "64"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Twelve rows, of which some loop."""
    write_batches(tmp_path / "rows.parquet", [mixed_rows(12)])
    return tmp_path / "rows.parquet"


def loops_of(path: Path) -> int:
    return sum(period is not None for period in audit(path, LoopRule(256, 64, 0.99)).column("period").to_pylist())


def test_what_is_printed(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(rows), *RULE]) == 0
    lines, loops = capsys.readouterr().out.splitlines(), loops_of(rows)
    assert 0 < loops < 12
    assert lines[0] == "rule: the last 256 ids, periods up to 64, at least 0.99 match"
    assert lines[1].startswith("read: 1 file, 12 rows, ")
    assert lines[2].startswith(f"loops: {loops} of 12 rows ({loops / 12:.4f}), ")
    assert len(lines) == 3 + loops
    assert lines[3].startswith(f"  {rows}: task-")


def test_the_rule_is_study_as_where_none_is_named(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(rows)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "rule: the last 8192 ids, periods up to 2048, at least 0.99 match (study A's, as registered)\n"
    )
    assert "loops: 0 of 12 rows (0.0000), 0 ids only repeat\n" in said


def document_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["audit", *arguments, *RULE, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_holds_the_table(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, str(rows))
    table = audit(rows, LoopRule(256, 64, 0.99)).drop_columns(["file"])
    assert document["rule"] == {"tail_tokens": 256, "max_period_tokens": 64, "min_match_rate": 0.99}
    assert document["files"] == [{"path": str(rows), "rows": table.to_pylist()}]
    loops, reasons = loops_of(rows), [row["finish_reason"] for row in table.to_pylist() if row["period"] is not None]
    assert document["summary"] == {
        "files": 1,
        "rows": 12,
        "tokens": sum(table.column("tokens").to_pylist()),
        "loops": loops,
        "loop_share": loops / 12,
        "loops_by_finish_reason": {
            name: reasons.count(reason) for name, reason in (("length", "length"), ("unknown", None))
        },
        "wasted_tokens": sum(filter(None, table.column("wasted_tokens").to_pylist())),
        "max_loop_share": None,
        "within_limit": None,
    }


def test_json_is_the_same_whatever_the_batches_and_the_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = set()
    for number, suffix in enumerate(SUFFIXES):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_batches(folder / f"x{suffix}", [mixed_rows(12).slice(start, 3) for start in range(0, 12, 3)])
        (folder / f"x{suffix}").rename(folder / "rows")
        monkeypatch.chdir(folder)
        assert main(["audit", "rows", *RULE, "--json"]) == 0
        documents.add(capsys.readouterr().out)
    assert len(documents) == 1


def test_json_in_a_new_file(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", str(rows), *RULE]
    assert main([*arguments, "--json"]) == 0
    document = capsys.readouterr().out
    assert main([*arguments, "-o", str(tmp_path / "audit.json")]) == 0
    assert (tmp_path / "audit.json").read_text() == document
    assert capsys.readouterr().out.startswith("rule: ")
    assert main([*arguments, "-o", str(tmp_path / "audit.json")]) == 1
    assert "audit.json: exists already" in capsys.readouterr().err
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["audit.json", "rows.parquet"]


@pytest.mark.parametrize("output", [["--json"], ["-o", "audit.json"], []])
def test_nothing_is_half_written(
    rows: Path, tmp_path: Path, output: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"task_id": "t", "sample_index": 0, "token_ids": [1, true]}\n')
    assert main(["audit", "rows.parquet", "bad.jsonl", *RULE, *output]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "gatepost: bad.jsonl:1: token_ids[1] is True, expected a whole number in [0, 2147483648)\n"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bad.jsonl", "rows.parquet"]


def test_the_limit_decides_the_exit_status(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loops = loops_of(rows)
    for share, status, answer in ((loops / 12, 0, "yes"), ((loops - 0.5) / 12, 1, "no")):
        assert main(["audit", str(rows), *RULE, "--max-loop-share", str(share)]) == status
        assert capsys.readouterr().out.splitlines()[-1] == f"loop_share {loops / 12} <= {share}: {answer}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tail-tokens", "0"], "0 is not a whole number from 1 on"),
        (["--tail-tokens", "x"], "'x'"),
        (["--max-period-tokens", "-1"], "-1 is not a whole number from 1 on"),
        (["--min-match-rate", "1.01"], "1.01 is not in [0, 1]"),
        (["--min-match-rate", "nan"], "nan is not in [0, 1]"),
        (["--max-loop-share", "-0.1"], "-0.1 is not in [0, 1]"),
        (["--format", "csv"], "'csv'"),
        (["--json", "-o", "x"], "not allowed with"),
    ],
)
def test_wrong_usage(rows: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["audit", str(rows), *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.parquet"], "none.parquet: does not exist"),
        (["rows.parquet", "--format", "npz"], "rows.parquet: row 0: not a readable npz file"),
        (["rows.parquet", "--tail-tokens", "64", "--max-period-tokens", "64"], "expected less than the tail of 64"),
        (["rows.parquet", "--min-match-rate", "0"], "min_match_rate is 0.0, expected a number above 0"),
        (["rows.parquet", "rows.parquet"], "rows.parquet: is named 2 times"),
        (["."], ".: holds no archive"),
    ],
)
def test_refused(
    rows: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(rows.parent)
    assert main(["audit", *arguments]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err


def test_text_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A column of text whose pages are damaged: whoever read them would know."""
    rows = mixed_rows(12)
    secret = pa.array(["what was said " * 200] * 12)
    table = pa.table({**dict(zip(rows.schema.names, rows.columns, strict=True)), "text": secret})
    pq.write_table(table, tmp_path / "rows.parquet", write_page_checksum=True, compression=None, use_dictionary=False)
    data = bytearray((tmp_path / "rows.parquet").read_bytes())
    data[data.index(b"what was said") + 20_000] ^= 1  # behind the least and the largest of the page header
    (tmp_path / "rows.parquet").write_bytes(data)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(tmp_path / "rows.parquet", page_checksum_verification=True).read()
    assert document_of(capsys, str(tmp_path / "rows.parquet"))["summary"]["rows"] == 12


def test_an_archive_is_audited_in_ladder_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.run(archive)
    document = document_of(capsys, str(archive.root))
    steps = [Path(file["path"]).parent.name for file in document["files"]]
    sampled = [str(step) for step in archive.finished_steps() if step.stage != "design"]
    assert steps == sampled
    assert len(steps) > 1
    assert document["summary"]["rows"] == sum(len(file["rows"]) for file in document["files"]) > 0


def test_more_loops_than_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batches(tmp_path / "rows.npz", [rows_of([[1] * 300] * 25)])
    assert main(["audit", str(tmp_path / "rows.npz"), *RULE]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  and 5 more: --json tells each"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "begin"), [(Terminal(), "\r\x1b[Kaudit: "), (io.StringIO(), "audit: ")])
def test_progress(rows: Path, stream: io.StringIO, begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_command, "REWRITE_SECONDS", 0)
    monkeypatch.setattr(audit_command, "LINE_SECONDS", 0)
    with audit_command.Progress([rows], stream) as progress:
        progress(rows, 0.25, 3, 900)
        progress(rows, 1.0, 9, 2700)
    written = stream.getvalue()
    assert written.startswith(f"{begin}25 %, 3 rows, 900 ids, ")
    assert "100 %, 12 rows, 3600 ids, " in written
    assert written.endswith("\r\x1b[K" if begin[0] == "\r" else " rows/s\n")


def test_a_short_audit_is_silent_on_a_terminal_and_elsewhere(rows: Path) -> None:
    command = [sys.executable, "-m", "gatepost", "audit", str(rows), *RULE, "--json"]
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stderr == b""
    leader, follower = pty.openpty()
    shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, check=True)
    os.close(follower)
    os.set_blocking(leader, False)
    with os.fdopen(leader, "rb") as terminal:
        try:
            text = terminal.read() or b""
        except OSError:  # nothing was written, and the other end is closed
            text = b""
    assert b"rows/s" not in text.split(b"\r\x1b[K")[-1]
    assert shown.stdout == piped.stdout
