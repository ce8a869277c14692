"""A finished archive to be changed, and the ways of somebody who makes every digest anew after a change."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gatepost import jsonfile
from gatepost.approve import approve
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.errors import GatepostError
from gatepost.ladder import Step
from gatepost.replay import Replay, replay
from gatepost.stepfiles import write_manifest
from tests.approvals import Keys, freeze, make_keys
from tests.archives import Project, create_project, reseal, rewrite

Event = dict[str, Any]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    """A project and its replicated archive; tests work on copies."""
    project = create_project(tmp_path_factory.mktemp("project"))
    archive = project.freeze()
    project.run(archive)
    return project, archive.root


@pytest.fixture
def copied(finished: tuple[Project, Path], tmp_path: Path) -> tuple[Project, Archive]:
    project, root = finished
    return project, Archive(shutil.copytree(root, tmp_path / root.name))


class Approved(NamedTuple):
    """A finished archive whose steps were approved, the keys, and another archive that was approved by the same."""

    project: Project
    archive: Archive
    keys: Keys
    other: Archive


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Approved:
    folder = tmp_path_factory.mktemp("approved")
    project, keys = create_project(folder / "project"), make_keys(folder / "keys")
    archive, other = freeze(project, keys), freeze(project, keys, "other")
    for one in (archive, other):
        approve(one, "selection", keys["alice"], statement="read it")
        approve(one, "selection", keys["bob"], statement="so did I")
    for _ in range(2):
        project.step(archive)
    approve(archive, "confirmation@32", keys["alice"], statement="go on")
    assert project.step(archive).label == "REPLICATED"
    return Approved(project, archive, keys, other)


@pytest.fixture
def approved(made: Approved, tmp_path: Path) -> Approved:
    return made._replace(archive=Archive(shutil.copytree(made.archive.root, tmp_path / "toy")))


def replayed(project: Project, root: Path, **options: Any) -> Replay:
    return replay(root, gates=project.gates, studies=project.studies, **options)


def problem(project: Project, root: Path, **options: Any) -> str:
    """How an archive is not faithful: the error, or the differences. Empty for a faithful one."""
    try:
        return "\n".join(replayed(project, root, **options).differences)
    except GatepostError as error:
        return str(error)


def rewrite_history(archive: Archive, change: Callable[[list[Event]], list[Event]]) -> None:
    """Tell another history, whose numbers and links fit."""
    paths = sorted((archive.root / "log").iterdir())
    events = change([jsonfile.read(path) for path in paths])
    for path in paths:
        path.unlink()
    previous = None
    for number, event in enumerate(events, start=1):
        data = jsonfile.canonical({**event, "sequence": number, "previous": previous})
        jsonfile.write_new(archive.root / "log" / f"{number:04}.json", data)
        previous = jsonfile.digest(data)
    archive.write_catalog()


def rebind(archive: Archive, step: Step) -> None:
    """Make manifest, receipt, selection and catalog of a step anew."""
    folder = archive.step_folder(step)
    (folder / "rows.json").unlink(missing_ok=True)
    rows = tables.read_rows(folder / "rows.parquet") if (folder / "rows.parquet").exists() else None
    manifest = write_manifest(folder, archive.protocol, step, rows)
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=manifest))
    reseal(archive)
