"""What a protocol registers for vLLM, and what vLLM is given for it. Needs no vLLM."""

from pathlib import Path

import pytest

from gatepost.engine import EngineSpec
from gatepost.engines.model_folder import Source
from gatepost.engines.vllm_options import VLLMOptions, refuse_unknown
from gatepost.errors import EngineError
from tests.engines.vllm_engines import OPTIONS, vllm_spec

FOLDER = Path("model")
SOURCE = Source(FOLDER, Path("tokenizer"), None, None)


def _arguments(**options: object) -> dict[str, object]:
    return VLLMOptions.read(vllm_spec(FOLDER, **options).options).engine_arguments(SOURCE)


def _without(name: str) -> EngineSpec:
    spec = vllm_spec(FOLDER)
    assert isinstance(spec.options, dict)
    del spec.options[name]
    return spec


def test_every_registered_option_is_passed_and_nothing_else() -> None:
    assert _arguments() == {
        **{name: value for name, value in OPTIONS.items() if name not in ("device", "chunk_tokens")},
        "model": "model",
        "tokenizer": "tokenizer",
        "generation_config": "vllm",
        "compilation_config": {},
        "disable_log_stats": False,
    }


def test_null_is_not_passed() -> None:
    nulls = {"cudagraph_capture_sizes": None, "num_gpu_blocks_override": None, "speculative_config": None}
    assert _arguments(**nulls) == _arguments()


def test_graph_options_make_the_compilation_config() -> None:
    arguments = _arguments(cudagraph_capture_sizes=[1, 2, 19], max_cudagraph_capture_size=19, cudagraph_mode="FULL")
    assert arguments["compilation_config"] == {
        "cudagraph_capture_sizes": [1, 2, 19],
        "max_cudagraph_capture_size": 19,
        "cudagraph_mode": "FULL",
    }
    assert not arguments.keys() & {"cudagraph_capture_sizes", "max_cudagraph_capture_size", "cudagraph_mode"}


def test_any_further_argument_is_passed() -> None:
    assert _arguments(block_size=32, hf_overrides={"a": 1}).items() >= {"block_size": 32}.items()


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "kv_cache_memory_bytes"])
def test_a_missing_option_is_refused(name: str) -> None:
    with pytest.raises(EngineError, match=f"options: {name} is missing") as caught:
        VLLMOptions.read(_without(name).options)
    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "device 'tpu', expected cpu or cuda"),
        ({"load_format": "pt"}, "load_format 'pt', expected auto or dummy"),
        ({"chunk_tokens": 0}, "chunk_tokens 0, expected at least 1"),
        ({"max_num_seqs": 8.5}, "max_num_seqs: found 8.5, expected an integer"),
        ({"enforce_eager": "no"}, "enforce_eager: found 'no'"),
        ({"cudagraph_capture_sizes": 19}, "cudagraph_capture_sizes: found 19, expected a list"),
        ({"generation_config": "auto"}, "generation_config cannot be registered"),
        ({"compilation_config": {}}, "compilation_config cannot be registered"),
    ],
)
def test_an_impossible_option_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(EngineError, match=message) as caught:
        _arguments(**options)
    assert caught.value.kind == "refused"


def test_an_argument_that_the_version_does_not_know_is_refused_by_name() -> None:
    refuse_unknown(["model"], ["model", "seed"], vllm_version="0.24.0")
    with pytest.raises(EngineError, match=r"vLLM 0\.24\.0 has no engine argument colour, taste"):
        refuse_unknown(["taste", "model", "colour"], ["model"], vllm_version="0.24.0")
