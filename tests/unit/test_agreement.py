"""The files of one step agree: each count and each fact, on both sides of where it stops agreeing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatepost.absence import PromptDigest
from gatepost.agreement import require_agreement, require_counts, require_same_engine
from gatepost.engine import EngineFacts, Prompt
from gatepost.errors import IntegrityError
from gatepost.evidence import Record
from gatepost.fingerprint import RowKey
from tests.gates.builders import closed, facts, forced, grades_of, plan, prompts_of, row, rows_of

PATH = Path("steps/s/session.json")
ROWS = (row(("t1", 0), closed(3)), row(("t1", 1), [30] * 8, finish="length"))  # 5 and 8 ids
FORCED = (forced(("t1", 0), [30] * 4, (50, 51, 2)),)  # 7 sampled, 2 injected


@pytest.mark.parametrize(
    ("rows", "counted", "field"),
    [
        (ROWS, None, None),
        (ROWS, {}, None),
        (ROWS, {"sampled_tokens": 13, "steps": 8, "speculative_tokens": 0}, None),
        (ROWS, {"sampled_tokens": 14, "steps": 9, "speculative_tokens": 0}, None),
        (ROWS, {"sampled_tokens": 12}, "sampled_tokens is 12"),
        (ROWS, {"sampled_tokens": None, "steps": None, "speculative_tokens": 0}, None),
        (ROWS, {"steps": 7, "speculative_tokens": 0}, "steps is 7"),
        (ROWS, {"steps": 7}, None),  # how many ids a step may take is unknown
        (ROWS, {"steps": 4, "speculative_tokens": 1}, None),
        (ROWS, {"steps": 3, "speculative_tokens": 1}, "steps is 3"),
        (ROWS, {"steps": 3, "speculative_tokens": 2}, None),
        (ROWS, {"steps": 2, "speculative_tokens": 2}, "steps is 2"),
        (FORCED, {"sampled_tokens": 7}, None),  # injected ids are not sampled
        (FORCED, {"sampled_tokens": 6}, "sampled_tokens is 6"),
        ((), {"sampled_tokens": 0, "steps": 0, "speculative_tokens": 0}, None),
        (ROWS, {"dispatch": [{"steps": 13, "tokens": 1}], "speculative_tokens": 0}, None),
        (ROWS, {"dispatch": [{"steps": 6, "tokens": 2}, {"steps": 2, "tokens": 1}], "speculative_tokens": 0}, None),
        (ROWS, {"dispatch": [{"steps": 4, "tokens": 3}], "speculative_tokens": 0}, "dispatch.steps is 4"),
        (ROWS, {"dispatch": [{"steps": 4, "tokens": 3}]}, "dispatch.tokens is 12"),
        (ROWS, {"dispatch": [{"steps": 12, "tokens": 1}]}, "dispatch.tokens is 12"),
        (ROWS, {"dispatch": [{"steps": 1, "tokens": 1}, {"steps": 1}]}, None),  # one is no entry: gates say so
        (ROWS, {"dispatch": "none"}, None),
    ],
)
def test_an_engine_counts_at_least_what_its_rows_take(rows: Any, counted: Any, field: str | None) -> None:
    if field is None:
        require_counts(PATH, counted, rows)
        return
    with pytest.raises(IntegrityError) as refused:
        require_counts(PATH, counted, rows)
    sampled, longest = sum(one.sampled_tokens for one in rows), max(one.sampled_tokens for one in rows)
    assert str(refused.value).startswith(f"{PATH}: field engine.scheduler.{field}, rows.parquet takes at least ")
    assert str(refused.value).endswith(f"{sampled} sampled ids, {longest} in its longest row")


BEFORE = facts(
    device="cpu",
    sampling={"top_k": 20},
    scheduler={"max_num_seqs": 4, "steps": 0, "policy": None},
    environment={"python": "3.11", "versions_changed": {}, "search_path_added_folders": 0},
)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"scheduler": {"max_num_seqs": 4, "steps": 9, "preemptions": 1, "dispatch": [], "sampled_tokens": 3}}, None),
        ({"scheduler": {"max_num_seqs": 4, "steps": 0, "policy": "fcfs"}}, None),  # unknown before
        ({"scheduler": None}, None),
        ({"sampling": None}, None),
        ({"environment": {"python": "3.11", "versions_changed": {"a": []}, "search_path_added_folders": 2}}, None),
        ({"scheduler": {"max_num_seqs": 5}}, "engine.scheduler is {'max_num_seqs': 5}"),
        ({"scheduler": {}}, "engine.scheduler is {}"),
        ({"sampling": {"top_k": 21}}, "engine.sampling is {'top_k': 21}"),
        ({"sampling": {}}, "engine.sampling is {}"),
        ({"device": "cuda"}, "engine.device is cuda"),
        ({"device": None}, "engine.device is None"),
        ({"environment": {"python": "3.12"}}, "engine.environment is {'python': '3.12'}"),
        ({"environment": {"python": "3.11", "more": 1}}, "engine.environment is {'more': 1}"),
        ({"versions": {"torch": "2"}}, "engine.versions is {'torch': '2'}"),
        ({"use_cache": True}, "engine.use_cache is True"),
    ],
)
def test_an_engine_is_after_generation_what_it_was_before(changes: dict[str, Any], problem: str | None) -> None:
    after = replace(BEFORE, **changes)
    if problem is None:
        require_same_engine(PATH, BEFORE, after)
        return
    with pytest.raises(IntegrityError) as refused:
        require_same_engine(PATH, BEFORE, after)
    assert str(refused.value).startswith(f"{PATH}: field {problem}, before generation it was ")


def test_a_scheduler_that_was_unknown_before_may_be_told_after() -> None:
    unknown: EngineFacts = replace(BEFORE, scheduler=None)
    require_same_engine(PATH, unknown, BEFORE)
    require_same_engine(PATH, unknown, unknown)


PLAN = plan()
PROMPTS = prompts_of(PLAN, (1, 1, 1, 7, 9))
DIGESTS = tuple(PromptDigest(prompt.task_id, 5, "0" * 64) for prompt in PROMPTS)
KEYS = PLAN.keys
TEXTS = dict.fromkeys(KEYS, "text")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"text": TEXTS, "grades": grades_of(PLAN, [True] * 4)}, None),
        ({"prompts": None}, None),
        ({"prompts": None, "prompt_digests": DIGESTS}, None),
        ({"prompts": PROMPTS[:1]}, "prompts.parquet: prompts of tasks ['t1'], expected one of each ['t1', 't2']"),
        ({"prompts": (*PROMPTS, PROMPTS[0])}, "prompts.parquet: prompts of tasks ['t1', 't1', 't2']"),
        ({"prompts": (Prompt("t9", "", (1,)), *PROMPTS)}, "prompts.parquet: prompts of tasks ['t1', 't2', 't9']"),
        ({"prompts": None, "prompt_digests": DIGESTS[1:]}, "prompt_digests.json: prompts of tasks ['t2']"),
        ({"prompts": prompts_of(PLAN, (1, 7))}, "rows.parquet: t1 sample 0: prompt_tokens is 5, its prompt in prompts"),
        (
            {"prompts": None, "prompt_digests": tuple(replace(one, prompt_tokens=6) for one in DIGESTS)},
            "rows.parquet: t1 sample 0: prompt_tokens is 5, its prompt in prompt_digests.json has 6",
        ),
        ({"text": {}}, "text.parquet: t1 sample 0: is missing, but is in rows.parquet"),
        ({"text": dict.fromkeys(KEYS[1:], "")}, "text.parquet: t1 sample 0: is missing"),
        ({"text": {**TEXTS, RowKey("t2", 2): ""}}, "text.parquet: t2 sample 2: is not in rows.parquet"),
        ({"grades": {}}, "grades.parquet: t1 sample 0: is missing, but is in rows.parquet"),
        (
            {"grades": {**grades_of(PLAN, [True] * 4), RowKey("t0", 0): None}},
            "grades.parquet: t0 sample 0: is not in rows.parquet",
        ),
        ({"scheduler": {"sampled_tokens": 1}}, "session.json: field engine.scheduler.sampled_tokens is 1"),
    ],
)
def test_the_files_of_a_step_agree(changes: dict[str, Any], problem: str | None) -> None:
    record = replace(Record(PLAN, prompts=PROMPTS, rows=rows_of(PLAN, [3, 4, 5, None])), **changes)
    if problem is None:
        require_agreement(Path("steps/s"), record)
        return
    with pytest.raises(IntegrityError) as refused:
        require_agreement(Path("steps/s"), record)
    assert str(refused.value).startswith(f"steps/s/{problem}")


def test_a_row_that_was_not_completed_needs_no_text_but_a_grade() -> None:
    rows = list(rows_of(PLAN, [3, 4, 5, 6]))
    rows[3] = replace(rows[3], finish_reason=None)
    texts = dict.fromkeys(KEYS[:3], "text")
    record = Record(PLAN, prompts=PROMPTS, rows=tuple(rows), text=texts, grades=grades_of(PLAN, [True] * 4))
    require_agreement(Path("s"), record)
    require_agreement(Path("s"), replace(record, text={**texts, KEYS[3]: ""}))
    short = {key: grade for key, grade in grades_of(PLAN, [True] * 4).items() if key != KEYS[3]}
    with pytest.raises(IntegrityError, match=r"grades\.parquet: t2 sample 1: is missing"):
        require_agreement(Path("s"), replace(record, grades=short))
