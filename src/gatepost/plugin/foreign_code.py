"""An archive is data, often somebody else's: pytest must not run code that lies in one, nor write into it.

Collection never looks into an archive for code (see ``gatepost.plugin.collect``). But pytest reads a configuration and
runs a ``conftest.py`` before it collects anything, so what could be either is refused before that. And it takes an
archive for its root directory where nothing above has a configuration, and keeps its cache there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from gatepost.folders import is_archive

CONFIGURATIONS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # pytest loads them in a wrapper, so only a wrapper comes before
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Refuse a run that is about an archive with code in it, and keep pytest's cache out of any."""
    for folder in _archives_near(early_config):
        for path in (*(folder / name for name in CONFIGURATIONS), *sorted(folder.rglob("conftest.py"))):
            if path.exists() or path.is_symlink():
                raise pytest.UsageError(f"{path}: is not part of an archive, and pytest would run it: remove it first")
    _keep_cache_out(early_config)
    return (yield)


def _keep_cache_out(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin("cacheprovider"):
        return
    cache = config.rootpath / config.getini("cache_dir")
    if any(map(_is_readable_archive, cache.parents)):
        for name in ("cacheprovider", "stepwise"):
            if (plugin := config.pluginmanager.get_plugin(name)) is not None:
                config.pluginmanager.unregister(plugin)


def _archives_near(config: pytest.Config) -> Iterator[Path]:
    """The archives above, at and right below what was named: from these, pytest takes what it loads early."""
    start = config.invocation_params.dir
    named = config.known_args_namespace.file_or_dir or config.getini("testpaths")
    for argument in named or ["."]:
        path = start / argument.partition("::")[0]
        yield from filter(_is_readable_archive, (path, *path.parents, *_below(path)))


def _below(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except OSError:  # a file, or nothing that pytest could read either
        return []


def _is_readable_archive(folder: Path) -> bool:
    try:
        return is_archive(folder)
    except OSError:  # this looks into folders that may be none of the run's business
        return False
