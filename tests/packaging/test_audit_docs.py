"""What the page about auditing shows runs, and it leaves out no option, column or result."""

import re
from pathlib import Path

import numpy as np
import pytest

from gatepost.__main__ import main
from gatepost.audit import RESULTS, STUDY_A, LoopRule, write_batches
from gatepost.audit.npz_rows import ARRAYS
from gatepost.audit.row_model import COLUMNS, MAX_ROW_IDS
from tests.archives import create_project
from tests.audit.row_tables import mixed_rows

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_what_is_shown_in_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"ids": list(range(9000))}
    for block in blocks("python"):
        exec(compile(block, "docs/audit.md", "exec"), names)
    failing = []

    def each_row(table: object, problem_of: object) -> None:
        failing.extend(filter(None, map(problem_of, table.to_pylist())))

    names["test_no_sample_loops"](each_row)
    assert failing == ["period 7"]


def test_the_commands_shown_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.run(archive)
    archive.root.rename(tmp_path / "receipts" / "my-study")
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("samples.parquet", "other.npz")):
        write_batches(name, [mixed_rows(6, seed=number)])
    commands = [line.split() for line in re.findall(r"^gatepost audit .*$", PAGE, re.MULTILINE)]
    assert len(commands) == 3
    for command in commands:
        assert main(command[1:]) == 0, capsys.readouterr().err
    assert (tmp_path / "audit.json").exists()


def test_nothing_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help", "--output"}
    assert {name for name in options if name not in PAGE} == set()
    assert {name for name in (*RESULTS.names, *COLUMNS, *ARRAYS) if f"`{name}`" not in PAGE} == set()
    assert f"{MAX_ROW_IDS:,}".replace(",", " ") in PAGE


def test_the_default_is_what_the_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert LoopRule(8192, 2048, 0.99) == STUDY_A
    for value in STUDY_A:
        assert f"{np.format_float_positional(value, trim='-')}" in said
