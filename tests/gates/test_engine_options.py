from typing import Any

import pytest

from gatepost.evidence import Record
from gatepost.stages import Scope

from .builders import checks, facts, failed, judge, outcomes, plan

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


SCHEDULED = {
    "max_num_seqs": 19,
    "max_num_batched_tokens": 4096,
    "enable_chunked_prefill": True,
    "enable_prefix_caching": False,
    "async_scheduling": False,
    "scheduling_policy": "fcfs",
    "tensor_parallel_size": 1,
    "data_parallel_size": 1,
}
SCHEDULER = {
    "max_num_seqs": 19,
    "max_num_batched_tokens": 4096,
    "chunked_prefill": True,
    "prefix_caching": False,
    "async_scheduling": False,
    "policy": "fcfs",
    "tensor_parallel_size": 1,
    "data_parallel_size": 1,
}


def scheduled(changes: dict[str, Any] | None, **registered: Any) -> dict[str, str]:
    """The outcomes beside that of the dtype; the scheduler's facts differ by the changes, ``None`` for no facts."""
    scheduler = None if changes is None else {**SCHEDULER, **changes}
    known = plan(options={"dtype": "float32", **SCHEDULED, **registered})
    found = outcomes(judge("engine_options", Record(known, facts(dtype="float32", scheduler=scheduler))))
    assert found.pop("dtype") == "pass"
    return found


def test_a_scheduler_as_registered_adds_no_check() -> None:
    assert scheduled({}) == {}
    assert scheduled({"preemptions": 3, "speculative_tokens": 2}) == {}


@pytest.mark.parametrize(
    ("name", "resolved"),
    [
        ("max_num_seqs", 16),
        ("max_num_seqs", 20),
        ("max_num_seqs", "19"),
        ("max_num_batched_tokens", 4095),
        ("chunked_prefill", False),
        ("chunked_prefill", 1),
        ("prefix_caching", True),
        ("prefix_caching", 0),
        ("async_scheduling", True),
        ("policy", "priority"),
        ("tensor_parallel_size", 8),
        ("data_parallel_size", 2),
    ],
)
def test_a_scheduler_that_resolved_to_something_else_fails(name: str, resolved: Any) -> None:
    assert scheduled({name: resolved}) == {f"scheduler.{name}": "fail"}


@pytest.mark.parametrize("name", SCHEDULER)
def test_a_scheduler_that_does_not_tell_is_inconclusive(name: str) -> None:
    assert scheduled({name: None}) == {f"scheduler.{name}": "inconclusive"}
    assert scheduled(None) == {f"scheduler.{each}": "inconclusive" for each in SCHEDULER}


def test_what_is_left_to_the_scheduler_is_not_compared() -> None:
    assert scheduled(None, **dict.fromkeys(SCHEDULED)) == {}
    known = Record(plan(options={"dtype": "float32"}), facts(dtype="float32", scheduler=SCHEDULER))
    assert outcomes(judge("engine_options", known)) == {"dtype": "pass"}


PASSED_ON = {
    "dtype": "float32",
    "enforce_eager": False,
    "seed": 0,
    "gpu_memory_utilization": 0.9,
    "hf_overrides": {"a": [1]},
    "compilation_config": {"cudagraph_capture_sizes": [1, 2, 4], "cudagraph_mode": "FULL"},
    "generation_config": "vllm",
}
REGISTERED = {
    "device": "cpu",
    "dtype": "float32",
    "enforce_eager": False,
    "seed": 0,
    "gpu_memory_utilization": 0.9,
    "hf_overrides": {"a": [1]},
    "cudagraph_capture_sizes": [1, 2, 4],
    "cudagraph_mode": "FULL",
    "max_cudagraph_capture_size": None,
    "chunk_tokens": 1,
}


def passed(arguments: Any) -> dict[str, str]:
    """The outcomes beside those of dtype and device, for an engine that says it was given these arguments."""
    environment = {"engine_arguments": arguments}
    record = Record(plan(options=REGISTERED), facts(device="cpu", dtype="float32", environment=environment))
    found = outcomes(judge("engine_options", record))
    assert (found.pop("device"), found.pop("dtype")) == ("pass", "pass")
    return found


def test_arguments_as_registered_add_no_check() -> None:
    assert passed(PASSED_ON) == {}
    silent = Record(plan(options=REGISTERED), facts(device="cpu", dtype="float32"))
    assert judge("engine_options", silent).outcome == "pass"


@pytest.mark.parametrize(
    ("changes", "odd"),
    [
        ({"enforce_eager": True}, "enforce_eager"),
        ({"enforce_eager": 0}, "enforce_eager"),
        ({"seed": 1}, "seed"),
        ({"dtype": "bfloat16"}, "dtype"),
        ({"gpu_memory_utilization": 0.91}, "gpu_memory_utilization"),
        ({"hf_overrides": {"a": [1, 2]}}, "hf_overrides"),
        (
            {"compilation_config": {"cudagraph_capture_sizes": [1, 2], "cudagraph_mode": "FULL"}},
            "cudagraph_capture_sizes",
        ),
        (
            {"compilation_config": {"cudagraph_capture_sizes": [1, 2, 4], "cudagraph_mode": "NONE"}},
            "cudagraph_mode",
        ),
    ],
)
def test_an_argument_that_is_not_the_registered_one_fails(changes: dict[str, Any], odd: str) -> None:
    assert passed({**PASSED_ON, **changes}) == {f"engine_arguments.{odd}": "fail"}


@pytest.mark.parametrize("name", ["enforce_eager", "seed", "dtype", "hf_overrides"])
def test_an_argument_that_was_not_passed_is_inconclusive(name: str) -> None:
    odd = {f"engine_arguments.{name}": "inconclusive"}
    assert passed({key: value for key, value in PASSED_ON.items() if key != name}) == odd
    assert passed({**PASSED_ON, name: None}) == odd


@pytest.mark.parametrize("arguments", [None, [], "enforce_eager", {}])
def test_arguments_that_are_none_are_inconclusive(arguments: Any) -> None:
    names = set(REGISTERED) - {"device", "chunk_tokens", "max_cudagraph_capture_size"}
    assert passed(arguments) == {f"engine_arguments.{name}": "inconclusive" for name in names}


@pytest.mark.parametrize("config", [None, [], {}])
def test_a_compilation_config_that_is_none_is_inconclusive(config: Any) -> None:
    odd = {f"engine_arguments.{name}": "inconclusive" for name in ("cudagraph_capture_sizes", "cudagraph_mode")}
    assert passed({**PASSED_ON, "compilation_config": config}) == odd


def test_a_check_tells_both_sides() -> None:
    record = Record(plan(options={"dtype": "x", "max_num_seqs": 19}), facts(dtype="x", scheduler={"max_num_seqs": 16}))
    check = checks(judge("engine_options", record))["scheduler.max_num_seqs"]
    assert (check.observed, check.relation, check.limit) == (16, "==", 19)
