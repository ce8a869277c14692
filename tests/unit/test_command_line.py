"""The command line where people slip: one sentence, an exit status, nothing half-written and no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from gatepost.__main__ import main
from gatepost.errors import RegistrationError
from gatepost.gatefiles import Gates
from tests.archives import create_project

ROOT = Path(__file__).resolve().parents[2]


def test_a_folder_is_no_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_project(tmp_path).freeze()
    for command in ("plan", "freeze"):
        assert main([command, str(tmp_path / "studies" / "toy")]) == 1
        said = capsys.readouterr().err
        assert said == f"gatepost: {tmp_path}/studies/toy: is a folder, expected a draft (TOML); in it are toy.toml\n"
    assert main(["plan", str(tmp_path)]) == 1
    assert "in it are none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "near"),
    [("natural_closes", "natural_close"), ("headrom", "headroom"), ("kv_fits", "kv_fit"), ("approvals", "approval")],
)
def test_a_misspelt_gate_is_told_its_name(name: str, near: str) -> None:
    with pytest.raises(RegistrationError, match=rf"gate {name} version 1 is not installed; .*; did you mean {near}\?"):
        Gates().get(name, 1, where="draft")


def test_a_gate_that_is_like_no_other_is_told_none() -> None:
    with pytest.raises(RegistrationError) as refused:
        Gates().get("zebra", 1, where="draft")
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize("field", ["revision", "tokenizer_revision"])
@pytest.mark.parametrize("found", ["main", "v1.0", "0" * 39, "0" * 41, "A" * 40, "sha256:" + "0" * 64])
def test_a_repository_is_pinned_by_commits(tmp_path: Path, field: str, found: str) -> None:
    project = create_project(tmp_path)
    with pytest.raises(RegistrationError, match=rf"model\.{field} is '{found}', expected a commit, 40 hex digits"):
        project.freeze(edit=lambda text: text.replace(f'\n{field} = "{"0" * 40}"', f'\n{field} = "{found}"'))
    project.freeze(edit=lambda text: text.replace(f'\n{field} = "{"0" * 40}"', f'\n{field} = "{"a" * 40}"'))


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_rows_to_import_lie_in_a_folder(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows"
    if kind == "file":
        rows.write_text("")
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["import", str(tmp_path), "--into", str(tmp_path / "receipts"), "--rows", str(rows)])
    assert capsys.readouterr().err.endswith(f"argument --rows: {rows} is not a folder\n")
    assert not (tmp_path / "receipts").exists()


@pytest.mark.parametrize("command", ["plan", "status", "replay"])
def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path, command: str) -> None:
    """A pipe whose other end is closed before anything is written to it, as ``| head`` may do."""
    project = create_project(tmp_path)
    archive = project.freeze()
    subject = project.root / "studies" / "toy" / "toy.toml" if command == "plan" else archive.root
    run = [sys.executable, "-c", WITHOUT_READER, command, str(subject)]
    done = subprocess.run(run, cwd=project.root, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")


WITHOUT_READER = """
import os, sys
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)
from gatepost.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
