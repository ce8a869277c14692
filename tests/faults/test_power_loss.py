"""The power fails at any system call of a run: what is on the disk afterwards passes for what it is, and can go on.

Once by a model that promises less than any file system in use (``power.py``), and once on a real one, ext4 on a loop
device that is shut down without writing its journal or its caches out, which root alone may do.
"""

import fcntl
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gatepost.audit import rows as tables
from tests.faults.power import Call, Disk, read_calls
from tests.faults.test_write_faults import Operation, Setup, fresh, setup
from tests.faults.write_side import EVERY, FAULTS, Ended, points

__all__ = ["setup"]

KILL = FAULTS["SIGKILL before the call"]
CUT_OFF = Ended(-9, "", 0)
DRAWS = 3 if EVERY else 1


@pytest.mark.parametrize("name", ["live", "freeze", "approve", "import"])
def test_the_power_fails_by_the_least_that_is_promised(setup: Setup, tmp_path: Path, name: str) -> None:
    operation = setup.operations[name]
    copy = fresh(operation, tmp_path / "recorded")
    before = shutil.copytree(copy, tmp_path / "before")
    operation.run(copy, log=tmp_path / "log")
    calls = read_calls(tmp_path / "log", copy)
    tried = set(points(len(calls), 12)) | {len(calls)}
    disk = Disk(before)
    for number, call in enumerate(calls, start=1):
        disk.do(call)
        if number not in tried:
            continue
        for draw in range(DRAWS):
            after = tmp_path / "after" / copy.name
            shutil.rmtree(after.parent, ignore_errors=True)
            after.parent.mkdir()
            disk.fail(after, random.Random(f"{name} {number} {draw}"))
            if name == "live":
                assert samples_on_disk(after) >= samples_synced(calls[:number]), f"a sample is lost at call {number}"
            ended = Ended(0, "", number) if number == len(calls) else CUT_OFF
            try:
                operation.check(after, ended, KILL)
            except BaseException as error:
                raise AssertionError(f"the power fails after call {number}, {call.kind} {call.path}") from error


def samples_synced(calls: list[Call]) -> int:
    """How many samples were whole in a stream when it was last synced, in all streams of a run."""
    written: dict[str, bytes] = {}
    whole: dict[str, int] = {}
    for call in calls:
        if call.path.endswith("stream.jsonl"):
            if call.kind == "write":
                written[call.path] = written.get(call.path, b"") + call.data
            elif call.kind == "sync":
                whole[call.path] = written.get(call.path, b"").count(b'"finish_reason"')
    return sum(whole.values())


def samples_on_disk(archive: Path) -> int:
    """Samples that an archive holds, as rows where they are whole, else in a stream."""
    found = 0
    for folder in (*archive.glob("attempts/*"), *archive.glob("steps/*")):
        if (folder / "rows.parquet").exists():
            found += len(tables.read_rows(folder / "rows.parquet"))
        elif (folder / "stream.jsonl").exists():
            found += (folder / "stream.jsonl").read_bytes().count(b'"finish_reason"')
    return found


FS_IOC_SHUTDOWN = 0x8004587D
WITHOUT_FLUSHING = 2


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    # Long enough for nothing to be committed in passing.
    subprocess.run(["mount", "-o", "loop,commit=300,noauto_da_alloc", str(image), str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def lose_power(mount: Path) -> None:
    """Stop a file system as if the power failed: neither journal nor caches are written out."""
    descriptor = os.open(mount, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, FS_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING))
    finally:
        os.close(descriptor)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ext4, with a journal."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4") or not Path("/dev/loop-control").exists():
        pytest.skip("a loop-mounted ext4 needs root, loop devices and mkfs.ext4")
    path = tmp_path_factory.mktemp("ext4") / "empty.img"
    with path.open("wb") as file:
        file.truncate(24 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-J", "size=4", str(path)], check=True)
    try:
        with mounted(path, path.with_name("try")) as mount:
            (mount / "never synced").touch()
            lose_power(mount)
        with mounted(path, path.with_name("try")) as mount:
            assert not (mount / "never synced").exists(), "the power loss loses nothing"
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a loop-mounted ext4 cannot be shut down here: {error}")
    return path


@pytest.mark.parametrize("name", ["live", "freeze", "approve", "import"])
def test_the_power_fails_on_ext4(setup: Setup, image: Path, tmp_path: Path, name: str) -> None:
    operation = setup.operations[name]
    calls = operation.run(fresh(operation, tmp_path / "whole")).calls
    for call in (*points(calls, 4), calls + 1):
        one_power_loss(operation, image, tmp_path, call)


def one_power_loss(operation: Operation, image: Path, folder: Path, call: int) -> None:
    disk = folder / "disk.img"
    subprocess.run(["cp", "--sparse=always", str(image), str(disk)], check=True)
    with mounted(disk, folder / "disk") as mount:
        copy = shutil.copytree(operation.before, mount / operation.before.name)
        os.sync()
        ended = operation.run(copy, at=call, fault=KILL)
        lose_power(mount)
    with mounted(disk, folder / "disk") as mount:
        try:
            operation.check(mount / operation.before.name, ended, KILL)
        except BaseException as error:
            raise AssertionError(f"the power fails before call {call}") from error
