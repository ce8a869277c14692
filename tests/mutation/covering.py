"""Which tests run which lines, and how long they take: one run of the suite, by a process that then ends.

python -m tests.mutation.covering OUT TEST…
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

from tests.mutation.mutants import Mutant

MOST_SECONDS = 6.0
"""How long the tests of one mutant may take together, by what they took unchanged: the quickest are tried."""


FIRST = 20
"""How many tests are tried first where a module has no test file of its own: few files are soon read."""


class Suite(NamedTuple):
    """What one run of all tests showed.

    Attributes:
        seconds: test -> how long it took.
        lines: file -> line -> the tests that ran it.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]

    def is_own(self, test: str, module: str) -> bool:
        """Whether a test stands in the test file that is named as the module."""
        return f"/test_{Path(module).stem}.py::" in test

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that may see a mutant, those of its own test file first, then the quickest first."""
        lines = self.lines.get(mutant.module, {})
        where = lines.keys() if mutant.always else [line for line in mutant.lines if line in lines]
        found = {test for line in where for test in lines[line]}
        chosen, spent = [], 0.0
        for test in sorted(found, key=lambda test: (not self.is_own(test, mutant.module), self.seconds[test], test)):
            if spent + self.seconds[test] <= MOST_SECONDS:
                chosen.append(test)
                spent += self.seconds[test]
        return chosen

    def first_of(self, mutant: Mutant) -> list[str]:
        """Those that are tried before the others."""
        tests = self.tests_of(mutant)
        return [test for test in tests if self.is_own(test, mutant.module)] or tests[:FIRST]


def read(path: Path) -> Suite:
    """The suite that ``main`` wrote."""
    document = json.loads(path.read_text())
    lines = {name: {int(line): tests for line, tests in of.items()} for name, of in document["lines"].items()}
    return Suite(document["seconds"], lines)


class _Watch:
    """A plugin that names the running test to the coverage, fixtures included, and takes its time."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.measured.switch_context(item.nodeid)
        start = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        self.measured.switch_context("")
        return result


def main(out: Path, tests: list[str]) -> int:
    """Run the tests, which have to pass, and write down what they ran."""
    root = Path.cwd()
    measured = coverage.Coverage(data_file=None, include=[f"{root}/src/gatepost/*", f"{root}/gates/*"])
    watch = _Watch(measured)
    measured.start()
    code = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not gpu", *tests], plugins=[watch])
    measured.stop()
    if code:
        return int(code)
    data = measured.get_data()
    lines: dict[str, dict[int, list[str]]] = defaultdict(dict)
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            lines[str(Path(file).relative_to(root))][line] = [name for name in contexts if name]
    out.write_text(json.dumps({"seconds": watch.seconds, "lines": lines}))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
