"""A finished archive whose gates count or look at ids, and the folder to which its large evidence is moved."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gatepost import elsewhere, jsonfile
from gatepost.archive import Archive
from gatepost.detach import detach
from gatepost.ladder import Step
from tests.archives import Project, create_project, reseal

SELECTION = Step("selection")
MOVED = ["steps/confirmation@32/rows.parquet", "steps/confirmation@32/text.parquet", "steps/selection/rows.parquet"]
ROWS = MOVED[2]

BY_COUNTS = ("right_censoring", "close_classification", "natural_close", "seed_binding", "kv_lengths")
BY_IDS = ("token_accounting", "cache_contract", "peeks")

OWN_GATES = '''
"""One gate that counts, and one that looks at an id."""

from gatepost.gate import Check, Checks, Evidence, gate


@gate(version=1, reads=["completions", "prompts"], role="validity")
def kv_lengths(evidence: Evidence) -> Checks:
    lengths = evidence.prompt_tokens
    yield Check("kv_tokens", sum(lengths[s.key.task_id] + len(s.row.token_ids) for s in evidence.completions), ">", 0)


@gate(version=1, reads=["completions"], role="validity")
def peeks(evidence: Evidence) -> Checks:
    yield Check("first_ids", sum(sample.row.token_ids[0] for sample in evidence.completions), ">", 0)
'''


def put_elsewhere(archive: Archive, names: list[str]) -> None:
    """Take files out of an archive, and name them in the record."""
    jsonfile.replace(archive.root / "elsewhere.json", jsonfile.canonical(elsewhere.record_of(archive, names)))
    for name in names:
        (archive.root / name).unlink()


def with_gates(draft: str) -> str:
    names = [name for name in (*BY_COUNTS, *BY_IDS) if name not in ("natural_close", "close_classification")]
    lines = [f"gates.{name} = {{ version = 1 }}" for name in names]
    lines += ["gates.natural_close = { version = 1, min_natural_close_rate = 0.5 }"]
    lines += ["gates.close_classification = { version = 1, max_irregular_rows = 3 }"]
    return draft.replace("gates.toy_engine", "\n".join([*lines, "gates.toy_engine"]))


class Home(NamedTuple):
    """A project, a finished archive of it, and a folder for evidence."""

    project: Project
    archive: Archive
    store: Path

    def detach(self, **options: Any) -> list[str]:
        options = {"over_bytes": 0, **options}
        return detach(self.archive, self.store, gates=self.project.gates, studies=self.project.studies, **options)

    def changed(self, change: Callable[[], None]) -> None:
        """Change the archive and make every digest anew, as somebody would who has all of its evidence."""
        names = list(elsewhere.entries(self.archive))
        for name in names:
            shutil.copy(self.kept(name), self.archive.root / name)
        (self.archive.root / "elsewhere.json").unlink()
        change()
        reseal(self.archive)
        put_elsewhere(self.archive, names)

    def kept(self, name: str) -> Path:
        """Where a file was moved to."""
        return self.store / str(elsewhere.entries(self.archive)[name]["sha256"])


@pytest.fixture(scope="session")
def finished_here(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    project = create_project(tmp_path_factory.mktemp("elsewhere"))
    (project.root / "gates" / "own.py").write_text(OWN_GATES)
    archive = project.freeze(edit=with_gates)
    assert project.run(archive).label == "REPLICATED"
    return project, archive.root


@pytest.fixture
def home(finished_here: tuple[Project, Path], tmp_path: Path) -> Home:
    project, root = finished_here
    (tmp_path / "store").mkdir()
    return Home(project, Archive(shutil.copytree(root, tmp_path / root.name)), tmp_path / "store")


@pytest.fixture
def detached(home: Home) -> Home:
    assert home.detach() == MOVED
    return home
