"""From nothing to a replayed receipt with a gate of one's own, by the commands that `gatepost init` names."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gatepost.archive import Archive

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {"gatepost": ["-m", "gatepost"], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}
MISSING = [package for package in ("torch", "transformers") if importlib.util.find_spec(package) is None]
live = pytest.mark.skipif(bool(MISSING), reason=f"a live step takes {' and '.join(MISSING)}")


def run(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command as a reader types it, with this environment's Python."""
    program, *arguments = command.split()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *COMMANDS[program], *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def succeeds(command: str, cwd: Path) -> str:
    done = run(command, cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def named_commands(text: str) -> list[str]:
    """The commands of a text, without what is said of them."""
    lines = (line.strip() for line in text.splitlines())
    return [re.split(r"\s{2,}", line)[0] for line in lines if line.startswith(("pytest", "gatepost "))]


@live
def test_from_nothing_to_a_replayed_receipt(tmp_path: Path) -> None:
    told = named_commands(succeeds("gatepost init my_study", tmp_path))
    study = tmp_path / "my_study"
    shown = (ROOT / "README.md").read_text().partition("## Start a study of your own\n")[2].partition("\n## ")[0]
    assert named_commands(shown) == ["gatepost init my_study", "gatepost explain thinks_first"]
    assert told == named_commands((study / "README.md").read_text().partition("```\n")[2].partition("```")[0])
    test_gate, freeze, step = told

    assert "5 passed" in succeeds(test_gate, study)
    assert "frozen: receipts/my_study" in succeeds(freeze, study)
    archive = Archive(study / "receipts" / "my_study")
    for expected in ("design", "selection"):
        assert run("gatepost status receipts/my_study --done", study).returncode == 1
        succeeds(step, study)
        assert [str(done) for done in archive.finished_steps()][-1] == expected
    succeeds("gatepost status receipts/my_study --done", study)

    replayed = succeeds("gatepost replay receipts/my_study", study)
    assert re.search(r"^    thinks_first +(pass|fail) \d+/16 ", replayed, re.MULTILINE), replayed
    assert re.search(r"^  decision: (CAP_SELECTED selected=(40|160)|NO_CAP_SELECTED selected=none)$", replayed, re.M)
    replay_items = int(re.findall(r"(\d+) passed", succeeds("pytest", study))[-1]) - 5
    assert replay_items > 2 * 11, "beside the test of the gate, both steps are replayed"

    own_gate = study / "gates" / "thinks_first.py"
    assert f"file:       {own_gate}" in succeeds("gatepost explain thinks_first", study)
    own_gate.write_text(own_gate.read_text().replace(">= min_thinking_tokens", "> 500 + min_thinking_tokens"))
    assert run("gatepost replay receipts/my_study", study).returncode == 1, "the receipt rests on the gate of one's own"
    assert "failed" in run("pytest tests", study).stdout


@live
def test_a_study_in_the_folder_of_a_checkout_or_beside_a_model_names_it_relatively(tmp_path: Path) -> None:
    """Another clone of the project then has the model at the same path."""
    shutil.copytree(ROOT / "models" / "tiny_thinker", tmp_path / "models" / "tiny_thinker")
    succeeds("gatepost init near", tmp_path)
    succeeds(f"gatepost init named --model {tmp_path / 'models' / 'tiny_thinker'}", tmp_path)
    for name in ("near", "named"):
        assert 'path = "models/tiny_thinker"\n' in (tmp_path / name / "studies" / name / "pins.toml").read_text()
        succeeds(f"gatepost plan studies/{name}/protocol.toml", tmp_path / name)
