"""Each write-side system call of what writes archives is killed, failed or cut short: no half of one passes for whole.

Afterwards an archive is as it was before, or complete, or holds an attempt that is marked as failed; and the next
invocation goes on.
"""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gatepost import integrity, jsonfile
from gatepost.__main__ import main
from gatepost.approve import approve
from gatepost.archive import Archive
from gatepost.ladder import audit
from gatepost.recovery import recover
from gatepost.status import status_text
from tests.approvals import freeze, make_keys
from tests.archives import Project, create_project
from tests.faults.conftest import problem
from tests.faults.write_side import EVERY, FAULTS, ROOT, Ended, Fault, Kind, Runner, points, runner
from tests.published_macro import documents, write

Check = Callable[[Path, Ended, Fault], None]

IMPORTED = "published-verified-macro-qwen35-4b"


class Operation(NamedTuple):
    """What is run on a fresh copy of a folder, and what has to hold of the copy afterwards."""

    before: Path
    run: Callable[..., Ended]
    check: Check


class Setup(NamedTuple):
    """The operations, and the folder of the project that they are run in."""

    project: Path
    operations: dict[str, Operation]


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("write-faults")
    project = create_project(folder / "project")
    frozen = project.freeze()
    with runner(tmp_path_factory.mktemp("runner"), project, frozen.root) as run:
        operations = {
            "live": live(run, project, frozen),
            "freeze": freezing(run, project, folder / "before-freeze"),
            "approve": approving(run, project, folder),
            "import": importing(run, folder),
        }
        yield Setup(project.root, operations)


def live(run: Runner, project: Project, frozen: Archive) -> Operation:
    """All steps of a ladder, one after another."""

    def check(copy: Path, ended: Ended, fault: Fault) -> None:
        goes_on(project, Archive(copy))

    return Operation(frozen.root, lambda copy, **spoilt: run("live", project.root, copy, under=copy, **spoilt), check)


def goes_on(project: Project, archive: Archive) -> None:
    """Verify what a fault left, then run what is open and verify all of it."""
    integrity.verify(archive)
    status_text(archive, log=True)
    before, noted = archive.journal.read(), archive.catalog()["root"]
    assert problem(project, archive.root) == ""
    if not audit(archive.protocol, archive.judgements()).terminal:
        project.run(archive)
    else:  # the last step is committed, and only what follows from it may be missing
        with archive.lock():
            recover(archive)
    events = archive.journal.read()
    assert events[: len(before)] == before, "history only grows"
    integrity.verify(archive, expected_root=noted)
    assert str(audit(archive.protocol, archive.judgements())) == "decision: REPLICATED selected=32"
    assert problem(project, archive.root) == ""
    assert integrity.verify(archive) == [], "nothing is left over"
    names = [event.event for event in events]
    assert names.count("started") == sum(names.count(name) for name in ("finished", "failed", "refused"))


def freezing(run: Runner, project: Project, before: Path) -> Operation:
    before.mkdir()
    draft = project.root / "studies" / "toy" / "toy.toml"
    options = ("--gates", str(project.root / "gates"), "--studies", str(project.root / "studies"))

    def command(copy: Path) -> list[str]:
        return ["freeze", str(draft), "--into", str(copy / "receipts"), *options]

    def check(copy: Path, ended: Ended, fault: Fault) -> None:
        made_whole_or_not_at_all(copy / "receipts", "toy", ended, fault, lambda: main(command(copy)))
        assert (
            Archive(copy / "receipts" / "toy").protocol.digest
            == Archive(project.root / "receipts" / "toy").protocol.digest
        )

    return Operation(before, lambda copy, **spoilt: run("command", *command(copy), under=copy, **spoilt), check)


def made_whole_or_not_at_all(into: Path, name: str, ended: Ended, fault: Fault, again: Callable[[], int]) -> None:
    """An archive that is made whole in one go: there, or not there and made by a second try."""
    root = into / name
    if ended.status == 0 or root.exists():
        assert integrity.verify(Archive(root)) == []
        assert again() == 1, "an archive is never overwritten"
    else:
        left = jsonfile.entries(into)
        assert all(path.name.startswith(jsonfile.TEMPORARY_PREFIX) for path in left)
        assert ended.killed or fault.forever or fault.kind == Kind.FULL_WRITE or not left, "who can clean up does"
        for path in left:
            shutil.rmtree(path)
        assert again() == 0
    assert integrity.verify(Archive(root)) == []


def approving(run: Runner, project: Project, folder: Path) -> Operation:
    """The second GO for a step that needs two."""
    keys = make_keys(folder / "keys")
    asked = freeze(project, keys, "asked")
    project.step(asked)
    approve(asked, "selection", keys["alice"], statement="GO")
    events = len(asked.journal.read())

    def command(copy: Path) -> list[str]:
        return ["approve", str(copy), "--step", "selection", "--key", str(keys["bob"])]

    def check(copy: Path, ended: Ended, fault: Fault) -> None:
        archive = Archive(copy)
        integrity.verify(archive)
        told = len(archive.journal.read()) - events
        assert told == 1 if ended.status == 0 else told in (0, 1)
        if not told:
            assert main(command(copy)) == 0
        project.step(archive)
        assert problem(project, copy) == ""
        assert len(jsonfile.entries(copy / "approvals")) == 2

    return Operation(asked.root, lambda copy, **spoilt: run("command", *command(copy), under=copy, **spoilt), check)


def importing(run: Runner, folder: Path) -> Operation:
    source = write(folder / "source", documents())
    before = folder / "before-import"
    before.mkdir()

    def command(copy: Path) -> list[str]:
        return ["import", str(source), "--into", str(copy / "receipts")]

    def check(copy: Path, ended: Ended, fault: Fault) -> None:
        made_whole_or_not_at_all(copy / "receipts", IMPORTED, ended, fault, lambda: main(command(copy)))

    return Operation(before, lambda copy, **spoilt: run("command", *command(copy), under=copy, **spoilt), check)


def fresh(operation: Operation, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return shutil.copytree(operation.before, folder / operation.before.name)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["live", "freeze", "approve", "import"])
def test_each_call_spoilt(setup: Setup, tmp_path: Path, name: str, fault: str) -> None:
    operation, bad = setup.operations[name], FAULTS[fault]
    calls = operation.run(fresh(operation, tmp_path / "whole"), fault=bad).calls
    tried = points(calls, 4)
    assert calls >= len(tried) >= 3
    for call in tried:
        copy = fresh(operation, tmp_path / "spoilt")
        ended = operation.run(copy, at=call, fault=bad)
        assert ended.killed is (bad.error == 0 and bad.kind != Kind.SHORT_WRITE)
        try:
            if ended.status == 1:
                assert os.strerror(bad.error) in ended.said
                assert str(copy.parent) in ended.said, "the error names the file"
            operation.check(copy, ended, bad)
        except BaseException as error:
            raise AssertionError(f"{fault} at call {call} of {calls}: {ended}") from error


@pytest.mark.parametrize("seed", range(60 if EVERY else 1))
def test_killed_again_and_again(setup: Setup, tmp_path: Path, seed: int) -> None:
    """A run is killed at any of its calls, so is the one that goes on, and so on, 20 times at most."""
    operation, choose = setup.operations["live"], random.Random(seed)
    copy = fresh(operation, tmp_path)
    for _ in range(20):
        ended = operation.run(copy, at=choose.randint(1, 60), fault=FAULTS["SIGKILL before the call"])
        integrity.verify(Archive(copy))
        if not ended.killed:
            break
    operation.check(copy, ended, FAULTS["SIGKILL before the call"])


CHANGES = (
    "openat,open,creat,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range,syncfs,rename,renameat,"
    "renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,truncate,ftruncate,"
    "fallocate,chmod,fchmod,fchmodat,sendfile,copy_file_range,splice,ioctl"
)
READS = re.compile(r"open(at)?\((?!.*O_(WRONLY|RDWR|CREAT|TRUNC))|ioctl\(")


def test_no_call_is_missed(setup: Setup, tmp_path: Path) -> None:
    """strace sees as many write-side calls of a run as are counted and spoilt."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    operation = setup.operations["live"]
    calls = operation.run(fresh(operation, tmp_path / "counted")).calls
    copy, trace = fresh(operation, tmp_path / "traced"), tmp_path / "trace"
    command = [sys.executable, "-m", "tests.faults.operations", str(setup.project), str(copy)]
    strace = ["strace", "-f", "-y", "-qq", "-s", "0", "-o", str(trace), "-e", f"trace={CHANGES}", "-e", "signal=none"]
    subprocess.run([*strace, *command], check=True, cwd=ROOT, stdin=subprocess.DEVNULL)
    lines = [line for line in trace.read_text().splitlines() if str(copy) in line and not READS.search(line)]
    assert len(lines) == calls
