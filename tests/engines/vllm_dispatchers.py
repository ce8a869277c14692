"""Ask vLLM's own graph dispatchers, through ``GraphDispatch``, and print what they say: ``... FOLDER``.

Which graph a step takes is decided without a device, so both model runners' dispatchers are the real ones. What the
second one needs of a device, a memory pool and graphs captured in it, it is told to have.
"""

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from vllm import EngineArgs
from vllm.config import CUDAGraphMode, VllmConfig, set_current_vllm_config
from vllm.config.lora import LoRAConfig
from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment
from vllm.platforms import current_platform
from vllm.v1.cudagraph_dispatcher import CudagraphDispatcher
from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager

from gatepost.engines.vllm_graphs import GraphDispatch

MODE = CUDAGraphMode.FULL_DECODE_ONLY
SEQUENCES = 19


def build_config(folder: str, sizes: list[int], lora: LoRAConfig | None) -> VllmConfig:
    arguments = EngineArgs(model=folder, max_model_len=512, max_num_seqs=SEQUENCES, enforce_eager=True)
    config = arguments.create_engine_config()
    config.lora_config = lora
    graphs = config.compilation_config
    graphs.cudagraph_mode, graphs.cudagraph_capture_sizes, graphs.max_cudagraph_capture_size = MODE, sizes, sizes[-1]
    return config


def first_runner(config: VllmConfig) -> Any:
    dispatcher = CudagraphDispatcher(config)
    dispatcher.initialize_cudagraph_keys(MODE, 1)
    return SimpleNamespace(cudagraph_dispatcher=dispatcher)


def second_runner(config: VllmConfig) -> Any:
    type(current_platform)._global_graph_pool = "no device"
    with set_current_vllm_config(config):
        rendezvous = Path(tempfile.mkdtemp()) / "rendezvous"
        init_distributed_environment(1, 0, f"file://{rendezvous}", 0, "gloo")
        ensure_model_parallel_initialized(1, 1)
        manager = CudaGraphManager(config, torch.device("cpu"), MODE, 1)
    manager._graphs_captured = True
    return SimpleNamespace(cudagraph_manager=manager)


def ask(runner: Any) -> dict[str, Any]:
    """What is uncovered; then a prefill, two steps of 15 sequences and one of 17."""
    dispatch = GraphDispatch(runner, decode_query_tokens=1)
    answers = {"uncovered": dispatch.uncovered_widths(SEQUENCES), "adapter_cases": dispatch.adapter_cases()}
    if hasattr(runner, "cudagraph_dispatcher"):
        runner.cudagraph_dispatcher.dispatch(num_tokens=400)
        for width in (15, 15, 17):
            runner.cudagraph_dispatcher.dispatch(width, uniform_decode=True)
    else:
        runner.cudagraph_manager.dispatch(19, 400, None, num_active_loras=0)
        for width in (15, 15, 17):
            runner.cudagraph_manager.dispatch(width, width, uniform_token_count=1, num_active_loras=0)
    return {**answers, "histogram": dispatch.histogram()}


def main(folder: str) -> None:
    implicit, exact = [1, 2, 4, 8, 16], [1, 2, 4, 8, 16, SEQUENCES]
    two_cases, five_cases = LoRAConfig(max_loras=5), LoRAConfig(max_loras=5, specialize_active_lora=True)
    answers = {
        "first implicit": ask(first_runner(build_config(folder, implicit, None))),
        "first exact": ask(first_runner(build_config(folder, exact, None))),
        "first two cases": ask(first_runner(build_config(folder, exact, two_cases))),
        "first five cases": ask(first_runner(build_config(folder, exact, five_cases))),
        "second implicit": ask(second_runner(build_config(folder, implicit, None))),
        "second exact": ask(second_runner(build_config(folder, exact, None))),
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1])
