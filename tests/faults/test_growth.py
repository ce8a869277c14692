"""A root noted elsewhere: an archive that grew since is told from one that was rolled back or rewritten."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from gatepost import integrity, jsonfile
from gatepost.__main__ import main
from gatepost.approve import approve
from gatepost.archive import Archive, find_archives
from gatepost.engine import Engine, EngineSpec
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import IntegrityError
from gatepost.probe import Probe
from tests.approvals import freeze, make_keys
from tests.archives import Project, create_project, rewrite
from tests.faults.conftest import problem, rewrite_history

ROOT = Path(__file__).resolve().parents[2]
RECEIPTS = find_archives(ROOT / "receipts")


class Noted(NamedTuple):
    """An archive as it stood once: its root, how many events it had, and a copy."""

    root: str
    events: int
    copy: Path


class Lived(NamedTuple):
    """An archive that everything happened to, and all roots that its catalog ever had."""

    project: Project
    archive: Archive
    noted: list[Noted]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    folder = tmp_path_factory.mktemp("lived")
    project, keys = create_project(folder / "project"), make_keys(folder / "keys")
    noted: list[Noted] = []

    class Watched(Archive):
        def write_catalog(self) -> None:
            super().write_catalog()
            copy = shutil.copytree(self.root, folder / str(len(noted)) / self.root.name)
            (copy / ".lock").unlink(missing_ok=True)
            noted.append(Noted(self.catalog()["root"], len(self.journal.read()), copy))

    def broken(spec: EngineSpec) -> Engine:
        raise RuntimeError(spec.kind)

    archive = Watched(freeze(project, keys).root)
    archive.write_catalog()
    project.step(archive)
    approve(archive, "selection", keys["alice"], statement="GO")
    approve(archive, "selection", keys["bob"], statement="GO")
    Probe(archive, project.gates, project.studies, ScriptedEngine, preflight_only=True).run()
    with pytest.raises(RuntimeError):
        project.step(archive, broken)
    archive.begin(project.next_step(archive))  # and the run is killed
    project.step(archive)
    approve(archive, "confirmation@32", keys["alice"], statement="GO")
    project.run(archive)
    said = [event.event for event in archive.journal.read()]
    assert set(said) == {"frozen", "approved", "started", "preflight", "failed", "finished", "selected"}
    assert problem(project, archive.root) == ""
    return Lived(project, Archive(archive.root), noted)


def test_every_root_that_an_archive_ever_had_is_known_again(lived: Lived) -> None:
    *earlier, now = lived.noted
    assert len(earlier) == len({noted.root for noted in earlier}) == 15
    assert integrity.verify(lived.archive, expected_root=now.root) == []
    for root, events, _ in earlier:
        (note,) = integrity.verify(lived.archive, expected_root=root)
        assert note.startswith(f"extended since the expected root: log/{events:04}.json (")
        assert f"was the last event then, {now.events - events} came after it" in note


def test_no_state_passes_for_a_later_one(lived: Lived) -> None:
    """Rolled back to any state, whole in itself, an archive shows against every root that was noted after it."""
    for number, (_, _, copy) in enumerate(lived.noted):
        integrity.verify(Archive(copy))
        for later in lived.noted[number + 1 :]:
            with pytest.raises(IntegrityError, match="rolled back to before that root, or rewritten since"):
                integrity.verify(Archive(copy), expected_root=later.root)


def test_a_preflight_that_was_told_anew_shows_against_a_root_alone(lived: Lived, tmp_path: Path) -> None:
    """Nothing samples after a preflight alone, so no receipt binds what it saw: only a root noted since does."""
    archive = Archive(shutil.copytree(lived.archive.root, tmp_path / "toy"))
    before, after = (
        next(noted for noted in lived.noted if noted.events == number)
        for event in archive.journal.read()
        if event.event == "preflight"
        for number in (event.sequence - 1, event.sequence)
    )
    (folder,) = (path for path in archive.attempt_folders() if (path / "preflight.json").exists())
    rewrite(folder / "preflight.json", lambda document: document["engine"].update(device_name="another"))
    archive.write_catalog()
    assert problem(lived.project, archive.root) == ""
    assert integrity.verify(archive, expected_root=before.root), "what was there before is there"
    with pytest.raises(IntegrityError, match="rewritten since"):
        integrity.verify(archive, expected_root=after.root)


def grow_a_file(archive: Archive) -> None:
    path = archive.root / "bound" / "second.jsonl"
    path.write_bytes(path.read_bytes() + b"\n")


def swap_receipts(archive: Archive) -> None:
    one, other = (archive.root / "steps" / name / "receipt.json" for name in ("design", "selection"))
    first, second = one.read_bytes(), other.read_bytes()
    jsonfile.replace(one, second)
    jsonfile.replace(other, first)


def drop_an_attempt(archive: Archive) -> None:
    shutil.rmtree(archive.attempt_folders()[1])


def set_the_clock(archive: Archive) -> None:
    rewrite_history(archive, lambda events: [{**events[0], "at": "2001-01-01T00:00:00Z"}, *events[1:]])


@pytest.mark.parametrize("change", [grow_a_file, swap_receipts, drop_an_attempt, set_the_clock])
def test_a_rewritten_archive_has_none_of_its_roots(
    lived: Lived, tmp_path: Path, change: Callable[[Archive], None]
) -> None:
    archive = Archive(shutil.copytree(lived.archive.root, tmp_path / "toy"))
    change(archive)
    archive.write_catalog()
    for noted in lived.noted[-3:]:
        with pytest.raises(IntegrityError):
            integrity.verify(archive, expected_root=noted.root)


@pytest.mark.parametrize("command", ["verify", "replay"])
def test_the_commands_tell_the_three_answers_apart(
    lived: Lived, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    first, *_, now = lived.noted
    options = ["--gates", str(lived.project.root / "gates"), "--studies", str(lived.project.root / "studies")]
    more = options if command == "replay" else []
    assert main([command, str(lived.archive.root), "--root", now.root, *more]) == 0
    said = capsys.readouterr().out
    assert f"catalog root: {now.root}" in said
    assert "extended" not in said
    assert main([command, str(lived.archive.root), "--root", first.root.removeprefix("sha256:"), *more]) == 0
    assert "note: extended since the expected root: log/0001.json (frozen, " in capsys.readouterr().out
    assert main([command, str(first.copy), "--root", now.root, *more]) == 1
    assert "rolled back to before that root, or rewritten since" in capsys.readouterr().err


@pytest.mark.parametrize("root", RECEIPTS, ids=lambda root: root.name)
def test_committed_archives_know_their_earlier_roots(root: Path, tmp_path: Path) -> None:
    """Taken back event by event, by hand: each whole state is one that the archive of now goes on from."""
    now, seen = Archive(root), 0
    events = now.journal.read()
    copy = Archive(shutil.copytree(root, tmp_path / root.name))
    (copy.root / "elsewhere.json").unlink(missing_ok=True)
    for event in reversed(events[1:]):
        (copy.root / event.path).unlink()
        if event.event == "selected":
            (copy.root / "selection.json").unlink()
        elif event.event == "finished":
            shutil.rmtree(copy.root / "steps" / str(event.step))
        elif event.event == "started":
            shutil.rmtree(copy.root / str(event.attempt_folder), ignore_errors=True)
        elif event.attempt is not None:
            shutil.rmtree(copy.root / str(event.attempt_folder))
        if event.event == "selected":
            continue  # the end of a step and the selection that it decides are told at once
        copy.write_catalog()
        integrity.verify(copy)
        earlier = copy.catalog()["root"]
        (note,) = integrity.verify(now, expected_root=earlier)
        assert note.startswith(f"extended since the expected root: log/{event.sequence - 1:04}.json (")
        with pytest.raises(IntegrityError, match="rolled back"):
            integrity.verify(copy, expected_root=now.catalog()["root"])
        seen += 1
    assert seen >= 2
