"""Two-stage forced close, study A's rule: what it puts where, what it counts, and what a killed child leaves behind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.engine import Chunk, Engine, EngineSpec, Request
from gatepost.engines.child import ChildSession
from gatepost.engines.scripted import ScriptedEngine
from gatepost.engines.scripted_text import IDS, MODEL_EOS, THINK_CLOSE, encode
from gatepost.engines.thinking_budget import Transcript, refuse_unless_it_fits
from gatepost.errors import EngineError
from gatepost.fingerprint import RowKey
from gatepost.sampling import Stream, sample
from gatepost.stepfiles import count_ids
from gatepost.testing import ForceCloseContract, Sampled, build_request, build_sampling, build_spec, collect

CLOSE, STOP = IDS[THINK_CLOSE], IDS[MODEL_EOS]
CLOSE_IDS = tuple(encode("</think>\n\n"))
THINK = 5


def _spec(*rules: dict[str, object], **options: object) -> EngineSpec:
    return build_spec(
        options={"rules": list(rules) or [{}], **options}, thinking="force_close", force_close_ids=CLOSE_IDS
    )


def _request(engine: Engine, *, task_id: str = "task", **changes: object) -> Request:
    (prompt,) = engine.render({task_id: [{"role": "user", "content": "reverse"}]})
    return build_request(prompt, engine.facts(), **{"stage_two_seed": 9, "max_think_tokens": THINK, **changes})


def _sample(*rules: dict[str, object], **changes: object) -> tuple[Request, Sampled]:
    engine = ScriptedEngine(_spec(*rules))
    request = _request(engine, **changes)
    return request, collect(engine, [request])[request.request_id]


@pytest.fixture(scope="module", params=["in_process", "in_child"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = ScriptedEngine(_spec()) if request.param == "in_process" else ChildSession(_spec())
    yield engine
    engine.close()


class TestScripted(ForceCloseContract):
    force_close_ids = CLOSE_IDS


def test_the_close_is_injected_and_the_answer_is_sampled_behind_it() -> None:
    request, row = _sample({"think_tokens": None, "think_text": " wait", "answers": ["First: cat"]})
    assert row.completion.text == " wait" * THINK + "</think>\n\n" + "\nFirst: cat"
    assert row.injected_ids == CLOSE_IDS
    assert (row.completion.stage_one_finish_reason, row.completion.finish_reason) == ("length", "stop")
    assert row.completion.reprefilled_tokens == len(request.token_ids) + THINK + len(CLOSE_IDS)


def test_a_close_in_the_last_slot_is_the_models_own() -> None:
    _, row = _sample({"think_tokens": [THINK, THINK]})
    assert row.token_ids.index(CLOSE) == THINK - 1
    assert (row.injected_ids, row.completion.stage_one_finish_reason) == ((), None)


def test_a_stop_in_the_last_slot_is_a_stop() -> None:
    _, row = _sample({"think_tokens": None, "think_text": " wait wait wait wait<|endoftext|>"})
    assert (row.token_ids[-1], len(row.token_ids), row.injected_ids) == (STOP, THINK, ())
    assert (row.completion.finish_reason, row.completion.stage_one_finish_reason) == ("stop", None)


def test_a_cut_second_stage_says_so() -> None:
    _, row = _sample({"think_tokens": None, "stop": False}, max_answer_tokens=4)
    assert len(row.token_ids) == THINK + len(CLOSE_IDS) + 4
    assert (row.completion.finish_reason, row.completion.stage_one_finish_reason) == ("length", "length")


def test_both_stages_are_observed() -> None:
    """The injected ids are fed with the second stage's prefix, and by no forward call of their own."""
    request, row = _sample({"think_tokens": None, "stop": False}, max_answer_tokens=4)
    prompt = len(request.token_ids)
    assert row.forward_input_lengths == (prompt, *[1] * (THINK - 1), prompt + THINK + len(CLOSE_IDS), 1, 1, 1)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"stage_two_seed": None}, "stage_two_seed None"),
        ({"stage_two_seed": -1}, "stage_two_seed -1"),
        ({"max_answer_tokens": 0}, "expected at least 1, 1 and 1"),
        ({"max_think_tokens": 4096}, r"\+ 4096 \+ 3 \+ 8 tokens, expected at most max_model_len 4096"),
    ],
)
def test_a_second_stage_that_cannot_be_is_refused(changes: dict[str, object], problem: str) -> None:
    engine = ScriptedEngine(_spec())
    with pytest.raises(EngineError, match=problem) as caught:
        collect(engine, [_request(engine, **changes)])
    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    ("thinking", "ids"), [("natural", CLOSE_IDS), ("force_close", ())], ids=["ids_unused", "ids_missing"]
)
def test_a_policy_and_its_ids_belong_together(thinking: str, ids: tuple[int, ...]) -> None:
    with pytest.raises(EngineError, match="expected some for force_close, none otherwise"):
        ScriptedEngine(build_spec(thinking=thinking, force_close_ids=ids))


@given(
    sampled=st.lists(st.sampled_from([1, 2, 3, CLOSE, STOP]), min_size=20, max_size=20),
    think=st.integers(1, 6),
    answer=st.integers(1, 6),
    chunk_tokens=st.integers(1, 8),
)
def test_the_rule_on_any_ids(sampled: list[int], think: int, answer: int, chunk_tokens: int) -> None:
    """Against the rule in its shortest form, whatever is sampled and however it is cut into chunks."""
    sampling = build_sampling(stop_ids=(STOP,))
    row = Transcript(Request("r", (7,), 0, 0, sampling, think, answer, CLOSE), CLOSE_IDS, chunk_tokens)
    refuse_unless_it_fits([row.request], 100, force_close_ids=CLOSE_IDS)
    sent: list[Chunk] = []
    source = iter(sampled)
    while row.finish_reason is None:
        row.add(next(source))
        if row.is_chunk_due:
            sent.append(row.chunk(None))
        if row.is_used_up:
            sent.append(row.close_by_force(None))

    ids = [token_id for chunk in sent for token_id in chunk.token_ids]
    injected = [token_id for chunk in sent if chunk.injected for token_id in chunk.token_ids]
    thinking = sampled[:think]
    own_end = [position for position, token_id in enumerate(thinking) if token_id in (CLOSE, STOP)]
    assert ids == list(row.token_ids)
    assert injected == ([] if own_end else list(CLOSE_IDS))
    kept = thinking[: own_end[0] + 1] if own_end else thinking
    rest = [] if kept[-1] == STOP else sampled[len(kept) :][:answer]
    rest = rest[: rest.index(STOP) + 1] if STOP in rest else rest
    assert ids == kept + injected + rest
    assert row.finish_reason == ("stop" if ids[-1] == STOP else "length")


def test_a_child_killed_in_the_second_stage_loses_nothing_that_was_sampled(tmp_path: Path) -> None:
    sampled_tokens = THINK + 4
    killing = {
        "match": "b/*",
        "think_tokens": None,
        "stop": False,
        "fault": "kill",
        "fault_after_tokens": sampled_tokens,
    }
    path = tmp_path / "stream.jsonl"
    with ChildSession(_spec(killing, {"think_tokens": None}, chunk_tokens=1)) as session:
        requests = [_request(session, task_id=name) for name in ("a", "b", "c")]
        keyed = {request.request_id: (RowKey(request.request_id, 0), request) for request in requests}
        with Stream(path, keeps_text=False) as stream, pytest.raises(EngineError, match="was killed by SIGKILL"):
            sample(session, keyed, stream, lambda *_: None, [])

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    of_b = [line for line in lines if line["request_id"] == "b/1"]
    assert sum(len(line["token_ids"]) for line in of_b if not line["injected"]) == sampled_tokens
    assert [line["token_ids"] for line in of_b if line["injected"]] == [list(CLOSE_IDS)]
    assert [line["request_id"] for line in lines if "finish_reason" in line] == ["a/1"], "a row without an end is none"
    assert count_ids(path)[0] == 2


def test_the_parent_stays_small_while_three_million_ids_stream_through_it(tmp_path: Path) -> None:
    """48 samples of 61 440 ids, each closed by force: read, stored and gathered, and their rows written."""
    run = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    measured = json.loads(run.stdout)
    assert measured["sampled_tokens"] == 48 * (61_440 + 512)
    assert measured["peak_bytes"] < 300 * 2**20


PARENT = f"""
import json, sys
from pathlib import Path
from gatepost.audit.rows import write_rows
from gatepost.engines.child import ChildSession
from gatepost.fingerprint import RowKey
from gatepost.sampling import Stream, sample
from gatepost.testing import build_request, build_spec

folder = Path(sys.argv[1])
rules = [{{"think_tokens": None, "think_text": " wait so", "stop": False, "forwards": "unobserved"}}]
options = {{"rules": rules, "max_model_len": 65536, "chunk_tokens": 64}}
spec = build_spec(options=options, thinking="force_close", force_close_ids={CLOSE_IDS})
with ChildSession(spec) as session, Stream(folder / "stream.jsonl", keeps_text=True) as stream:
    facts, requests = session.facts(), {{}}
    for prompt in session.render({{f"task-{{n}}": [{{"role": "user", "content": "reverse"}}] for n in range(12)}}):
        for k in range(4):
            request = build_request(
                prompt, facts, seed=k, stage_two_seed=k, max_think_tokens=61_440, max_answer_tokens=512
            )
            requests[request.request_id] = (RowKey(prompt.task_id, k), request)
    rows, text = sample(session, requests, stream, lambda *_: None, [])
write_rows(folder / "rows.parquet", rows)
# Of this program alone; getrusage would count the process that it was forked from.
(peak,) = [int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps({{"sampled_tokens": sum(row.sampled_tokens for row in rows), "peak_bytes": peak}}))
"""
