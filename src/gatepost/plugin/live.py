"""When a run may start an engine: if it was asked for in so many words, once, and with the accelerator there.

A plain ``pytest``, ``pytest receipts/`` or ``pytest -m cpu`` never starts one. One invocation runs one step.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gatepost.errors import GatepostError
from gatepost.plugin.options import workspace

if TYPE_CHECKING:
    from gatepost.plugin.archives import ArchiveReplay

LIVE = pytest.StashKey[bool]()
"""Set in the stash of an item that runs a step."""

LIVE_ID = "protocol.json::live["
"""Part of the node id of such an item, which is all that the controller of pytest-xdist knows of it."""

ENGINE_FIXTURES = ("engine_session", "probe")

DEVICE_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What the drivers of NVIDIA and AMD, and that of WSL, put there. Looking is all that this process does."""


def live_requested(config: pytest.Config) -> bool:
    """Whether ``--gatepost-live`` was given, or a ``-m`` that selects what is marked ``gpu`` and not ``cpu``."""
    return _asked(config) or _selects_gpu_only(config.getoption("markexpr"))


def _asked(config: pytest.Config) -> bool:
    """Whether a live run was asked for in so many words, in full or up to its preflight."""
    return bool(config.getoption("gatepost_live") or config.getoption("gatepost_preflight"))


def _selects_gpu_only(expression: str) -> bool:
    if not expression:
        return False
    from _pytest.mark.expression import Expression  # there is no public way to evaluate what -m was given

    try:
        compiled = Expression.compile(expression)
    except Exception:  # its type differs between versions; pytest itself reports what is wrong
        return False

    def selects(mark: str) -> bool:
        return compiled.evaluate(lambda name, /, **_: name == mark)

    return selects("gpu") and not selects("cpu")


def in_worker(config: pytest.Config) -> bool:
    """Whether this process is a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def missing_accelerator() -> str | None:
    """Why no accelerator can be used, or ``None`` where one may be."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={visible!r} hides every device"
    if not any(Path(file).exists() for file in DEVICE_FILES):
        return f"no CUDA device, since none of {', '.join(DEVICE_FILES)} exists"
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Once everything is deselected that will be: refuse a run that cannot do what its options ask for."""
    yield
    if in_worker(config) or config.option.collectonly or session.testsfailed:
        return
    _require_one_archive_for_root(config, [item.nodeid for item in items])
    if live_requested(config):
        starts = _starts(items)
        _require_something_to_start(config, starts, items)
        _require_one_start(starts)
        _require_accelerator(starts)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """The same for a run with workers, which may replay and must not start engines."""
    _require_one_archive_for_root(node.config, ids)
    if live := [name for name in ids if LIVE_ID in name]:
        raise pytest.UsageError(f"{live[0]}: a live step runs in one process, with one engine: no -n")


def _starts(items: Iterable[pytest.Item]) -> dict[str, pytest.Item]:
    """What would start an engine: each live item, and each engine fixture by the first test that uses it."""
    starts: dict[str, pytest.Item] = {}
    fixtures: dict[str, pytest.Item] = {}
    for item in items:
        if LIVE in item.stash:
            starts[item.nodeid] = item
        for fixture in set(ENGINE_FIXTURES) & set(getattr(item, "fixturenames", ())):
            fixtures.setdefault(fixture, item)
    return starts | {f"{item.nodeid} ({fixture})": item for fixture, item in fixtures.items()}


def _require_one_archive_for_root(config: pytest.Config, ids: Iterable[str]) -> None:
    if workspace(config).expected_root is None:
        return
    archives = sorted({name.partition("::")[0] for name in ids if "protocol.json::" in name})
    if len(archives) != 1:
        found = ", ".join(archives) or "none"
        raise pytest.UsageError(f"--gatepost-root is the root of exactly one archive, selected: {found}")


def _require_something_to_start(
    config: pytest.Config, starts: dict[str, pytest.Item], items: list[pytest.Item]
) -> None:
    archives = workspace(config).archives
    asked = _asked(config)
    if starts or not archives or (items and not asked):
        return
    nothing = "no open step is selected" if asked else "no open step needs an accelerator"
    raise pytest.UsageError("\n".join([nothing, *(f"  {_standing(replay)}" for replay in archives.values())]))


def _standing(replay: ArchiveReplay) -> str:
    """Where an archive stands, and what running its open step would take."""
    try:
        decision = replay.standing
    except GatepostError as error:
        return str(error)
    if decision.terminal or decision.step is None:
        return f"{replay.root}: {decision}"
    if replay.needs_accelerator(decision.step):
        return f"{replay.root}: {decision}, which needs an accelerator"
    return f"{replay.root}: {decision}, which needs none: --gatepost-live runs it"


def _require_one_start(starts: Iterable[str]) -> None:
    names = list(starts)
    if len(names) > 1:
        raise pytest.UsageError(
            "one invocation runs one step with one engine, selected:\n" + "\n".join(f"  {name}" for name in names)
        )


def _require_accelerator(starts: dict[str, pytest.Item]) -> None:
    missing = missing_accelerator()
    for name, item in starts.items():
        if missing is not None and item.get_closest_marker("gpu"):
            raise pytest.UsageError(f"{name} needs an accelerator: {missing}")
