"""Small protocols for tests of pure logic: a valid document, and typed protocols made from it."""

import copy
from collections.abc import Mapping
from typing import Any

from gatepost.protocol import Protocol

DIGEST = "sha256:" + "0" * 64

LABEL = {"licenses": "this", "does_not_license": "that"}

DOCUMENT: dict[str, Any] = {
    "schema": "gatepost/protocol/1",
    "id": "small",
    "study": {"name": "small", "domain_version": 1},
    "preregistration": {
        "question": "q",
        "hypothesis": "h",
        "falsified_by": "f",
        "closest_earlier_study": "c",
        "why_separate": "w",
        "controls": ["control"],
        "forbidden_inputs": [],
        "forbidden_roots": [],
        "stopping_rule": "s",
    },
    "model": {
        "repository": "small",
        "path": None,
        "revision": "0" * 40,
        "tokenizer_revision": "0" * 40,
        "files": {},
        "think_open": {"token": "<think>", "id": 7},
        "think_close": {"token": "</think>", "id": 8},
        "model_eos_id": 2,
        "tokenizer_eos_id": 3,
    },
    "engine": {
        "kind": "scripted",
        "options": {"device": "cpu", "max_model_len": 512},
        "packages": {},
        "start_timeout_seconds": 10,
        "idle_timeout_seconds": 10,
    },
    "sampling": {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "min_p": 0,
        "repetition_penalty": 1,
        "greedy": False,
        "stop_ids": [2],
        "max_answer_tokens": 16,
        "thinking": "natural",
        "force_close_ids": [],
        "seed_rule": "blake2b64",
    },
    "rungs": [{"max_think_tokens": cap, "engine": {}} for cap in (16, 32, 64)],
    "stages": [],
    "labels": {},
    "splits": {"first": "first.jsonl", "second": "second.jsonl"},
    "parents": {},
    "bound": [],
}


def stage(name: str, scope: str, **fields: Any) -> dict[str, Any]:
    """A stage document; gates and numbers can be given."""
    return {
        "name": name,
        "scope": scope,
        "arm": None,
        "splits": ["second" if scope == "selected" else "first"],
        "samples_per_task": 3,
        "max_tasks": None,
        "max_think_tokens": 8 if scope == "once" else None,
        "base_seed": sum(map(ord, name)),
        "text": "graded",
        "scores": None,
        "gates": {"natural_close": {"version": 1, "thresholds": {"min_natural_close_rate": 0.8}}},
        **fields,
    }


def document(*stages: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A schema-valid protocol document with these stages and the labels that they can reach."""
    after = any(entry["scope"] == "selected" for entry in stages)
    states = ("exhausted", "replicated", "not_replicated") if after else ("exhausted", "selected")
    labels = {state: {"name": state.upper(), **LABEL} for state in states}
    return copy.deepcopy({**DOCUMENT, "stages": list(stages), "labels": labels, **fields})


def protocol(*stages: Mapping[str, Any], **fields: Any) -> Protocol:
    """A typed protocol with these stages."""
    return Protocol.from_json(document(*stages, **fields), digest=DIGEST)
