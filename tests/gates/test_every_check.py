"""Each check of each gate, with its counts and its note, on records that are whole, odd or empty.

A receipt holds them, and a replay compares each: a gate that says anything else of the same record is another version.
``every_check.json`` has a line for each, of gates that say no more than of nothing only once; a new gate adds its own.
"""

import json
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatepost.evidence import Grade, Parent, Record, Row, Task, Tasks
from gatepost.fingerprint import RowKey
from gatepost.reach import Reach, RegisteredReach, SampleSize
from gatepost.stages import Scope

from .builders import (
    ADAPTER_FILES,
    CLOSE,
    OPEN,
    SAMPLING,
    STOP,
    closed,
    facts,
    forced,
    grades_of,
    installed,
    plan,
    prompts_of,
    row,
    rows_of,
)
from .scored import scored
from .test_approval import ALICE, BOB, asking, go
from .test_contract import THRESHOLDS

EXPECTED = json.loads((Path(__file__).parent / "every_check.json").read_text())
OPTIONS = {
    "device": "cuda",
    "dtype": "bfloat16",
    "max_model_len": 64,
    "max_num_seqs": 4,
    "max_num_batched_tokens": 64,
    "cudagraph_capture_sizes": [1, 2, 4],
}
GRAPHS = {
    "requested_capture_sizes": [1, 2, 4],
    "requested_max": None,
    "resolved_capture_sizes": [1, 2, 4],
    "resolved_max": 4,
    "mode": "FULL_AND_PIECEWISE",
    "decode_mode": "FULL",
    "uncovered_decode_widths": [],
}
SCHEDULER = {"max_num_seqs": 4, "max_num_batched_tokens": 64, "preemptions": 0, "steps": 12, "sampled_tokens": 30}
PACKAGES = {"torch": "2.11.0", "vllm": "0.24"}


def step(mode: str, tokens: int, steps: int, padded: int) -> dict[str, Any]:
    return {"mode": mode, "tokens": tokens, "padded_tokens": padded, "steps": steps}


def tasks(*, copies: bool) -> Tasks:
    """Two tasks, both identifiable and new, or two copies of an old one that allows two answers."""
    names = ("a", "a") if copies else ("a", "b")
    answers = ("x", "y") if copies else ("x",)
    told = [Task(f"t{place}", "selection", f"r{name}", f"c{name}", f"p{name}", answers, name)
            for place, name in enumerate(names, start=1)]  # fmt: skip
    old = frozenset({"a"} if copies else {"z"})
    levels = [frozenset(f"{level}{name}" for name in old) for level in "rcp"]
    return Tasks(tuple(told), (Parent("parent", *levels),))


def cached(found: Row) -> Row:
    """The row, with the forward calls that a cache leaves."""
    return replace(found, forward_input_lengths=array("i", [5, *[1] * (len(found.token_ids) - 1)]))


def as_registered() -> Record:
    registered = plan(options=OPTIONS, packages=PACKAGES, parents=("parent",))
    rows = tuple(cached(found) for found in rows_of(registered, [3, 5, 8, 2]))
    engine = facts(
        device="cuda", dtype="bfloat16", max_model_len=64, versions={"Torch": "2.11+cu129", "vllm": "0.24.0"},
        markers={"<think>": OPEN, "</think>": CLOSE}, model_eos_ids=[STOP], tokenizer_eos_id=3,
        revision="a" * 40, tokenizer_revision="b" * 40,
        sampling={**SAMPLING, "stop_ids": [STOP]}, cuda_graphs=GRAPHS,
        kv_cache={"block_size": 16, "kv_cache_size_tokens": 4096}, scheduler=SCHEDULER,
    )  # fmt: skip
    reach = RegisteredReach(
        "stage", "natural_close", SampleSize(2, 2), Reach("min_natural_close_rate", 4, 4, True, True)
    )
    return Record(
        registered, engine, tasks(copies=False), prompts=prompts_of(registered, (1, 1, 1, OPEN, 9)), rows=rows,
        scheduler={**SCHEDULER, "dispatch": [step("FULL", 4, 10, 4), step("PIECEWISE", 30, 1, 32)]},
        text={}, grades=grades_of(registered, [True, False, True, True]), reach=(reach,),
    )  # fmt: skip


def odd() -> Record:
    """Every count off by something: rows that are cut, aborted, doubled or missing, facts of another engine."""
    registered = plan(
        task_ids=("t1", "t2", "t3"), options={**OPTIONS, "enable_lora": True, "max_loras": 2, "data_parallel_size": 2},
        packages=PACKAGES, parents=("parent",), adapter="on",
    )  # fmt: skip
    rows = (
        row(("t1", 1), closed(3), lengths=[5, 1, 2, 1, 1], claims={"close_step": 4}),
        row(("t1", 0), [30, 31] * 8, finish="length", claims={"cache_contract_pass": True}),
        row(("t2", 0), [30, CLOSE, CLOSE, OPEN, 50, STOP], seed=1),
        row(("t2", 1), [30, STOP, 30], finish="abort", lengths=[5, 1, 1]),
        row(("t3", 0), [30] * 9 + [CLOSE] + [50] * 6, finish="length", prompt_tokens=7),
        row(("t9", 0), closed(2)),
    )
    engine = facts(
        device="cpu", dtype="float32", max_model_len=16, versions={"torch": "2.10.0"},
        markers={"<think>": None, "</think>": 9}, model_eos_ids=[STOP, 4], tokenizer_eos_id=5,
        revision="c" * 40, tokenizer_revision="d" * 40, adapter_files={**ADAPTER_FILES, "more": "e" * 64},
        sampling={**SAMPLING, "stop_ids": [STOP], "top_k": 50, "top_a": 0.1},
        cuda_graphs={**GRAPHS, "resolved_capture_sizes": [1, 2], "resolved_max": 2, "mode": "PIECEWISE",
                     "decode_mode": "NONE", "adapter_cases": [0, 1], "synchronised_step_mode": "NONE"},
        kv_cache={"block_size": 16, "num_blocks": 8, "reserved_blocks": 1,
                  "groups": [{"kind": "full_attention", "block_size": 16},
                             {"kind": "mamba", "block_size": 16, "blocks_per_request": 1}]},
        scheduler={**SCHEDULER, "data_parallel_size": 2},
        environment={"versions_changed": {"vllm": ["0.24.0", "0.25.0"]}, "engine_arguments": {"max_num_seqs": 8}},
    )  # fmt: skip
    unreached = Reach("max_loop_share", None, 6, meets=False, misses=True)
    return Record(
        registered, engine, tasks(copies=True), prompts=(*prompts_of(registered, (1, OPEN, CLOSE, *[9] * 9))[:2],),
        rows=rows,
        scheduler={**SCHEDULER, "preemptions": 2, "sampled_tokens": 50,
                   "dispatch": [step("FULL", 4, 10, 8), step("NONE", 1, 3, 1)]},
        text={}, grades={RowKey("t1", 1): Grade(RowKey("t1", 1), None, False)},
        reach=(RegisteredReach("stage", "loop", SampleSize(3, 2), unreached),),
    )  # fmt: skip


def closed_by_force() -> Record:
    registered = plan(thinking="force_close", scope=Scope.RUNG, caps=(16,), options={"max_model_len": 64})
    keys = registered.keys
    loop = [30, 31] * 8
    rows = (
        row(keys[0], closed(3)),
        forced(keys[1], loop),
        forced(keys[2], list(range(30, 46)), (50, 50, 50, 50), finish="length"),
        forced(keys[3], loop[:15], injected_tokens=1),
    )
    return Record(registered, facts(), prompts=prompts_of(registered), rows=rows)


def without_thinking() -> Record:
    registered = plan(thinking="no_think", scope=Scope.RUNG, caps=(16,))
    rows = (row(("t1", 0), (50, STOP)), row(("t1", 1), (50, CLOSE, STOP)), row(("t2", 0), (OPEN, 50, STOP)))
    return Record(registered, facts(), prompts=prompts_of(registered, (1, OPEN, CLOSE)), rows=rows)


def contrast() -> Record:
    registered = plan(samples_per_task=3, adapter="contrast", base_seed=11)
    rows = tuple(
        row(key, closed(3, (50 + (key.sample_index > 0), 60 + (key == ("t2", 2)))), seed=1) for key in registered.keys
    )
    return Record(registered, facts(adapter_files=ADAPTER_FILES), prompts=prompts_of(registered), rows=rows)


def unreadable() -> Record:
    """Facts that are there and cannot be read."""
    registered = plan(options={**OPTIONS, "data_parallel_size": "2"})
    engine = facts(
        cuda_graphs={**GRAPHS, "resolved_capture_sizes": "1,2", "uncovered_decode_widths": "none"},
        kv_cache={"block_size": 0, "kv_cache_size_tokens": 4096, "groups": [{"kind": "new"}], "num_blocks": 8},
        scheduler={**SCHEDULER, "data_parallel_size": 0},
        environment={"versions_changed": ["vllm"], "engine_arguments": None},
    )
    broken = {"tokens": 4, "padded_tokens": 2, "steps": 1, "mode": "FULL"}
    return Record(registered, engine, prompts=prompts_of(registered), scheduler={"dispatch": [broken]})


RECORDS = {
    "nothing recorded": Record(plan()),
    "nothing registered": Record(plan(task_ids=(), base_seed=None)),
    "an empty table": Record(plan(), facts(), Tasks((), ()), prompts=(), rows=(), scheduler={}, text={}, grades={}),
    "as registered": as_registered(),
    "odd": odd(),
    "closed by force": closed_by_force(),
    "without thinking": without_thinking(),
    "a contrast": contrast(),
    "unreadable": unreadable(),
    "scored": scored(base="-wr-rr-w", designed="Mm-irMw-"),
    "scored, of other tasks": scored(reuse=("t1",), base="-wr-rr-w", designed="Mm-irMw-"),
    "approved": Record(asking(2), approvals=(go(ALICE), go(BOB))),
    "approved by one": Record(asking(2), approvals=(go(ALICE), go(ALICE))),
    "approved, perhaps": Record(asking(1), approvals=(go(ALICE, holds=None),)),
}


def said_of(record: Record) -> dict[str, list[str]]:
    """Gate -> its outcome, with the role and the version that it judged in, and a line for each check."""
    verdicts = [one.judge(record, THRESHOLDS.get(name, {})) for (name, _), one in sorted(installed().all.items())]
    return {
        verdict.gate: [f"{verdict.outcome}: {verdict.role}, version {verdict.version}", *map(str, verdict.checks)]
        for verdict in verdicts
    }


@pytest.mark.parametrize("name", RECORDS)
def test_every_check(name: str) -> None:
    assert said_of(RECORDS[name]) == {**EXPECTED["nothing recorded"], **EXPECTED[name]}


def test_no_other_record_is_expected() -> None:
    assert EXPECTED.keys() == RECORDS.keys()
