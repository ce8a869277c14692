"""Tiny models for the tests of the real vLLM, on its CPU build or on a GPU; skipped where vLLM is not installed.

Run them with the Python of an environment that has it: ``python -m pytest tests/engines -k vllm``.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gatepost.engine import EngineSpec
from gatepost.engines.child import ChildSession
from gatepost.plugin.live import missing_accelerator
from gatepost.testing import build_spec

needs_vllm = pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs the extra gatepost[vllm]")

DEVICE = "cuda" if missing_accelerator() is None else "cpu"
cpu_build = pytest.mark.skipif(DEVICE != "cpu", reason="is about the CPU build of vLLM")

OPTIONS: dict[str, object] = {
    "device": DEVICE,
    "dtype": "float32" if DEVICE == "cpu" else "bfloat16",  # on CUDA adapters are half floats
    "max_model_len": 512,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 1024,
    "gpu_memory_utilization": 0.3,
    "tensor_parallel_size": 1,
    "enforce_eager": True,
    "enable_prefix_caching": False,
    "async_scheduling": False,
    "seed": 0,
    "load_format": "auto",
    "chunk_tokens": 4,
    "kv_cache_memory_bytes": 64 * 2**20,
}


def build_model(kind: str, folder: Path) -> Path:
    """A tiny model of a kind, see ``build_tiny_vllm.py``, in a new folder."""
    subprocess.run([sys.executable, Path(__file__).with_name("build_tiny_vllm.py"), kind, folder], check=True)
    return folder


def vllm_spec(
    folder: Path, *, thinking: str = "natural", close_ids: tuple[int, ...] = (), **options: object
) -> EngineSpec:
    """The spec of an engine on that model: option changes by keyword."""
    spec = build_spec("vllm", options={**OPTIONS, **options}, model_path=str(folder))
    return replace(spec, thinking=thinking, force_close_ids=close_ids)


@contextmanager
def running(spec: EngineSpec) -> Iterator[ChildSession]:
    """A running engine. One thread is plenty for it, and many wait for one another on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        with ChildSession(spec) as session:
            yield session
