"""The thinking policies on a real vLLM, and what is left when its child is killed between two steps."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatepost.engine import Chunk, Completion, Request
from gatepost.engines.child import ChildSession
from gatepost.errors import EngineError
from gatepost.testing import THINK_CLOSE, THINK_OPEN, ForceCloseContract, build_request, build_sampling, collect
from tests.engines.vllm_engines import build_model, cpu_build, needs_vllm, running, vllm_spec

pytestmark = needs_vllm

CLOSE = 260
CLOSE_IDS = (CLOSE, 10, 10)
REASONING = {"reasoning_start_str": THINK_OPEN, "reasoning_end_str": THINK_CLOSE}
THINK = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model("dense", tmp_path_factory.mktemp("dense"))


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[ChildSession]:
    with running(vllm_spec(folder, thinking="force_close", close_ids=CLOSE_IDS)) as session:
        yield session


class TestForceClose(ForceCloseContract):
    force_close_ids = CLOSE_IDS


def _requests(session: ChildSession, **changes: object) -> list[Request]:
    facts = session.facts()
    prompts = session.render({name: [{"role": "user", "content": name}] for name in ("a", "b")})
    values = {"max_think_tokens": THINK, "max_answer_tokens": 20, "sampling": build_sampling(), **changes}
    return [
        build_request(prompt, facts, **{"seed": seed, "stage_two_seed": 100 + seed, **values})
        for prompt in prompts
        for seed in (1, 2, 3)
    ]


def test_rows_of_both_kinds_share_a_batch_in_any_order(engine: ChildSession) -> None:
    """The close is whatever one of the rows says early: that row ends by itself, the others by force."""
    requests = _requests(engine)
    early = collect(engine, requests)["a/1"].token_ids[2]
    requests = _requests(engine, think_close_id=early)
    once, again = collect(engine, requests), collect(engine, requests[::-1])
    assert once["a/1"].injected_ids == ()
    assert {row.injected_ids for row in once.values()} == {(), CLOSE_IDS}
    assert {name: row.token_ids for name, row in once.items()} == {name: row.token_ids for name, row in again.items()}
    for row in once.values():
        forced = bool(row.injected_ids)
        assert row.completion.stage_one_finish_reason == ("length" if forced else None)
        assert (row.completion.reprefilled_tokens > 0) == forced


def test_what_a_step_samples_is_counted_apart_from_what_is_injected(folder: Path) -> None:
    with running(vllm_spec(folder, thinking="force_close", close_ids=CLOSE_IDS)) as session:
        rows = collect(session, _requests(session))
        counters = session.facts().scheduler
    assert counters is not None
    assert counters["sampled_tokens"] == sum(len(row.token_ids) - len(row.injected_ids) for row in rows.values())


@cpu_build
def test_a_killed_child_loses_nothing_that_was_sampled(folder: Path) -> None:
    """In the middle of the second stage: what came is, row for row, the beginning of what would have come."""
    spec = vllm_spec(folder, thinking="force_close", close_ids=CLOSE_IDS, chunk_tokens=1)
    with running(spec) as session:
        whole = collect(session, _requests(session))
    came: dict[str, list[int]] = {name: [] for name in whole}
    with running(spec) as session:
        events = session.generate(_requests(session))
        with pytest.raises(EngineError, match="was killed by SIGKILL"):
            _gather_and_kill(session, events, came)
    for name, ids in came.items():
        assert list(whole[name].token_ids[: len(ids)]) == ids
    # On the CPU all rows were in the same steps, and not one id of a finished step is missing.
    lengths = [len(ids) for ids in came.values()]
    assert THINK + len(CLOSE_IDS) < min(lengths) <= max(lengths) <= min(lengths) + 1


def _gather_and_kill(session: ChildSession, events: Iterator[Chunk | Completion], came: dict[str, list[int]]) -> None:
    """Kill the child after nine ids of second stages, and go on reading what it had said by then."""
    answering = 0
    for event in events:
        assert isinstance(event, Chunk), "no row may end before the child is killed"
        came[event.request_id].extend(event.token_ids)
        answering += len(came[event.request_id]) > THINK + len(CLOSE_IDS)
        if answering == 9:
            os.kill(session.pid, signal.SIGKILL)


@cpu_build
def test_the_engines_own_budget_closes_by_itself(folder: Path) -> None:
    """The open marker is two ids from the end of the prompt, and vLLM counts the newline behind it as a thought."""
    with running(vllm_spec(folder, thinking="engine_budget", reasoning_config=REASONING)) as session:
        facts, rows = session.facts(), collect(session, _requests(session, stage_two_seed=None))
    assert facts.environment["reasoning_end_ids"] == [CLOSE]
    assert facts.sampling is not None
    assert "thinking_token_budget" not in facts.sampling
    for row in rows.values():
        assert row.token_ids.index(CLOSE) + 1 == THINK - 1
        assert (row.injected_ids, row.completion.stage_one_finish_reason) == ((), None)


def test_the_engines_own_budget_needs_its_markers(folder: Path) -> None:
    with pytest.raises(EngineError, match="reasoning_config is missing") as caught:
        ChildSession(vllm_spec(folder, thinking="engine_budget"))
    assert caught.value.kind == "refused"


def test_no_think_closes_the_channel_in_the_prompt(folder: Path) -> None:
    with running(vllm_spec(folder, thinking="no_think")) as session:
        (prompt,) = session.render({"t": [{"role": "user", "content": "hi"}]})
        rows = collect(session, _requests(session, stage_two_seed=None, max_think_tokens=30, max_answer_tokens=20))
    assert prompt.text.endswith("<think>\n</think>\n\n")
    assert prompt.token_ids.count(CLOSE) == 1
    # All of it is answer: neither more than an answer may have, nor as little as the thinking budget.
    assert {(len(row.token_ids), row.completion.finish_reason) for row in rows.values()} == {(20, "length")}
