"""Case b2, after the run: a fit before generation does not excuse an eviction during it."""

from typing import Any

import pytest

from gatepost.evidence import Record

from .builders import judge, plan


@pytest.mark.parametrize(
    ("scheduler", "outcome"),
    [
        ({"preemptions": 0}, "pass"),
        ({"preemptions": 1}, "fail"),
        ({"preemptions": None}, "inconclusive"),
        ({"steps": 9}, "inconclusive"),
        ({}, "inconclusive"),
        (None, "inconclusive"),
        ({"preemptions": False}, "fail"),
        ({"preemptions": "0"}, "fail"),
    ],
)
def test_no_preemption(scheduler: dict[str, Any] | None, outcome: str) -> None:
    assert judge("no_preemption", Record(plan(), scheduler=scheduler)).outcome == outcome
