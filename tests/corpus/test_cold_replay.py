"""A replay needs the standard library, jsonschema, rfc8785 and the row reader: no pytest, numpy, crypto or engine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gatepost.gatefiles import Gates
from gatepost.replay import replay
from tests.corpus.grow import ARCHIVES, EVIDENCE, PROJECT

ALLOWED = ("gatepost", "jsonschema", "rfc8785", "pyarrow", "packaging")
OF_THEIRS = ("jsonschema_specifications", "referencing", "rpds", "attr", "attrs", "typing_extensions")
"""What jsonschema brings along."""

MADE_IN_MEMORY = ("gatepost_", "cython_", "_cython_")
"""Modules that nobody imports: gates and task domains by their paths, and what Cython makes for pyarrow."""

COLD = f"""
import sys

class Only:
    # Finds nothing but what is allowed, as where the rest is not installed.

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top in {(*ALLOWED, *OF_THEIRS)!r}
        return self.finder.find_spec(name, path, target) if known else None

loaded = {{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
for name in [name for name in sys.modules if name.partition(".")[0] in loaded - {{"__main__"}}]:
    del sys.modules[name]
sys.meta_path[:] = map(Only, sys.meta_path)
from gatepost.__main__ import main
status = main(sys.argv[1:])
others = {{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
print("loaded", *sorted(others), file=sys.stderr)
sys.exit(status)
"""

SIGNED = "approved"


def cold(name: str, *options: str) -> "subprocess.CompletedProcess[str]":
    own = ("--gates", str(PROJECT / "gates"), "--studies", str(PROJECT / "studies"))
    command = [sys.executable, "-c", COLD, "replay", str(ARCHIVES / name), "--json", *own, *options]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def warm(name: str, evidence: Path | None) -> Any:
    result = replay(ARCHIVES / name, gates=Gates([PROJECT / "gates"]), studies=[PROJECT / "studies"], evidence=evidence)
    return json.loads(json.dumps(result.to_json()))


@pytest.mark.parametrize("name", sorted(path.name for path in ARCHIVES.iterdir() if path.name != SIGNED))
def test_it_says_the_same(name: str) -> None:
    done = cold(name, "--evidence", str(EVIDENCE))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == warm(name, EVIDENCE)
    loaded = set(done.stderr.splitlines()[-1].split()[1:]) - {"__main__"}
    assert {name for name in loaded if not name.startswith(MADE_IN_MEMORY)} <= {*ALLOWED, *OF_THEIRS}


def test_without_the_evidence_too() -> None:
    done = cold("detached")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout) == warm("detached", None)


def test_signatures_are_never_taken_on_trust() -> None:
    done = cold(SIGNED)
    assert done.returncode == 1
    assert "pip install 'gatepost[approval]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_blocker_blocks() -> None:
    """What it is to keep out is here, and would load."""
    for name in ("numpy", "pytest", "securesystemslib", "hypothesis"):
        script = COLD.replace("from gatepost.__main__ import main", f"import {name}")
        command = [sys.executable, "-c", script]
        assert (
            subprocess.run([sys.executable, "-c", f"import {name}"], check=False, capture_output=True).returncode == 0
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert f"ModuleNotFoundError: No module named '{name}'" in done.stderr
