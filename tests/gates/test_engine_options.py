from typing import Any

import pytest

from gatepost.evidence import Record
from gatepost.stages import Scope

from .builders import facts, failed, judge, outcomes, plan

OPTIONS = {"device": "cpu", "dtype": "float32", "attention": "sdpa", "use_cache": True, "max_model_len": 2048}


def test_every_reported_option_is_checked() -> None:
    verdict = judge("engine_options", Record(plan(options=OPTIONS), facts(**OPTIONS)))
    assert outcomes(verdict) == dict.fromkeys(OPTIONS, "pass")


@pytest.mark.parametrize(
    ("name", "resolved"),
    [
        ("device", "cuda:0"),
        ("dtype", "bfloat16"),
        ("attention", "eager"),
        ("use_cache", False),
        ("use_cache", 1),
        ("max_model_len", 2047),
        ("max_model_len", 2049),
    ],
)
def test_an_option_that_resolved_to_something_else_fails(name: str, resolved: Any) -> None:
    record = Record(plan(options=OPTIONS), facts(**{**OPTIONS, name: resolved}))
    assert failed(judge("engine_options", record)) == {name}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_the_engine_cannot_know_is_inconclusive(name: str) -> None:
    record = Record(plan(options=OPTIONS), facts(**{**OPTIONS, name: None}))
    assert judge("engine_options", record).outcome == "inconclusive"


def test_a_registered_null_is_not_off() -> None:
    record = Record(plan(options={"attention": None}), facts(attention="sdpa"))
    assert judge("engine_options", record).outcome == "inconclusive"


def test_options_that_nobody_registered_say_nothing() -> None:
    assert judge("engine_options", Record(plan(options={"seed": 0}), facts(**OPTIONS))).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("scope", "cap", "resolved"),
    [
        (Scope.RUNG, 8, 100),
        (Scope.RUNG, 16, 200),
        (Scope.SELECTED, 8, 100),
        (Scope.NESTED, 8, 200),  # sampled once, at the top rung
        (Scope.ONCE, None, 200),
    ],
)
def test_the_options_are_those_of_the_rung_that_samples(scope: Scope, cap: int | None, resolved: int) -> None:
    rungs = {8: {"max_model_len": 100}, 16: {"max_model_len": 200}}
    registered = plan(options={"max_model_len": 50}, rung_options=rungs, scope=scope, cap=cap)
    for found in (50, 100, 200):
        verdict = judge("engine_options", Record(registered, facts(max_model_len=found)))
        assert verdict.outcome == ("pass" if found == resolved else "fail")
