"""The hooks that a project can implement, in a ``conftest.py`` or in a plugin of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gatepost.archive import Archive
    from gatepost.ladder import Decision, Step


@pytest.hookspec
def pytest_gatepost_engines(register: Callable[[str, str], None]) -> None:
    """Make engines known by the names that protocols use.

    Called once, before the first engine of a live run starts. The class is imported in the engine's own process,
    never in pytest's::

        def pytest_gatepost_engines(register):
            register("my-engine", "my_package.engine:MyEngine")
    """


@pytest.hookspec
def pytest_gatepost_gate_paths(config: pytest.Config) -> Iterable[Path] | None:
    """Return folders with gates, beside the shipped ones and those of ``--gatepost-gates``.

    Called once, before the first verdict is recomputed::

        def pytest_gatepost_gate_paths(config):
            return [config.rootpath / "experiments" / "gates"]
    """


@pytest.hookspec
def pytest_gatepost_receipt_written(archive: Archive, step: Step, decision: Decision) -> None:
    """React to a step that has just been committed: its evidence, receipt and catalog are on disk.

    The record is complete and stays as it is, whatever is done here::

        def pytest_gatepost_receipt_written(archive, step, decision):
            print(f"{archive.protocol.id}: {step} is done, {decision}")
    """
