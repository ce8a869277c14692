"""What graphs and sessions cost: engines that stay up, each in its own process, sampling the same requests in turns.

One engine works at a time. On a GPU it is the dense 4B shape with 19 active sequences; elsewhere a tiny model, without
graphs. Counted through gatepost: from the first request to the last id on disk, in the parent. Counted for bare
``LLM.generate``: the call alone, in its process.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from gatepost.engine import EngineSpec, Request
from gatepost.engines.child import ChildSession
from gatepost.engines.model_folder import Source
from gatepost.engines.vllm_options import VLLMOptions
from gatepost.fingerprint import RowKey
from gatepost.plugin.live import missing_accelerator
from gatepost.sampling import Stream, sample
from gatepost.testing import build_spec
from tests.engines.vllm_engines import OPTIONS, build_model, needs_vllm

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 4
PROMPT_TOKENS = 256
NO_CLOSE = 2**31 - 1
"""No id of any vocabulary: every request samples as much as it may."""

GPU: dict[str, object] = {
    **OPTIONS,
    "device": "cuda",
    "dtype": "bfloat16",
    "max_model_len": 4096,
    "max_num_seqs": 19,
    "max_num_batched_tokens": 8192,
    "gpu_memory_utilization": 0.15,
    "kv_cache_memory_bytes": 6 * 2**30,
    "load_format": "dummy",
    "chunk_tokens": 64,
}
GRAPHS: dict[str, dict[str, object]] = {
    "exact": {"enforce_eager": False, "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 19]},
    "implicit": {"enforce_eager": False, "max_cudagraph_capture_size": 19},
    "eager": {"enforce_eager": True},
}
CPU: dict[str, object] = {
    **OPTIONS,
    "chunk_tokens": 64,
    "max_num_seqs": 8,
    "max_model_len": 1536,
    "max_num_batched_tokens": 2048,
}

Rate = Callable[[], float]
"""Samples all requests once; returns sampled tokens per second."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], EngineSpec]:
    """The spec of an engine by its graphs; without an accelerator there is one, whatever its graphs."""
    if missing_accelerator() is None:
        folder, options = ROOT / "models" / "shapes" / "dense_4b", GPU
    else:
        folder, options = build_model("dense", tmp_path_factory.mktemp("model") / "m"), CPU

    def build_one(graphs: str) -> EngineSpec:
        asked = GRAPHS[graphs] if options is GPU else {}
        return build_spec("vllm", options={**options, **asked}, model_path=str(folder), start_timeout_seconds=400)

    return build_one


@contextmanager
def running(specs: Mapping[str, EngineSpec], sampled_tokens: int, folder: Path) -> Iterator[dict[str, Rate]]:
    """Engines through gatepost, all started at once; a spec named ``bare`` is one of ``LLM.generate``."""
    with ThreadPoolExecutor() as pool, ExitStack() as stack:  # a child ends with the thread that started it
        starting = {name: pool.submit(ChildSession, spec) for name, spec in specs.items() if name != "bare"}
        rates: dict[str, Rate] = {}
        if "bare" in specs:
            bare = stack.enter_context(start_bare(specs["bare"]))
            for name, with_text in (("bare", False), ("bare with text", True)):
                rates[name] = partial(through_bare, bare, specs["bare"], sampled_tokens, with_text=with_text)
        for name, started in starting.items():
            session = stack.enter_context(started.result())
            rates[name] = partial(through_gatepost, session, specs[name], sampled_tokens, folder)
        for rate in rates.values():
            rate()  # what runs first compiles
        yield rates


def through_gatepost(session: ChildSession, spec: EngineSpec, sampled_tokens: int, folder: Path) -> float:
    """Sampled tokens per second of a session."""
    requests = {
        f"r{n}": (
            RowKey(f"r{n}", 0),
            Request(
                request_id=f"r{n}",
                token_ids=(1 + n,) * PROMPT_TOKENS,
                seed=n,
                stage_two_seed=None,
                sampling=spec.sampling,
                max_think_tokens=sampled_tokens,
                max_answer_tokens=1,
                think_close_id=NO_CLOSE,
            ),
        )
        for n in range(active(spec))
    }
    started = time.monotonic()
    with Stream(folder / f"{time.monotonic_ns()}.jsonl", keeps_text=False) as stream:
        rows, _ = sample(session, requests, stream, lambda *counts: None, [])
    return sum(row.sampled_tokens for row in rows) / (time.monotonic() - started)


@contextmanager
def start_bare(spec: EngineSpec) -> Iterator["subprocess.Popen[str]"]:
    """A process with ``LLM.generate`` in it."""
    folder = Path(spec.model_path)
    arguments = VLLMOptions.read(spec.options).engine_arguments(Source(folder, folder, None, None))
    command = [sys.executable, str(ROOT / "bench" / "bare_generate.py"), json.dumps(arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def through_bare(process: "subprocess.Popen[str]", spec: EngineSpec, sampled_tokens: int, *, with_text: bool) -> float:
    """The same requests; with or without text, which vLLM makes id by id."""
    values = spec.sampling
    sampling = {"temperature": values.temperature, "top_p": values.top_p, "top_k": values.top_k}
    sampling |= {"max_tokens": sampled_tokens, "ignore_eos": True, "detokenize": with_text}
    requests = [
        {"token_ids": [1 + n] * PROMPT_TOKENS, "sampling": {**sampling, "seed": n}} for n in range(active(spec))
    ]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(requests) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    return answer["tokens"] / answer["seconds"]


def active(spec: EngineSpec) -> int:
    """As many requests as are active at once."""
    return int(spec.options["max_num_seqs"])


def in_turns(benchmark: BenchmarkFixture, engines: Mapping[str, Rate], first: str) -> None:
    """Each round asks every engine once. Rates and ratios to the first one are in ``extra_info``."""
    rates: dict[str, list[float]] = {name: [] for name in engines}

    def round_of_all() -> None:
        for name, rate in engines.items():
            rates[name].append(rate())

    benchmark.pedantic(round_of_all, rounds=ROUNDS)
    benchmark.extra_info |= {name: [round(rate, 1) for rate in found] for name, found in rates.items()}
    for other in rates:
        if other != first:
            benchmark.extra_info[f"{first} / {other}"] = ratio(rates, first, other)
    print(json.dumps(benchmark.extra_info, indent=1))


def ratio(rates: Mapping[str, list[float]], one: str, other: str) -> str:
    """How many times as fast, round by round: median, lowest, highest."""
    found = [a / b for a, b in zip(rates[one], rates[other], strict=True)]
    return f"{median(found):.4f} ({min(found):.4f} to {max(found):.4f})"


@needs_vllm
@pytest.mark.benchmark(group="rounds")
def test_graphs(benchmark: BenchmarkFixture, build: Callable[[str], EngineSpec], tmp_path: Path) -> None:
    """Exact graphs beside a list that ends below the active width, and beside none."""
    with running({graphs: build(graphs) for graphs in GRAPHS}, 384, tmp_path) as engines:
        in_turns(benchmark, engines, "exact")


@needs_vllm
@pytest.mark.benchmark(group="rounds")
def test_session(benchmark: BenchmarkFixture, build: Callable[[str], EngineSpec], tmp_path: Path) -> None:
    """A session beside ``LLM.generate``."""
    with running({"gatepost": build("exact"), "bare": build("exact")}, 1024, tmp_path) as engines:
        in_turns(benchmark, engines, "gatepost")
