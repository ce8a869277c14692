"""One protocol, every end: what the samples are decides, and the record of each end replays clean."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.errors import OrderError
from tests.scoring.study import MACROS, MUTE, OPEN, PRIMITIVES, WRONG, create_study

LATE = {"16": OPEN, "32": PRIMITIVES}
TOP = ["probe@32", "base@32", "designed@32"]
ENDS: dict[str, tuple[Mapping[str, Any], str, list[str]]] = {
    "the probe is rejected at each rung": ({"probe": OPEN}, "NO_RUNG selected=none", ["probe@16", "probe@32"]),
    "the probe is rejected, then accepted, and the base arm is rejected": (
        {"probe": LATE, "base": OPEN},
        "NO_RUNG selected=none",
        ["probe@16", "probe@32", "base@32"],
    ),
    "the base arm is rejected at each rung": (
        {"base": OPEN},
        "NO_RUNG selected=none",
        ["probe@16", "base@16", "probe@32", "base@32"],
    ),
    "the designed arm is rejected at each rung": (
        {"designed": OPEN},
        "NO_RUNG selected=none",
        ["probe@16", "base@16", "designed@16", *TOP],
    ),
    "the first rung is adequate, and the scores pass": (
        {"designed": MACROS},
        "MACROS_VERIFIED selected=16",
        ["probe@16", "base@16", "designed@16", "scoring@16"],
    ),
    "the probe is rejected, then all is adequate, and the scores pass": (
        {"probe": LATE, "designed": MACROS},
        "MACROS_VERIFIED selected=32",
        ["probe@16", *TOP, "scoring@32"],
    ),
    "the designed arm is rejected, then adequate, and the scores pass": (
        {"designed": {"16": OPEN, "32": MACROS}},
        "MACROS_VERIFIED selected=32",
        ["probe@16", "base@16", "designed@16", *TOP, "scoring@32"],
    ),
    "too few answers parse in one arm": (
        {"base": MUTE, "designed": MACROS},
        "MACROS_REFUTED selected=16",
        ["probe@16", "base@16", "designed@16", "scoring@16"],
    ),
    "macros are offered and not used": (
        {"designed": PRIMITIVES},
        "MACROS_REFUTED selected=16",
        ["probe@16", "base@16", "designed@16", "scoring@16"],
    ),
    "the designed arm solves less than the base arm": (
        {"probe": LATE, "designed": WRONG},
        "MACROS_REFUTED selected=32",
        ["probe@16", *TOP, "scoring@32"],
    ),
}
FAILS = {
    "too few answers parse in one arm": "parse_rate",
    "macros are offered and not used": "macro_use",
    "the designed arm solves less than the base arm": "macro_use, oracle_not_below",
}


@pytest.mark.parametrize("name", ENDS)
def test_every_terminal_state(tmp_path: Path, name: str) -> None:
    scripts, end, steps = ENDS[name]
    study = create_study(tmp_path)
    archive = study.freeze()
    decision = study.run(archive, **scripts)
    assert str(decision) == f"decision: {end}"
    finished = [event.step for event in archive.journal.read() if event.event == "finished"]
    assert finished == ["checks", *steps]
    if name in FAILS:
        assert decision.reason == f"scoring@{decision.rung} failed: {FAILS[name]}"
    selection = jsonfile.read_canonical(archive.root / "selection.json")
    assert (selection["pass"], selection["selected"]) == (decision.rung is not None, decision.rung)
    replayed = study.replay(archive)
    assert (replayed.differences, replayed.decision) == ((), decision)
    with pytest.raises(OrderError, match="no step is open"):
        study.step(archive)


def test_scores_that_cannot_be_known_halt(tmp_path: Path) -> None:
    """Three reuse tasks are registered, and there are two: that refutes nothing."""
    study = create_study(tmp_path)
    archive = study.freeze(lambda text: text.replace("reuse_tasks = 2, min", "reuse_tasks = 3, min"))
    decision = study.run(archive, designed=MACROS)
    assert str(decision) == "decision: HALTED selected=16"
    assert decision.reason == "scoring@16 is inconclusive at 16: macro_use"


def test_scoring_is_locked_until_a_selection(tmp_path: Path) -> None:
    """Nothing but the ladder opens it, and it opens nothing but the selected rung's."""
    study = create_study(tmp_path)
    archive = study.freeze()
    while (decision := study.step(archive)).rung is None:
        assert decision.step is not None
        assert decision.step.stage != "scoring"
    assert str(decision.step) == "scoring@16"


def test_a_selected_rung_is_scored_by_its_own_samples_alone(tmp_path: Path) -> None:
    """The base arm was mute at the rung below, which was rejected for the designed arm's sake."""
    study = create_study(tmp_path)
    archive = study.freeze()
    decision = study.run(archive, base={"16": MUTE}, designed={"16": OPEN, "32": MACROS})
    assert str(decision) == "decision: MACROS_VERIFIED selected=32"
