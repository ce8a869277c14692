from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gatepost.engine import Prompt
from gatepost.evidence import Plan, Record
from gatepost.fingerprint import ids_sha256
from gatepost.prompts import PromptIdentity, identity_of

from .builders import OPEN, checks, failed, judge, plan

RECORDS = {"t1": "1" * 64, "t2": "2" * 64}
RENDERED = (Prompt("t1", "one <think>", (1, 2, OPEN)), Prompt("t2", "two <think>", (1, 3, 4, OPEN)))

Change = Callable[[PromptIdentity], PromptIdentity]


def registered(*, without: Sequence[str] = (), **changes: Any) -> Plan:
    """A plan whose manifest has what is rendered, but for changes to the line of ``t2``."""
    lines = {prompt.task_id: identity_of(prompt, None, RECORDS[prompt.task_id]) for prompt in RENDERED}
    lines["t2"] = replace(lines["t2"], **changes)
    kept = {task_id: line for task_id, line in lines.items() if task_id not in without}
    return replace(plan(), prompts=kept, record_sha256=RECORDS)


def other(**changes: Any) -> tuple[Prompt, ...]:
    """What is rendered, but for changes to ``t2``."""
    return (RENDERED[0], replace(RENDERED[1], **changes))


EVERY = {"rendered_texts", "prompt_token_ids", "prompt_tokens"}


@pytest.mark.parametrize(
    ("prompts", "names", "first"),
    [
        (RENDERED, set(), None),
        (RENDERED[::-1], set(), None),
        (other(text="two  <think>"), {"rendered_texts"}, "t2"),
        (other(text="Two <think>"), {"rendered_texts"}, "t2"),
        (other(text="two <think>\n"), {"rendered_texts"}, "t2"),
        (other(token_ids=(1, 3, 5, OPEN)), {"prompt_token_ids"}, "t2"),  # as many, and the text is the same
        (other(token_ids=(1, 4, 3, OPEN)), {"prompt_token_ids"}, "t2"),
        (other(token_ids=(1, 3, 4, OPEN, 9)), {"prompt_token_ids", "prompt_tokens"}, "t2"),  # another suffix
        (other(token_ids=(1, 3, 4)), {"prompt_token_ids", "prompt_tokens"}, "t2"),
        (other(token_ids=()), {"prompt_token_ids", "prompt_tokens"}, "t2"),
        (RENDERED[:1], EVERY | {"prompts_rendered_once", "input_records"}, "t2"),
        ((), EVERY | {"prompts_rendered_once", "input_records"}, "t1"),
        ((*RENDERED, RENDERED[1]), {"prompts_rendered_once"}, "t2"),
        ((*RENDERED, Prompt("t3", "", (1,))), {"prompts_beside_those_registered"}, "t3"),
        (
            (RENDERED[0], replace(RENDERED[1], task_id="T2")),
            EVERY | {"prompts_rendered_once", "input_records", "prompts_beside_those_registered"},
            "t2",
        ),
        (
            (replace(RENDERED[0], task_id="t2"), replace(RENDERED[1], task_id="t1")),  # swapped
            EVERY,
            "t1",
        ),
    ],
)
def test_what_the_engine_rendered(prompts: tuple[Prompt, ...], names: set[str], first: str | None) -> None:
    verdict = judge("prompt_identity", Record(registered(), prompts=prompts))
    assert failed(verdict) == names
    assert verdict.outcome == ("fail" if names else "pass")
    notes = [check.note or "" for check in verdict.checks if check.name in names]
    assert first is None or any(note.partition(":")[2].strip().startswith(first) for note in notes)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({}, set()),
        ({"input_record_sha256": "0" * 64}, {"input_records"}),
        ({"rendered_prompt_sha256": "0" * 64}, {"rendered_texts"}),
        ({"prompt_token_ids_sha256": "0" * 64}, {"prompt_token_ids"}),
        ({"prompt_tokens": 3}, {"prompt_tokens"}),
        ({"prompt_tokens": 5}, {"prompt_tokens"}),
        ({"prompt_tokens": 4}, set()),
    ],
)
def test_what_the_manifest_says(change: dict[str, Any], names: set[str]) -> None:
    verdict = judge("prompt_identity", Record(registered(**change), prompts=RENDERED))
    assert failed(verdict) == names
    for name in names:
        check = checks(verdict)[name]
        (value,) = change.values()
        assert (check.k, check.n) == (1, 2)
        assert str(check.note).startswith("first: t2: rendered ")
        assert str(check.note).endswith(f", registered {value}")


def test_a_changed_record_fails() -> None:
    """The bound task is not the one that the manifest was made of."""
    changed = replace(registered(), record_sha256={**RECORDS, "t1": "f" * 64})
    verdict = judge("prompt_identity", Record(changed, prompts=RENDERED))
    assert failed(verdict) == {"input_records"}


def test_a_prompt_without_a_line_fails() -> None:
    verdict = judge("prompt_identity", Record(registered(without=["t2"]), prompts=RENDERED))
    assert failed(verdict) == {"prompts_in_manifest", "input_records"} | EVERY


def test_nothing_to_compare_is_inconclusive() -> None:
    bare = judge("prompt_identity", Record(plan(), prompts=RENDERED))
    assert (bare.outcome, bare.checks[0].note) == ("inconclusive", "no manifest is bound")
    unrecorded = judge("prompt_identity", Record(registered()))
    assert (unrecorded.outcome, unrecorded.checks[0].note) == ("inconclusive", "no prompts recorded")


def test_ids_have_one_digest_each() -> None:
    """SHA-256 of the bytes 01000000 02000000, as any other tool computes it."""
    assert ids_sha256((1, 2)) == "34fb5c825de7ca4aea6e712f19d439c1da0c92c37b423936c5f618545ca4fa1f"
    assert len({ids_sha256(ids) for ids in [(), (0,), (0, 0), (1,), (256,), (1, 2), (2, 1)]}) == 7
    for bad in (2**31, -(2**31) - 1):
        with pytest.raises(ValueError, match="token ids"):
            ids_sha256((bad,))
