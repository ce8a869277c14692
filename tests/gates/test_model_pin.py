from typing import Any

import pytest

from gatepost.evidence import Record

from .builders import ADAPTER_FILES, facts, failed, judge, outcomes, plan

COMMITS = {"revision": "a" * 40, "tokenizer_revision": "b" * 40}
IDS = {"markers": {"<think>": 7, "</think>": 8}, "model_eos_ids": (2,), "tokenizer_eos_id": 3}
FILES = {"config.json": "c" * 64, "model.safetensors": "d" * 64}


def verdict(model: dict[str, Any], **known: Any) -> Any:
    return judge("model_pin", Record(plan(model=model), facts(**known)))


def test_a_repository_is_pinned_by_its_commits() -> None:
    assert outcomes(verdict({}, **COMMITS, **IDS)) == dict.fromkeys(
        ["revision", "tokenizer_revision", "think_open_id", "think_close_id", "model_eos_ids", "tokenizer_eos_id"],
        "pass",
    )


def test_a_local_model_is_pinned_by_its_files_and_not_by_a_commit() -> None:
    found = outcomes(verdict({"files": FILES}, model_files=FILES, **IDS))
    assert set(found.values()) == {"pass"}
    assert {"model_files", "sha256 of config.json", "sha256 of model.safetensors"} < set(found)
    assert "revision" not in found


@pytest.mark.parametrize(
    ("known", "check"),
    [
        ({"revision": "a" * 39 + "0"}, "revision"),
        ({"revision": "main"}, "revision"),
        ({"tokenizer_revision": "a" * 40}, "tokenizer_revision"),
        ({"markers": {"<think>": 8, "</think>": 8}}, "think_open_id"),
        ({"markers": {"<think>": 7, "</think>": None}}, "think_close_id"),
        ({"model_eos_ids": [2, 9]}, "model_eos_ids"),
        ({"model_eos_ids": []}, "model_eos_ids"),
        ({"tokenizer_eos_id": 2}, "tokenizer_eos_id"),
    ],
)
def test_any_other_identity_fails(known: dict[str, Any], check: str) -> None:
    assert failed(verdict({}, **{**COMMITS, **IDS, **known})) == {check}


def test_an_unresolved_marker_fails_and_says_so() -> None:
    found = verdict({}, **{**COMMITS, **IDS, "markers": {"<think>": None, "</think>": 8}})
    assert [str(check) for check in found.checks if check.name == "think_open_id"] == [
        "think_open_id unresolved == 7: <think> is not one id of the loaded tokenizer"
    ]


@pytest.mark.parametrize("name", [*COMMITS, *IDS])
def test_an_unknown_fact_is_inconclusive(name: str) -> None:
    known = {key: value for key, value in {**COMMITS, **IDS}.items() if key != name}
    assert verdict({}, **known).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("loaded", "checks"),
    [
        ({**FILES, "config.json": "e" * 64}, {"sha256 of config.json"}),
        ({**FILES, "generation_config.json": "e" * 64}, {"model_files"}),  # its defaults would leak into sampling
        ({"config.json": "c" * 64}, {"model_files"}),
        ({"Config.json": "c" * 64, "model.safetensors": "d" * 64}, {"model_files"}),
    ],
)
def test_a_local_model_with_other_files_fails(loaded: dict[str, str], checks: set[str]) -> None:
    assert failed(verdict({"files": FILES}, model_files=loaded, **IDS)) == checks


@pytest.mark.parametrize(
    ("loaded", "outcome"),
    [
        (ADAPTER_FILES, "pass"),
        ({**ADAPTER_FILES, "adapter_model.safetensors": "e" * 64}, "fail"),
        ({"adapter_config.json": "c" * 64}, "fail"),
        ({}, "fail"),
        (None, "inconclusive"),  # an engine that knows of no adapter
    ],
)
def test_an_adapter_is_pinned_by_its_files(loaded: dict[str, str] | None, outcome: str) -> None:
    found = judge("model_pin", Record(plan(adapter="on"), facts(**COMMITS, **IDS, adapter_files=loaded)))
    assert outcomes(found)["adapter_files"] == str(found.outcome) == outcome
    assert "adapter_files" not in outcomes(verdict({}, **COMMITS, **IDS))


def test_unreported_files_are_inconclusive() -> None:
    assert verdict({"files": FILES}, **COMMITS, **IDS).outcome == "inconclusive"
