"""Each write-side system call of ``gatepost detach`` is killed, failed or cut short: no byte of evidence is ever lost.

Afterwards each large file lies whole in the archive, or in the folder under its digest, or in both; the archive
verifies, its catalog is as it was, and the same command goes on to the end.
"""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gatepost import integrity, jsonfile
from gatepost.__main__ import main
from gatepost.archive import Archive
from tests.archives import Project, create_project
from tests.elsewhere.conftest import MOVED
from tests.faults.conftest import replayed
from tests.faults.write_side import EVERY, FAULTS, Ended, Fault, Kind, Runner, points, runner


class Setup(NamedTuple):
    """What runs under the shim, and a folder that holds a finished archive, ``toy``, and an empty one, ``store``."""

    run: Runner
    project: Project
    before: Path

    def command(self, copy: Path) -> list[str]:
        own = ("--gates", str(self.project.root / "gates"), "--studies", str(self.project.root / "studies"))
        return ["detach", str(copy / "toy"), "--into", str(copy / "store"), "--over-bytes", "0", *own]

    def spoilt(self, copy: Path, **fault: object) -> Ended:
        return self.run("command", *self.command(copy), under=copy, **fault)  # type: ignore[arg-type]

    def fresh(self, folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(self.before, folder)


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("detach-faults")
    project = create_project(folder / "project")
    frozen = project.freeze()
    with runner(tmp_path_factory.mktemp("runner"), project, frozen.root) as run:
        archive = Archive(shutil.copytree(frozen.root, folder / "before" / "toy"))
        project.run(archive)
        (folder / "before" / "store").mkdir()
        yield Setup(run, project, folder / "before")


def nothing_is_lost(setup: Setup, copy: Path) -> None:
    root, store = copy / "toy", copy / "store"
    for name in MOVED:
        digest = jsonfile.sha256_of(setup.before / "toy" / name)
        kept = [path for path in (root / name, store / digest) if path.exists()]
        assert kept, f"{name} is gone"
        assert {jsonfile.sha256_of(path) for path in kept} == {digest}
    assert (root / "catalog.json").read_bytes() == (setup.before / "toy" / "catalog.json").read_bytes()
    integrity.verify(Archive(root, evidence=store))
    replay = replayed(setup.project, root, evidence=store)
    assert (replay.differences, replay.unjudged) == ((), ())


def goes_on(setup: Setup, copy: Path) -> None:
    """The same command again, and all is where it belongs, and nothing else is."""
    nothing_is_lost(setup, copy)
    assert main(setup.command(copy)) == 0
    nothing_is_lost(setup, copy)
    assert not any((copy / "toy" / name).exists() for name in MOVED)
    assert integrity.verify(Archive(copy / "toy", evidence=copy / "store")) == [], "nothing is left over"
    assert len(jsonfile.entries(copy / "store")) == len(MOVED)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_call_spoilt(setup: Setup, tmp_path: Path, fault: str) -> None:
    bad = FAULTS[fault]
    calls = setup.spoilt(setup.fresh(tmp_path / "whole"), fault=bad).calls
    tried = points(calls, 5)
    assert calls >= len(tried) >= 5
    for call in tried:
        copy = setup.fresh(tmp_path / "spoilt")
        ended = setup.spoilt(copy, at=call, fault=bad)
        try:
            assert ended.killed is (bad.error == 0 and bad.kind != Kind.SHORT_WRITE)
            if ended.status == 1:
                assert os.strerror(bad.error) in ended.said
                assert str(copy) in ended.said, "the error names the file"
            goes_on(setup, copy)
        except BaseException as error:
            raise AssertionError(f"{fault} at call {call} of {calls}: {ended}") from error


@pytest.mark.parametrize("seed", range(40 if EVERY else 2))
def test_killed_again_and_again(setup: Setup, tmp_path: Path, seed: int) -> None:
    choose, copy = random.Random(seed), setup.fresh(tmp_path / "copy")
    calls = setup.spoilt(copy).calls
    copy = setup.fresh(copy)
    ended = setup.spoilt(copy, at=choose.randint(1, calls), fault=FAULTS["SIGKILL before the call"])
    assert ended.killed
    for _ in range(20):
        nothing_is_lost(setup, copy)
        if not ended.killed:
            break
        fault = Fault(choose.choice([Kind.KILL, Kind.TORN_WRITE]))
        ended = setup.spoilt(copy, at=choose.randint(1, calls), fault=fault)
    goes_on(setup, copy)
