"""What holds of every shipped gate, whatever it asks."""

import ast
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatepost import bundled, jsonfile
from gatepost.engine import THINKING_POLICIES, Prompt
from gatepost.evidence import Grade, Record, Row, Tasks
from gatepost.fingerprint import RowKey
from gatepost.gate import Gate
from gatepost.reach import SampleSize
from gatepost.verdict import Outcome, Verdict

from .builders import ADAPTER_FILES, CLOSE, OPEN, STOP, facts, gate, installed, plan

FILES = sorted(bundled.folder("gates").glob("*.py"))
GATES = list(installed().all.values())
THRESHOLDS: dict[str, dict[str, Any]] = {
    "adapter_applied": {"min_changed_task_share": 0.5, "max_repeat_changed_share": 0.25},
    "close_classification": {"max_irregular_rows": 0},
    "dispatch": {"max_uncovered_step_share": 0.05},
    "freshness": {"max_record_overlap": 0, "max_content_overlap": 0, "max_program_overlap": 0},
    "headroom": {
        "min_thinking_tokens": 2,
        "min_usable_rows": 2,
        "min_usable_success": 0.05,
        "max_usable_success": 0.95,
        "min_mixed_tasks": 1,
    },
    "identifiability": {"max_answers_per_task": 1, "max_family_imbalance": 1},
    "macro_use": {"arm": "designed", "reuse_tasks": 1, "min_reuse_tasks": 1},
    "natural_close": {"min_natural_close_rate": 0.8},
    "natural_close_bound": {"min_lower_bound": 0.7, "method": "wilson", "confidence": 0.95},
    "oracle_not_below": {"arm": "designed", "baseline_arm": "base"},
    "parse_given_close": {"min_parse_rate": 0.9},
    "parse_rate": {"min_parse_rate": 0.5},
    "prompt_envelope": {"max_prompt_tokens": 8, "max_total_tokens": 64},
    "termination": {
        "tail_tokens": 4,
        "max_period_tokens": 2,
        "min_match_rate": 0.99,
        "contact_margin_tokens": 1,
        "answer_limit_tokens": 4,
        "max_unresolved_share": 0.05,
        "max_answer_limit_share": 0.05,
        "max_loop_share": 0.25,
    },
}
MINE = [gate for gate in GATES if not gate.thresholds or gate.name in THRESHOLDS]


def judged(one: Gate, record: Record) -> Verdict:
    return one.judge(record, THRESHOLDS.get(one.name, {}))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_one_question_per_file(path: Path) -> None:
    tree = ast.parse(path.read_text())
    question = ast.get_docstring(tree)
    assert question is not None
    assert question.splitlines()[0].endswith("?")
    functions = {node.name: ast.get_docstring(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions[path.stem]
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"gatepost.gate", "math"}
    assert gate(path.stem).version == 1


@pytest.mark.parametrize("one", MINE, ids=lambda one: one.name)
@pytest.mark.parametrize("record", [Record(plan(base_seed=None)), Record(plan(task_ids=(), base_seed=None))])
def test_nothing_recorded_passes_nothing(one: Gate, record: Record) -> None:
    verdict = judged(one, record)
    if one.name == "protocol_binding":  # its evidence is the record itself
        assert verdict.outcome is Outcome.PASS
    else:
        assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("one", MINE, ids=lambda one: one.name)
def test_an_empty_table_passes_nothing(one: Gate) -> None:
    record = Record(plan(), facts(), Tasks((), ()), prompts=(), rows=(), scheduler={}, text={}, grades={}, reach=())
    if one.reads:
        assert judged(one, record).outcome is not Outcome.PASS


@pytest.mark.parametrize(
    "one", [gate for gate in GATES if gate.thresholds and not gate.before_generation], ids=lambda one: one.name
)
def test_a_gate_that_judges_samples_by_thresholds_says_what_reaches_them(one: Gate) -> None:
    assert one.reach is not None


@pytest.mark.parametrize("one", [gate for gate in MINE if gate.reach is not None], ids=lambda one: one.name)
def test_what_reaches_thresholds_is_said_under_their_names(one: Gate) -> None:
    counted = one.reaches(SampleSize(4, 4), THRESHOLDS[one.name], where="test")
    assert counted
    assert {entry.name for entry in counted} <= set(one.thresholds)


ids = st.lists(st.sampled_from([OPEN, CLOSE, STOP, 30, 50]), max_size=24)
keys = st.builds(RowKey, st.sampled_from(["t1", "t2", "t3"]), st.integers(0, 3))
rows = st.builds(
    Row,
    key=keys,
    seed=st.integers(-1, 2**31),
    prompt_tokens=st.integers(0, 8),
    token_ids=st.builds(array, st.just("i"), ids),
    forward_input_lengths=st.none() | st.builds(array, st.just("i"), ids),
    finish_reason=st.none() | st.sampled_from(["stop", "length", "abort", ""]),
    claims=st.dictionaries(
        st.sampled_from(["close_step", "think_tokens", "cache_contract_pass"]), st.none() | st.text()
    ),
    stage_two_seed=st.none() | st.integers(0, 9),
    stage_one_finish_reason=st.none() | st.sampled_from(["stop", "length"]),
    injected_start=st.none() | st.integers(0, 9),
    injected_tokens=st.integers(0, 3),
    reprefilled_tokens=st.integers(0, 9),
)
values = st.none() | st.booleans() | st.integers(-1, 9) | st.text(max_size=4) | st.lists(st.integers(-1, 9), max_size=3)


def reported(*names: str, **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What an engine may say under these names, sense or not; or nothing at all."""
    fields = {**dict.fromkeys(names, values), **known}
    return st.none() | st.fixed_dictionaries({}, optional=fields)


groups = reported(
    "block_size",
    "sliding_window",
    "blocks_per_request",
    kind=values | st.sampled_from(["full_attention", "mamba", "sliding_window"]),
)
steps = reported("tokens", "steps", mode=values | st.just("FULL"))
schedulers = reported(
    "max_num_seqs",
    "max_num_batched_tokens",
    "speculative_tokens",
    "data_parallel_size",
    "preemptions",
    dispatch=values | st.lists(steps, max_size=3),
)
prompts = st.builds(Prompt, st.sampled_from(["t1", "t2", "t3"]), st.just(""), ids.map(tuple))
engines = st.builds(
    facts,
    versions=st.dictionaries(st.sampled_from(["torch", "Torch"]), st.text(max_size=8)),
    dtype=st.none() | st.text(),
    adapter_files=st.none() | st.just(ADAPTER_FILES) | st.dictionaries(st.text(max_size=4), st.text(max_size=4)),
    markers=st.dictionaries(st.sampled_from(["<think>", "</think>", "cat"]), st.none() | st.integers(0, 9)),
    model_eos_ids=st.none() | st.lists(st.integers(0, 9)),
    sampling=st.none() | st.dictionaries(st.sampled_from(["top_k", "stop_ids", "top_a"]), st.none() | st.floats()),
    cuda_graphs=reported("resolved_capture_sizes", "resolved_max", "mode", "uncovered_decode_widths", "adapter_cases"),
    kv_cache=reported(
        "block_size",
        "kv_cache_size_tokens",
        "num_blocks",
        "reserved_blocks",
        groups=values | st.lists(groups, max_size=3),
    ),
    scheduler=schedulers,
)
records = st.builds(
    Record,
    plan=st.builds(
        plan,
        cap=st.sampled_from([None, 8, 16]),
        task_ids=st.lists(st.sampled_from(["t1", "t2"]), unique=True),
        packages=st.just({"torch": "2.11.0"}),
        options=st.just({"dtype": "float32"}) | st.just({"enable_lora": True, "cudagraph_capture_sizes": [1, 2]}),
        thinking=st.sampled_from(THINKING_POLICIES),
        samples_per_task=st.sampled_from([2, 3]),
        adapter=st.sampled_from([None, "on", "contrast"]),
    ),
    engine=st.none() | engines,
    prompts=st.none() | st.lists(prompts, max_size=4).map(tuple),
    rows=st.none() | st.lists(rows, max_size=6).map(tuple),
    scheduler=schedulers,
    grades=st.none() | st.dictionaries(keys, st.builds(Grade, keys, st.none() | st.text(), st.booleans())),
)


@settings(deadline=None, max_examples=300)
@given(records)
def test_bad_data_never_raises_and_every_verdict_can_be_written(record: Record) -> None:
    for one in MINE:
        verdict = judged(one, record)
        if one.name == "sampling_resolution":  # a fact that is not a number is refused where facts are read
            assert verdict.outcome is not Outcome.PASS
            continue
        stored = jsonfile.loads(jsonfile.canonical(verdict.to_json()), source="test")
        assert Verdict.from_json(stored) == verdict


@settings(deadline=None)
@given(records)
def test_an_undeclared_channel_changes_no_verdict(record: Record) -> None:
    for one in MINE:
        hidden: dict[str, Any] = {
            name: None for name in ("engine", "tasks", "prompts", "grades", "scheduler") if name not in one.reads
        }
        if "completions" in one.reads:
            del hidden["prompts"]  # they say whether thinking was open at the first sampled id
        assert repr(judged(one, replace(record, **hidden))) == repr(judged(one, record))
