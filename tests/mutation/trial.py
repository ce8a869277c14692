"""One mutant on trial: the changed file in place, the tests that may see it, in a forked process."""

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.mutation.covering import Suite
from tests.mutation.mutants import Mutant

MOST_MEMORY_BYTES = 12 * 2**30
OUTCOMES = {0: "survived", 5: "survived"}
"""What pytest exits with where no test failed, or none ran; anything else kills."""


class _Chosen:
    """A plugin that keeps the chosen tests, in their order, and any that the mutant made anew."""

    def __init__(self, tests: list[str], known: dict[str, float]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}
        self.known = known

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.order or item.nodeid not in self.known]
        items.sort(key=lambda item: self.order.get(item.nodeid, len(self.order)))


def outcome_of(tree: Path, mutant: Mutant, suite: Suite) -> str:
    """``killed``, ``timeout``, ``survived``, or ``not covered`` where no test runs the line."""
    tests = suite.tests_of(mutant)
    if not tests:
        return "not covered"
    own = suite.first_of(mutant)
    with _in_place(tree / mutant.module, mutant.source):
        for some in filter(None, (own, tests[len(own) :])):
            if (outcome := _run(tree, some, suite)) != "survived":
                break
    return outcome


def _run(tree: Path, tests: list[str], suite: Suite) -> str:
    def test() -> int:
        with tempfile.TemporaryDirectory() as scratch, begin(tree, scratch):
            files = dict.fromkeys(test.partition("::")[0] for test in tests)
            return int(pytest.main([*options_of(scratch), *files], plugins=[_Chosen(tests, suite.seconds)]))

    code = forked(test, limit=60 + 10 * sum(suite.seconds[test] for test in tests))
    return "timeout" if code is None else OUTCOMES.get(code, "killed")


def forked(work: Callable[[], int], *, limit: float) -> int | None:
    """The exit code of work that a forked process does; ``None`` if it took longer than ``limit`` seconds."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    end, pause = time.monotonic() + limit, 0.002
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(0.05, 1.2 * pause)
    os.kill(child, signal.SIGKILL)
    _end_group(child)
    os.waitpid(child, 0)
    return None


def _end_group(leader: int) -> None:
    """End whatever a trial started and left."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


@contextmanager
def begin(tree: Path, scratch: str) -> Iterator[None]:
    """A process group of its own, a limit of memory, and a file for what is said."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
    with (tree / "build" / "trial.txt").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        yield


def options_of(scratch: str) -> list[str]:
    """What pytest is told: to stop at the first failure, and to load no more than it needs."""
    options = ["-x", "-q", "--no-header", "--tb=line", "-m", "not gpu"]
    options += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:benchmark"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what the parent imported for all forks
    return [*options, f"--basetemp={scratch}/tests", "--hypothesis-seed=0"]


@contextmanager
def _in_place(file: Path, source: str) -> Iterator[None]:
    """A file holds other text for a while. No bytecode of it is kept, and what there was is valid again after."""
    original, times = file.read_bytes(), file.stat()
    sys.dont_write_bytecode = True
    try:
        file.write_text(source)
        yield
    finally:
        file.write_bytes(original)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
