"""The three engines of the speed study, in turns. How fast they were, `python -m bench.speed ARCHIVE…` says."""

from collections.abc import Callable

import pytest

from gatepost.archive import Archive
from tests.live.conftest import Run

RUNS = 4


@pytest.mark.gpu
def test_in_turns(freeze: Callable[[str], Archive], run: Run) -> None:
    archives = [freeze(f"engine_geometry/speed_{graphs}.toml") for graphs in ("exact", "implicit", "eager")]
    for _ in range(RUNS):
        for archive in archives:
            assert run(archive, "-m", "gpu").returncode == 0
    assert {archive.journal.read()[-1].detail for archive in archives} == {"SELECTED 512"}
