"""What a folder may hold beside plain files: refused by a sentence that names it, and nothing is ever waited for.

Beside it: media that cannot be written to, files that cannot be read, and a clock that is set back.
"""

import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gatepost import integrity
from gatepost.__main__ import main
from gatepost.archive import Archive
from gatepost.audit.jsonl import read_rows
from gatepost.errors import GatepostError, IntegrityError, RegistrationError
from gatepost.gatefiles import Gates
from gatepost.ladder import audit
from tests.archives import Project, create_project
from tests.faults.conftest import problem

ROOT = os.geteuid() == 0
NOBODY = 65534


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    """A test that waits for a pipe or a device is killed, and fails."""

    def hangs(number: int, frame: object) -> None:
        raise AssertionError("waits for ever")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def named_pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path is short
        made.bind(path.name)
        os.chdir(here)


def device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def link_to_file(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_folder(path: Path) -> None:
    path.symlink_to("/")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def link_to_its_folder(path: Path) -> None:
    path.symlink_to(".")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


LINK, OTHER = "is a symbolic link, expected a regular file", "is not a regular file"
ODD: dict[str, tuple[Callable[[Path], None], str]] = {
    "a named pipe": (named_pipe, OTHER),
    "a socket": (unix_socket, OTHER),
    "a device": (device, OTHER),
    "a link to a device": (link_to_file, LINK),
    "a link to a folder": (link_to_folder, LINK),
    "a link to itself": (link_to_itself, LINK),
    "a link to its folder": (link_to_its_folder, LINK),
    "a link to nothing": (link_to_nothing, LINK),
}
PLACES = ["catalog.json", "protocol.json", "selection.json", "log/0002.json", "bound/first.jsonl", "bound/stranger",
          "steps/selection/receipt.json", "steps/selection/rows.parquet", "attempts/stranger", "stranger"]  # fmt: skip


def make(name: str, path: Path) -> str:
    change, said = ODD[name]
    if name == "a device" and not ROOT:
        pytest.skip("needs root")
    path.unlink(missing_ok=True)
    change(path)
    return said


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ODD)
def test_what_is_no_file_is_refused_and_not_opened(copied: tuple[Project, Archive], name: str, place: str) -> None:
    project, archive = copied
    said = make(name, archive.root / place)
    found = problem(project, archive.root)
    assert place in found
    assert said in found or (place == "protocol.json" and name == "a socket" and "is a socket" in found)


@pytest.mark.parametrize("name", ODD)
def test_commands_refuse_it_too(copied: tuple[Project, Archive], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, archive = copied
    said = make(name, archive.root / "log" / "0001.json")
    for command in ("verify", "status", "replay"):
        assert main([command, str(archive.root)]) == 1
        assert "0001.json" in capsys.readouterr().err
    with pytest.raises(IntegrityError, match=said):
        archive.write_catalog()


@pytest.mark.parametrize("name", ["a named pipe", "a socket", "a device", "a link to nothing"])
def test_no_input_is_waited_for(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Drafts, tasks, gates, keys, published runs and rows: a file that is none is refused wherever one is read."""
    project = create_project(tmp_path / "project")
    archive = project.freeze()
    study, gates = project.root / "studies" / "toy", project.root / "gates"
    freeze = ["freeze", str(study / "toy.toml"), "--into", str(tmp_path / "into")]
    freeze += ["--gates", str(gates), "--studies", str(project.root / "studies")]
    source = tmp_path / "source"
    source.mkdir()
    approve = ["approve", str(archive.root), "--step", "design", "--key", str(source / "key")]
    for path, command in (
        (source / "key", approve),
        (source / "rows_tokens.jsonl.gz", ["import", str(source), "--into", str(tmp_path / "into")]),
        (study / "first.jsonl", freeze),
        (study / "domain.py", freeze),
        (gates / "odd.py", freeze),
        (study / "toy.toml", freeze),
    ):
        before = path.read_bytes() if path.exists() else None
        make(name, path)
        assert main(command) == 1, path
        assert capsys.readouterr().err.startswith("gatepost: ")
        path.unlink()
        if before is not None:
            path.write_bytes(before)
    assert not list(tmp_path.glob("into/[!.]*")), "nothing is made of it"
    make(name, gates / "odd.py")
    with pytest.raises(RegistrationError, match=r"odd\.py: (is not a regular file|cannot be read)"):
        Gates([gates])
    (gates / "odd.py").unlink()
    make(name, source / "rows.jsonl")
    with pytest.raises(GatepostError, match=r"rows\.jsonl: (is|cannot be read|does not exist)"):
        list(read_rows(source / "rows.jsonl"))


def test_a_file_with_a_second_name_outside_is_refused(copied: tuple[Project, Archive], tmp_path: Path) -> None:
    """It can be changed there. Two names inside are what an interrupted write leaves, and they hide no third."""
    project, archive = copied
    file = archive.root / "bound" / "first.jsonl"
    os.link(file, file.with_name(".writing-0123456789abcdef"))
    assert problem(project, archive.root) == ""
    os.link(file, tmp_path / "elsewhere")
    said = problem(project, archive.root)
    assert "is a hard link, of 3 names only 2 in the archive" in said
    (tmp_path / "elsewhere").unlink()
    assert problem(project, archive.root) == ""
    os.link(archive.root / "catalog.json", tmp_path / "catalog")
    assert "catalog.json: is a hard link, of 2 names only 1 in the archive" in problem(project, archive.root)


def test_two_files_of_an_archive_that_are_one(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    (archive.root / "bound" / "first.jsonl").unlink()
    os.link(archive.root / "bound" / "second.jsonl", archive.root / "bound" / "first.jsonl")
    assert "first.jsonl: is 228 bytes long, catalog.json lists 220" in problem(project, archive.root)


@pytest.mark.parametrize(
    "name", ["bound/first.jsonl", "protocol.json", "catalog.json", "bound", "log", "steps/selection"]
)
def test_what_its_reader_may_not_read_is_named(
    copied: tuple[Project, Archive], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _, archive = copied
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    root = Path(archive.root.name)
    (root / name).chmod(0)
    user = os.geteuid()
    try:
        os.seteuid(NOBODY if user == 0 else user)
        with pytest.raises(IntegrityError, match=f"{name}: cannot be read: Permission denied"):
            integrity.verify(Archive(root))
    finally:
        os.seteuid(user)
        (root / name).chmod(0o755)


def test_a_clock_that_is_set_back_costs_nothing(tmp_path: Path) -> None:
    """Events are in order by their numbers, so a run goes on whatever its clock says."""
    project = create_project(tmp_path)
    archive = project.freeze()
    for year in (2030, 1999):
        project.step(Archive(archive.root, clock=lambda year=year: datetime(year, 1, 1, tzinfo=UTC)))
    project.step(Archive(archive.root, clock=lambda: datetime(1970, 1, 1, tzinfo=UTC)))
    assert audit(archive.protocol, archive.judgements()).terminal
    assert problem(project, archive.root) == ""
    assert {event.at[:4] for event in archive.journal.read()} >= {"2030", "1999", "1970"}


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[tuple[Project, Path]]:
    """An archive with an open step, on media that nobody can write to."""
    project = create_project(tmp_path / "project")
    archive = project.freeze()
    project.step(archive)
    mount = tmp_path / "media"
    mount.mkdir()
    if subprocess.run(["mount", "--bind", str(archive.root.parent), str(mount)], capture_output=True).returncode:
        pytest.skip("a read-only mount needs root")
    subprocess.run(["mount", "-o", "remount,bind,ro", str(mount)], check=True)
    yield project, mount / archive.root.name
    subprocess.run(["umount", str(mount)], check=True)


def test_read_only_media_are_replayed_and_not_run(
    read_only: tuple[Project, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    project, root = read_only
    assert problem(project, root) == ""
    for command in ("verify", "status"):
        assert main([command, str(root)]) == 0
    archive = Archive(root)
    with pytest.raises(OSError, match="Read-only file system") as caught:
        project.step(archive)
    assert str(root) in str(caught.value)
    assert integrity.verify(archive) == []
    draft = project.root / "studies" / "toy" / "toy.toml"
    capsys.readouterr()
    options: list[Any] = ["--gates", project.root / "gates", "--studies", project.root / "studies"]
    assert main([str(part) for part in ("freeze", draft, "--into", root.parent / "new", *options)]) == 1
    assert f"Read-only file system: '{root.parent / 'new'}'" in capsys.readouterr().err
