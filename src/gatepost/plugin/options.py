"""Options, markers, and what they come down to: the gates, task domains and engines of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gatepost.folders import root_of
from gatepost.plugin import hookspec

if TYPE_CHECKING:
    from gatepost.engine import Engine, EngineSpec
    from gatepost.gatefiles import Gates
    from gatepost.plugin.archives import ArchiveReplay

OLDEST_PYTEST = (8, 3)
"""8.0 and 8.1 reopen a parametrised session fixture, which is an engine here, for every file."""

MARKERS = (
    "gpu: needs an accelerator and starts an engine",
    "cpu: everything else, the embedded engine included",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; all start with ``--gatepost-``."""
    group = parser.getgroup("gatepost", "preregistered gates on LLM inference experiments")
    group.addoption(
        "--gatepost-live",
        action="store_true",
        help="start the engine and run the one open step of the collected archive",
    )
    group.addoption(
        "--gatepost-preflight",
        action="store_true",
        help="start the engine of the open step, judge what can be judged before generation, and stop there",
    )
    group.addoption(
        "--gatepost-gates",
        metavar="DIR",
        action="append",
        default=[],
        help="folder with gates of your own, repeatable (default: gates/ in the root directory)",
    )
    group.addoption(
        "--gatepost-studies",
        metavar="DIR",
        action="append",
        default=[],
        help="folder with task domains of your own, repeatable (default: studies/ in the root directory)",
    )
    group.addoption(
        "--gatepost-root",
        metavar="HEX",
        help="catalog root that was noted elsewhere, such as in a paper; for exactly one collected archive",
    )
    group.addoption(
        "--gatepost-evidence",
        metavar="DIR",
        help="folder in which evidence is looked for that was moved out of an archive (gatepost detach)",
    )
    group.addoption(
        "--gatepost-absent",
        choices=("fail", "report"),
        default="fail",
        help="what an item does whose evidence lies elsewhere: fail (default), or be counted as inconclusive, which "
        "passes nothing and leaves the exit status to the others",
    )
    group.addoption(
        "--gatepost-report",
        metavar="PATH",
        help="write a page about the collected archive to this file, or an index where there are more of them",
    )
    group.addoption("--gatepost-archive", metavar="DIR", help="archive of the fixtures; overrides gatepost_archive")
    parser.addini("gatepost_archive", "archive of the fixtures, relative to the root directory")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks of ``gatepost.plugin.hookspec``."""
    pluginmanager.add_hookspecs(hookspec)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and refuse what cannot work whatever is collected."""
    if pytest.version_tuple[:2] < OLDEST_PYTEST:
        oldest = ".".join(map(str, OLDEST_PYTEST))
        raise pytest.UsageError(f"gatepost needs pytest {oldest} or newer, found {pytest.__version__}")
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    for option in ("live", "preflight"):
        if config.getoption(f"gatepost_{option}") and config.getoption("dist", "no") != "no":
            raise pytest.UsageError(f"--gatepost-{option}: a live step runs in one process, with one engine: no -n")
    evidence = config.getoption("gatepost_evidence")
    if evidence is not None and not (config.invocation_params.dir / evidence).is_dir():
        raise pytest.UsageError(f"--gatepost-evidence: {evidence} is not a folder")
    for name in ("gates", "studies"):
        for folder in _named_folders(config, name):
            if not folder.is_dir():
                raise pytest.UsageError(f"--gatepost-{name}: {folder} is not a folder")


def _named_folders(config: pytest.Config, name: str) -> list[Path]:
    return [config.invocation_params.dir / folder for folder in config.getoption(f"gatepost_{name}")]


class Workspace:
    """What a run judges and samples with. Nothing is loaded before it is asked for.

    Attributes:
        config: of the run.
        archives: the collected ones, by their folders.
        stepped: whether this run has started the one step that it may run.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.archives: dict[Path, ArchiveReplay] = {}
        self.stepped = False

    @property
    def expected_root(self) -> str | None:
        """The catalog root of ``--gatepost-root``, with the name of its hash."""
        root: str | None = self.config.getoption("gatepost_root")
        try:
            return None if root is None else root_of(root)
        except ValueError as error:
            raise pytest.UsageError(f"--gatepost-root: {error}") from None

    @property
    def evidence(self) -> Path | None:
        """The folder of ``--gatepost-evidence``."""
        folder: str | None = self.config.getoption("gatepost_evidence")
        return None if folder is None else self.config.invocation_params.dir / folder

    @cached_property
    def gates(self) -> Gates:
        """The shipped gates, and those of every folder that was named."""
        from gatepost.gatefiles import Gates

        return Gates([*self._folders("gates"), *self._hooked_gate_folders()])

    @cached_property
    def studies(self) -> tuple[Path, ...]:
        """Folders in which a task domain is looked up before the shipped ones."""
        return tuple(self._folders("studies"))

    @cached_property
    def open_engine(self) -> Callable[[EngineSpec], Engine]:
        """Starts an engine in a process of its own. Every project's engines are known by name from here on."""
        from gatepost import engines
        from gatepost.engines.child import ChildSession

        self.config.hook.pytest_gatepost_engines(register=engines.register)
        return ChildSession

    def _folders(self, name: str) -> list[Path]:
        """The folders of ``--gatepost-<name>``, else the one in the root directory, if there is one."""
        default = self.config.rootpath / name
        return _named_folders(self.config, name) or [default] * default.is_dir()

    def _hooked_gate_folders(self) -> Iterator[Path]:
        for folders in self.config.hook.pytest_gatepost_gate_paths(config=self.config):
            yield from folders  # pluggy leaves out those that returned None


_WORKSPACE = pytest.StashKey[Workspace]()


def workspace(config: pytest.Config) -> Workspace:
    """The workspace of this run."""
    return config.stash.setdefault(_WORKSPACE, Workspace(config))
