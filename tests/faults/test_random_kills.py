"""A live run is killed at any moment, not only between system calls: what it leaves is whole, and the next one goes on.

``GATEPOST_FAULTS=all`` kills 2,000 times. Each run is a process of its own, forked from one that has everything loaded,
so that a moment is one of the run and not of starting Python. A killed run is gone on with by the next, which is killed
too, until the ladder has ended.
"""

import os
import random
import shutil
import signal
import time
import warnings
from pathlib import Path

import pytest

from gatepost import integrity
from gatepost.archive import Archive
from gatepost.ladder import audit
from tests.archives import Project, create_project
from tests.faults.conftest import problem
from tests.faults.test_write_faults import goes_on
from tests.faults.write_side import EVERY

SEEDS, KILLS_OF_EACH = (20, 100) if EVERY else (2, 10)
DECISION = "decision: REPLICATED selected=32"


def run(project: Project, archive: Path) -> int:
    """Run the open step in a process that nobody waits for; returns its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forking beside other threads, which do nothing here
        child = os.fork()
    if child == 0:
        status = 1
        try:
            project.step(Archive(archive))
            status = 0
        finally:
            os._exit(status)
    return child


def seconds_of_a_step(project: Project, frozen: Path, folder: Path) -> float:
    """How long the longest step takes, so that a kill at a random moment of that may be at any moment of one."""
    copy = shutil.copytree(frozen, folder / "timed" / frozen.name)
    longest = 0.0
    while not audit(Archive(copy).protocol, Archive(copy).judgements()).terminal:
        started = time.monotonic()
        assert os.waitpid(run(project, copy), 0)[1] == 0
        longest = max(longest, time.monotonic() - started)
    return longest


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    choose, killed, inside = random.Random(seed), 0, 0
    project = create_project(tmp_path / "project")
    frozen = project.freeze().root
    seconds = seconds_of_a_step(project, frozen, tmp_path)
    number = 0
    while killed < KILLS_OF_EACH:
        number += 1
        copy = shutil.copytree(frozen, tmp_path / str(number) / frozen.name)
        noted: list[str] = []
        while not audit(Archive(copy).protocol, Archive(copy).judgements()).terminal and killed < KILLS_OF_EACH:
            noted.append(Archive(copy).catalog()["root"])
            child = run(project, copy)
            time.sleep(choose.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status in (0, -signal.SIGKILL)
            killed += status == -signal.SIGKILL
            archive = Archive(copy)
            notes = integrity.verify(archive)
            inside += bool(notes)
            assert problem(project, copy) == "", f"seed {seed}, kill {killed}"
        goes_on(project, Archive(copy))
        for root in noted:
            integrity.verify(Archive(copy), expected_root=root)
        assert str(audit(Archive(copy).protocol, Archive(copy).judgements())) == DECISION
        shutil.rmtree(copy.parent)
    assert inside, "some of the kills were in the midst of something"
