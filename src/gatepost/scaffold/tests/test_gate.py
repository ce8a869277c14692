"""Both sides of each boundary of gates/thinks_first.py, and what it makes of nothing."""

from pathlib import Path

from gatepost.gatefiles import Gates
from gatepost.testing import build_record

GATES = Gates([Path(__file__).parents[1] / "gates"])
THINKS_FIRST = GATES.get("thinks_first", 1, where="test")
LIMITS = {"min_thinking_tokens": 8, "min_thinking_share": 0.5}


def outcome(*close_steps: int | None) -> str:
    """The outcome for one sample a step: closed by that id, counted from one; `None` was cut at the cap of 16."""
    return str(THINKS_FIRST.judge(build_record(close_steps, cap_tokens=16), LIMITS).outcome)


def test_the_thresholds_are_the_ones_it_takes() -> None:
    THINKS_FIRST.require_thresholds(LIMITS, where="test")


def test_half_of_the_samples_are_enough_and_fewer_are_not() -> None:
    assert outcome(9, 9, None, None) == "pass"
    assert outcome(9, None, None, None) == "fail"


def test_eight_ids_before_the_close_are_enough_and_seven_are_not() -> None:
    assert outcome(9) == "pass"
    assert outcome(8) == "fail"


def test_a_close_counts_up_to_the_cap() -> None:
    assert outcome(16) == "pass"
    assert outcome(None) == "fail"


def test_no_sample_is_inconclusive() -> None:
    assert outcome() == "inconclusive"
