"""Most mutants in milliseconds: one pytest session collects, then forks for each of them and swaps the code in place.

What a module does on import is not done again, so only what fails counts here, and only if the same test passes with
nothing swapped; every mutant that is left goes through ``trial``, from a fresh start.
"""

import gc
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.mutation.covering import Suite
from tests.mutation.mutants import Mutant
from tests.mutation.trial import begin, forked, options_of

Codes = dict[str, CodeType]


def killed_by(tree: Path, module: str, mutants: Sequence[Mutant], suite: Suite) -> dict[int, str]:
    """Mutant number -> the test that failed, or ``timeout``, of the mutants of one file that are killed in this way."""
    tests = {mutant.number: suite.first_of(mutant) for mutant in mutants if not mutant.always}
    files = sorted({test.partition("::")[0] for some in tests.values() for test in some})
    if not files:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "killed.json"

        def session() -> int:
            with begin(tree, scratch):
                return int(
                    pytest.main([*options_of(scratch), *files], plugins=[_Session(tree, module, mutants, tests, out)])
                )

        forked(session, limit=24 * 3600)
        return {int(number): test for number, test in json.loads(out.read_text()).items()} if out.exists() else {}


class _Session:
    """A plugin that takes the place of pytest's own loop over the tests."""

    def __init__(
        self, tree: Path, module: str, mutants: Sequence[Mutant], tests: dict[int, list[str]], out: Path
    ) -> None:
        self.file, self.mutants, self.tests, self.out = tree / module, mutants, tests, out
        self.failed: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = _functions(self.file)
        original = _codes(self.file.read_text(), self.file)
        gc.freeze()
        killed: dict[int, str] = {}
        for mutant in self.mutants:
            chosen = [items[test] for test in self.tests.get(mutant.number, ()) if test in items]
            changed = {
                name: code for name, code in _codes(mutant.source, self.file).items() if original.get(name) != code
            }
            named = all("<" not in name for name in changed)  # several lambdas have one name
            if chosen and changed and named and changed.keys() <= functions.keys():
                swaps = [(function, changed[name]) for name in changed for function in functions[name]]
                if (end := self._try(chosen, swaps)) is not None:
                    killed[mutant.number] = end
        sound = {test for test in set(killed.values()) & items.keys() if self._try([items[test]], ()) is None}
        self.out.write_text(json.dumps({n: test for n, test in killed.items() if test in sound or test == "timeout"}))
        return True

    def _try(self, items: Sequence[pytest.Item], swaps: Sequence[tuple[FunctionType, CodeType]]) -> str | None:
        """The test that failed with code swapped, ``timeout``, or ``None``."""
        said = self.out.with_name("failed.txt")
        said.write_text("")

        def trial() -> int:
            os.setsid()
            try:
                for function, code in swaps:
                    function.__code__ = code
            except ValueError:  # it closes over other names, so it cannot take the place
                return 0
            for item, after in zip(items, (*items[1:], None), strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self.failed is not None:
                    said.write_text(self.failed)
                    return 1
            return 0

        code = forked(trial, limit=120)
        return "timeout" if code is None else said.read_text() or None


def _functions(file: Path) -> dict[str, list[FunctionType]]:
    """Qualified name -> the functions of that name that are alive and come from a file."""
    found: dict[str, list[FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == str(file):
            found.setdefault(one.__code__.co_qualname, []).append(one)
    return found


def _codes(source: str, file: Path) -> Codes:
    """Qualified name -> code, of the functions and methods of a file; what is nested in one is a part of it."""
    return {code.co_qualname: code for code in _walk(compile(source, str(file), "exec", dont_inherit=True))}


def _walk(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & 0x2:  # CO_NEWLOCALS: a function; the body of a class has its own namespace instead
                yield inner
            else:
                yield from _walk(inner)
