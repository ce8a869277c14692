"""What torch runs on and how it is switched. Imported in an engine's child alone."""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch

from gatepost.engines.nvidia import driver_version
from gatepost.errors import EngineError
from gatepost.verdict import JSON

ENVIRONMENT_VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_VISIBLE_DEVICES",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TOKENIZERS_PARALLELISM",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
"""Switches that change numerics or scheduling and that torch does not report itself."""


def set_up(device: str, *, threads: int, deterministic: bool) -> torch.device:
    """Switch torch as registered, for this process, and find the device.

    Raises:
        EngineError: ``refused``, for a device that is not there.
    """
    # cuBLAS reads this when the device is first used; without it, it is not deterministic.
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic)
    torch.set_num_threads(threads)
    if device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise EngineError(
            f"options: device {device!r}, but torch {torch.__version__} finds no CUDA device; "
            "it takes an NVIDIA GPU, its driver and a CUDA build of torch",
            kind="refused",
        )
    found = torch.device(device if ":" in device else "cuda:0")
    if (found.index or 0) >= torch.cuda.device_count():
        raise EngineError(f"options: device {device!r}, but there are {torch.cuda.device_count()}", kind="refused")
    return found


def device_name(device: torch.device) -> str:
    """The part's marketing name."""
    if device.type == "cuda":
        name: str = torch.cuda.get_device_name(device)
        return name
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def switches() -> Mapping[str, JSON]:
    """Every setting that changes numerics, read back from torch or from the process."""
    return {
        "torch_threads": torch.get_num_threads(),
        "torch_interop_threads": torch.get_num_interop_threads(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cuda_matmul_allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda_version": torch.version.cuda,
        "cuda_driver": driver_version(),
        "environment_variables": {name: os.environ.get(name) for name in ENVIRONMENT_VARIABLES},
    }
