"""Evidence that was not published: lengths of prompts do where only lengths count; rows are named, not replaced."""

from dataclasses import replace
from typing import Any

import pytest

from gatepost.absence import AbsentRows, PromptDigest
from gatepost.evidence import Evidence, Record, UndeclaredChannelError
from gatepost.gatefiles import Gates
from tests.gates.builders import checks, closed, facts, judge, plan, prompts_of, row

ABSENT = AbsentRows("a/rows.jsonl", 12, "0" * 64, 4, {"samples": 4})
NAMED = "4 rows not published: a/rows.jsonl, 12 bytes, SHA-256 " + "0" * 64

ENGINE = facts(
    max_model_len=100,
    kv_cache={"block_size": 16, "kv_cache_size_tokens": 96},
    scheduler={"max_num_seqs": 4},
)
THRESHOLDS: dict[str, dict[str, Any]] = {
    "kv_fit": {},
    "prompt_envelope": {"max_prompt_tokens": 4, "max_total_tokens": 24},
}


def digests(*lengths: int) -> tuple[PromptDigest, ...]:
    return tuple(PromptDigest(f"t{number}", length, "0" * 64) for number, length in enumerate(lengths, start=1))


@pytest.mark.parametrize("name", THRESHOLDS)
@pytest.mark.parametrize("length", [4, 5])
def test_a_digest_is_judged_as_its_prompt(name: str, length: int) -> None:
    registered = plan()
    whole = Record(registered, engine=ENGINE, prompts=prompts_of(registered, [1] * length))
    known = Record(registered, engine=ENGINE, prompt_digests=digests(length, length))
    assert judge(name, known, **THRESHOLDS[name]) == judge(name, whole, **THRESHOLDS[name])


@pytest.mark.parametrize(
    "known",
    [None, (), digests(4), digests(4, 4)[:1] * 2, (*digests(4, 4), digests(4)[0]), digests(0, 4, 4)[1:]],
    ids=["none", "empty", "one is missing", "one twice", "one twice more", "another task"],
)
@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_length_that_is_missing_leaves_it_open(name: str, known: Any) -> None:
    verdict = judge(name, Record(plan(), engine=ENGINE, prompt_digests=known), **THRESHOLDS[name])
    assert verdict.outcome == "inconclusive"


def test_prompts_come_before_digests() -> None:
    registered = plan()
    record = Record(registered, prompts=prompts_of(registered, [1, 1]), prompt_digests=digests(9, 9))
    assert Evidence(record, ["prompts"], gate="test").prompt_tokens == {"t1": 2, "t2": 2}
    with pytest.raises(UndeclaredChannelError, match="prompts"):
        _ = Evidence(record, ["engine"], gate="test").prompt_tokens


def test_a_row_has_to_have_been_fed_its_prompt() -> None:
    registered = plan()
    rows = tuple(row(key, closed(3)) for key in registered.keys)  # fed 5
    for lengths, holding in (((5, 5), 4), ((5, 4), 2)):
        verdict = judge("token_accounting", Record(registered, rows=rows, prompt_digests=digests(*lengths)))
        assert checks(verdict)["prompt_tokens_as_rendered"].k == holding


def test_the_rows_are_named_by_every_check_that_they_leave_open_and_no_other() -> None:
    registered = plan(thinking="force_close", cap=16)
    record = Record(registered, engine=ENGINE, prompt_digests=digests(4, 4))
    for name, gate in ((name, Gates().get(name, 1, where="test")) for name in ("token_accounting", "kv_fit")):
        before, after = gate.judge(record, {}), gate.judge(replace(record, absent_rows=ABSENT), {})
        assert before.outcome == after.outcome
        for old, new in zip(before.checks, after.checks, strict=True):
            is_open = name == "token_accounting" and old.outcome == "inconclusive"
            assert new == (replace(old, note=f"{old.note}: {NAMED}") if is_open else old)


def test_rows_that_are_there_decide() -> None:
    """A stand-in never changes a check that the rows decided."""
    registered = plan()
    rows = tuple(row(key, closed(3)) for key in registered.keys)
    record = Record(registered, rows=rows)
    assert judge("token_accounting", replace(record, absent_rows=ABSENT)) == judge("token_accounting", record)
