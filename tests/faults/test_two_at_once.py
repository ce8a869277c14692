"""A second run gets one clear sentence, whichever way the first one ended; no lock is broken by itself.

Real processes: one holds an archive and is left running, stopped, killed, or was on another machine.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatepost import integrity, jsonfile, runlock
from gatepost.approve import approve
from gatepost.archive import Archive
from gatepost.errors import OrderError
from gatepost.status import status_text
from tests.approvals import freeze, make_keys
from tests.archives import Project, create_project
from tests.faults.conftest import problem
from tests.faults.test_tree_faults import read_only

__all__ = ["read_only"]

ROOT = Path(__file__).resolve().parents[2]
HOLDS = """
import sys, time
from pathlib import Path
from gatepost.archive import Archive
from gatepost.ladder import Step
archive = Archive(Path(sys.argv[1]))
with archive.lock():
    if len(sys.argv) > 2:
        archive.begin(Step(sys.argv[2]))
    print("held", flush=True)
    time.sleep(600)
"""
RUN = """
import sys
from pathlib import Path
from gatepost.archive import Archive
from gatepost.errors import GatepostError
from tests.archives import Project
project, archive = Project(Path(sys.argv[1])), Archive(Path(sys.argv[2]))
try:
    print(project.step(archive))
except GatepostError as error:
    print("refused:", error)
"""

Started = subprocess.Popen[str]


@pytest.fixture
def before_selection(tmp_path: Path) -> tuple[Project, Archive]:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.step(archive)
    return project, archive


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    """Start a process that holds an archive, perhaps in the middle of an attempt at a step."""
    started: list[Started] = []

    def one(archive: Archive, *step: str) -> Started:
        command = [sys.executable, "-c", HOLDS, str(archive.root), *step]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        return process

    yield one
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def kill(process: Started) -> None:
    process.kill()
    process.wait()


def refusal(project: Project, archive: Archive) -> str:
    with pytest.raises(OrderError) as caught:
        project.step(archive)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_run_at_work_is_named(
    before_selection: tuple[Project, Archive], start: Callable[..., Started], stopped: bool
) -> None:
    project, archive = before_selection
    process = start(archive, "selection")
    if stopped:
        process.send_signal(signal.SIGSTOP)
    who = f"process {process.pid} on {os.uname().nodename}, since 2"
    assert f"{archive.root}: another live run holds this archive: {who}" in refusal(project, archive)
    said = status_text(archive)
    assert f"a live run is at work: {who}" in said
    assert "attempt 2 at selection was started at " in said
    assert "records it as failed" not in said
    assert any("a live run is at work" in note for note in integrity.verify(archive)), "looking on is allowed"
    assert problem(project, archive.root) == ""


def test_every_writing_command_waits_its_turn(tmp_path: Path, start: Callable[..., Started]) -> None:
    project, keys = create_project(tmp_path / "project"), make_keys(tmp_path / "keys")
    archive = freeze(project, keys)
    start(archive)
    before = sorted(path.name for path in archive.root.rglob("*"))
    with pytest.raises(OrderError, match="another live run holds this archive: process"):
        approve(archive, "selection", keys["alice"], statement="GO")
    refusal(project, archive)
    assert sorted(path.name for path in archive.root.rglob("*")) == before


def test_after_a_kill_the_next_run_takes_over(
    before_selection: tuple[Project, Archive], start: Callable[..., Started]
) -> None:
    project, archive = before_selection
    process = start(archive, "selection")
    kill(process)
    lock = (archive.root / runlock.NAME).read_bytes()
    said = status_text(archive)
    assert f"a live run did not come to its end: process {process.pid} on " in said
    assert "which is gone; the next live run takes over" in said
    assert integrity.verify(archive)
    assert (archive.root / runlock.NAME).read_bytes() == lock, "looking changes nothing"
    assert str(project.step(archive)) == "open: confirmation@32"
    assert not (archive.root / runlock.NAME).exists()
    assert integrity.verify(archive) == []
    assert "interrupted: the run ended without a word" in status_text(archive, log=True)


def test_an_engine_that_outlives_its_run_holds_nothing(before_selection: tuple[Project, Archive]) -> None:
    """A child that inherits what a run has open does not keep the lock of a run that is gone."""
    project, archive = before_selection
    holds = HOLDS.replace("time.sleep(600)", "import subprocess; subprocess.Popen(['sleep', '30'])")
    holds += "    import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    subprocess.run([sys.executable, "-c", holds, str(archive.root), "selection"], cwd=ROOT, stdout=subprocess.DEVNULL)
    assert "which is gone" in status_text(archive)
    project.step(archive)


def write_lock(archive: Archive, **changes: Any) -> Path:
    """A lock file as a killed run of this machine leaves it, changed."""
    with archive.lock():
        document = jsonfile.read(archive.root / runlock.NAME)
    path = archive.root / runlock.NAME
    path.write_bytes(jsonfile.canonical({**document, **changes}))
    return path


def test_the_number_of_a_process_says_nothing(before_selection: tuple[Project, Archive]) -> None:
    """The number of a run that was killed may be another's by now, here that of this test."""
    project, archive = before_selection
    write_lock(archive, process=os.getpid())
    said = status_text(archive)
    assert f"which is gone; another process is number {os.getpid()} now; the next live run takes over" in said
    project.step(archive)


def test_a_run_of_another_machine_is_never_taken_for_dead(before_selection: tuple[Project, Archive]) -> None:
    project, archive = before_selection
    path = write_lock(archive, host="far-away", boot="another", process=1, since="2026-01-02T03:04:05Z")
    before = path.read_bytes()
    for said in (refusal(project, archive), status_text(archive), *integrity.verify(archive)):
        assert "another machine may hold this archive: process 1 on far-away, since 2026-01-02T03:04:05Z" in said
        assert f"If you know that the run has ended, remove {path}" in said
    assert path.read_bytes() == before
    assert project.next_step(archive).stage == "selection", "nothing was begun"
    path.unlink()
    project.step(archive)


def test_a_run_of_another_machine_whose_lock_is_seen_is_at_work(
    before_selection: tuple[Project, Archive], start: Callable[..., Started]
) -> None:
    """Where a shared file system passes locks on, there is no doubt."""
    project, archive = before_selection
    start(archive)
    path = archive.root / runlock.NAME
    with path.open("r+b") as stream:
        document = json.loads(stream.read())
        stream.seek(0)
        stream.write(jsonfile.canonical({**document, "host": "far-away", "boot": "another"}))
        stream.truncate()
    assert "a live run is at work: process" in status_text(archive)
    assert "another live run holds this archive: process" in refusal(project, archive)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"x" * 5000, b"[]", b'{"boot":"b","host":"h","process":"1","since":"s"}',
     b'{"boot":"b","host":"h","more":1,"process":1,"since":"s"}', b'{"host":"h", "boot":"b","process":1,"since":"s"}'],
)  # fmt: skip
def test_what_is_no_lock_hides_nothing(before_selection: tuple[Project, Archive], content: bytes) -> None:
    project, archive = before_selection
    path = archive.root / runlock.NAME
    path.write_bytes(content)
    for said in (refusal(project, archive), status_text(archive), problem(project, archive.root)):
        assert f"{path}: is no lock of a live run" in said
        assert "if none is at work, remove it" in said
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_lock_that_is_no_file_is_refused(
    before_selection: tuple[Project, Archive], tmp_path: Path, kind: str
) -> None:
    project, archive = before_selection
    path, elsewhere = archive.root / runlock.NAME, tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    {"link": lambda: path.symlink_to(elsewhere), "folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}[kind]()
    for said in (refusal(project, archive), problem(project, archive.root)):
        assert str(path) in said
    assert elsewhere.read_bytes() == b"precious"


def test_a_lock_is_no_part_of_the_record(
    before_selection: tuple[Project, Archive], start: Callable[..., Started], tmp_path: Path
) -> None:
    project, archive = before_selection
    noted = archive.catalog()["root"]
    start(archive)
    assert archive.catalog()["root"] == noted
    copy = Archive(shutil.copytree(archive.root, tmp_path / "copy" / archive.root.name))
    assert integrity.verify(copy, expected_root=noted)
    project.step(copy)  # a copy is another archive, and a run that holds the first does not hold it


def test_of_many_runs_at_once_one_runs(before_selection: tuple[Project, Archive]) -> None:
    project, archive = before_selection
    write_lock(archive, process=2**22 + 1)  # all meet the lock of a killed run
    command = [sys.executable, "-c", RUN, str(project.root), str(archive.root)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(6)]
    said = [run.communicate()[0].strip() for run in runs]
    steps = [event for event in archive.journal.read() if event.event == "finished"]
    went = [line for line in said if not line.startswith("refused: ")]
    assert len(steps) == 1 + len(went) >= 2
    for line in said:
        assert line in went or "another live run holds this archive" in line or "no step is open" in line, line
    integrity.verify(archive)
    assert problem(project, archive.root) == ""


def test_asking_for_the_status_stops_no_run(before_selection: tuple[Project, Archive]) -> None:
    project, archive = before_selection
    command = [sys.executable, "-c", "import sys; from pathlib import Path; from gatepost import runlock\n"
               "while True: runlock.look(Path(sys.argv[1]))", str(archive.root)]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT) as asking:
        try:
            for _ in range(30):
                write_lock(archive, process=2**22 + 1)
                with archive.lock():
                    pass
            project.step(archive)
        finally:
            asking.kill()


def test_without_a_boot_id_a_machine_is_known_by_its_name(
    before_selection: tuple[Project, Archive], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, archive = before_selection
    monkeypatch.setattr(runlock, "_BOOT", Path("/nowhere"))
    path = write_lock(archive)
    assert "which is gone" in status_text(archive)
    path.write_bytes(jsonfile.canonical({**jsonfile.read(path), "boot": "far-away", "host": "far-away"}))
    assert "on far-away" in refusal(project, archive)


def test_a_lock_on_read_only_media_is_told_and_not_taken_over(read_only: tuple[Project, Path]) -> None:
    project, root = read_only
    write_lock(Archive(project.root / "receipts" / root.name))
    assert "which is gone" in status_text(Archive(root))
    assert problem(project, root) == ""
    with pytest.raises(OSError, match="Read-only file system"):
        project.step(Archive(root))
