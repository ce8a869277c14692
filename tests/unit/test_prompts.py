"""Which plans hold to a manifest of prompts."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gatepost.engine import Prompt
from gatepost.errors import RegistrationError
from gatepost.prompts import PromptIdentity, check_manifest, identity_of
from tests.protocols import protocol, stage

COMPARED = {"gates": {"prompt_identity": {"version": 1, "thresholds": {}}}}
RECORDS = {"t1": "a" * 64, "t2": "b" * 64, "t3": "c" * 64}
LINES = [PromptIdentity(task_id, None, record, "d" * 64, "e" * 64, 3) for task_id, record in RECORDS.items()]


def records_of(split: str) -> Mapping[str, str]:
    assert split == "first"
    return RECORDS


def check(lines: Sequence[PromptIdentity] | None, **fields: Any) -> None:
    plan = protocol(stage("one", "nested", **fields), stage("two", "nested"))
    check_manifest(plan, lines, records_of)


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        (LINES, COMPARED),
        (LINES[:2], {**COMPARED, "max_tasks": 2}),  # what is not sampled needs no line
        ([replace(line, arm="base") for line in LINES], {**COMPARED, "arm": "base"}),
        ([*LINES, replace(LINES[0], arm="other", input_record_sha256="f" * 64)], COMPARED),
        (None, {}),
    ],
    ids=["all", "as many as are sampled", "of an arm", "another arm", "neither"],
)
def test_takes(lines: Sequence[PromptIdentity] | None, fields: dict[str, Any]) -> None:
    check(lines, **fields)


@pytest.mark.parametrize(
    ("lines", "fields", "message"),
    [
        (LINES, {}, "prompts.manifest: no stage lists the gate prompt_identity, so nothing compares it"),
        (None, COMPARED, "stage one: lists the gate prompt_identity, but there is no prompts.manifest to compare with"),
        (LINES, {**COMPARED, "samples_per_task": 0}, "stage one: lists the gate prompt_identity, but samples nothing"),
        (
            LINES[:2],
            COMPARED,
            "stage one: lists the gate prompt_identity, but prompts.manifest has no line for task 't3' without an arm",
        ),
        (
            LINES,
            {**COMPARED, "arm": "base"},
            "stage one: lists the gate prompt_identity, but prompts.manifest has no line for task 't1' in arm base",
        ),
        (
            [*LINES[:2], replace(LINES[2], input_record_sha256="f" * 64)],
            COMPARED,
            f"prompts.manifest: task 't3' without an arm: input_record_sha256 is {'f' * 64}, the record in split "
            f"'first' has {'c' * 64}",
        ),
    ],
)
def test_refuses(lines: Sequence[PromptIdentity] | None, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistrationError) as caught:
        check(lines, **fields)
    assert str(caught.value) == message


def test_an_identity_is_of_text_ids_arm_and_record() -> None:
    found = identity_of(Prompt("t1", "hé", (1, 2, 70_000)), "base", "a" * 64)
    ids = b"".join(value.to_bytes(4, "little") for value in (1, 2, 70_000))
    assert found == PromptIdentity(
        "t1", "base", "a" * 64, hashlib.sha256("hé".encode()).hexdigest(), hashlib.sha256(ids).hexdigest(), 3
    )
    assert found.posed == ("t1", "base")
