from typing import Any

import pytest

from gatepost.evidence import Record

from .builders import SAMPLING, facts, failed, judge, outcomes, plan


def verdict(applied: Any) -> Any:
    return judge("sampling_resolution", Record(plan(), facts(sampling=applied)))


def test_exactly_the_registered_values_pass() -> None:
    assert outcomes(verdict({**SAMPLING, "stop_ids": [2]})) == dict.fromkeys([*SAMPLING, "unregistered_values"], "pass")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.7),
        ("temperature", 0.6000000238418579),
        ("top_p", 1.0),
        ("top_k", 0),
        ("top_k", 50),
        ("min_p", 0.05),
        ("repetition_penalty", 1.05),
        ("greedy", True),
        ("greedy", 0),
        ("stop_ids", [2, 9]),  # the model's generation file names one more end
        ("stop_ids", [9]),
        ("stop_ids", []),
        ("stop_ids", 2),
    ],
)
def test_a_value_from_somewhere_else_fails(name: str, value: Any) -> None:
    assert failed(verdict({**SAMPLING, name: value})) == {name}


@pytest.mark.parametrize("name", SAMPLING)
@pytest.mark.parametrize("unknown", [{}, {"value": None}])
def test_a_value_the_engine_does_not_report_is_inconclusive(name: str, unknown: dict[str, None]) -> None:
    applied = {key: value for key, value in SAMPLING.items() if key != name}
    if unknown:
        applied[name] = None
    assert verdict(applied).outcome == "inconclusive"


@pytest.mark.parametrize("value", [1.0, None, False])
def test_a_value_that_nobody_registered_fails_even_at_its_default(value: Any) -> None:
    assert failed(verdict({**SAMPLING, "presence_penalty": value})) == {"unregistered_values"}


def test_no_report_is_inconclusive() -> None:
    assert verdict(None).outcome == "inconclusive"
