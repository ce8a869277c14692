"""What can be known of an engine is checked before it is paid for: when its plan is frozen."""

from pathlib import Path
from typing import Any

import pytest

from gatepost.engines.options import refuse_impossible
from gatepost.errors import EngineError, RegistrationError
from tests.archives import create_project
from tests.engines.conftest import OPTIONS as TRANSFORMERS
from tests.engines.vllm_engines import OPTIONS as VLLM


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("scripted", {}),
        ("scripted", {"max_model_len": 512}),
        ("transformers", TRANSFORMERS),
        ("vllm", VLLM),
        ("vllm", {**VLLM, "an_argument_that_some_vllm_has": 1}),
        ("mine", {"anything": 1}),
        ("my.engines:Fast", {"anything": 1}),
    ],
)
def test_what_an_engine_may_take_is_let_through(kind: str, options: dict[str, Any]) -> None:
    refuse_impossible(kind, options)


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        ("scripted", {"max_model_length": 512}, "max_model_length"),
        ("scripted", {"chunk_tokens": "16"}, "chunk_tokens"),
        ("transformers", {}, "options: attention is missing|is missing"),
        ("transformers", {**TRANSFORMERS, "max_num_seqs": 8}, "max_num_seqs"),
        ("transformers", {**TRANSFORMERS, "dtype": "int8"}, "dtype 'int8', expected float32 or bfloat16"),
        ("vllm", {name: value for name, value in VLLM.items() if name != "seed"}, "options: seed is missing"),
        ("vllm", {**VLLM, "generation_config": "auto"}, "generation_config cannot be registered, gatepost sets it"),
        ("vllm", {**VLLM, "load_format": "tensorizer"}, "load_format 'tensorizer', expected auto or dummy"),
        ("vLLM", VLLM, "kind is 'vLLM', expected vllm"),
        ("transformer", TRANSFORMERS, "kind is 'transformer', expected transformers"),
        ("script", {}, "kind is 'script', expected scripted"),
    ],
)
def test_what_no_engine_takes_is_refused(kind: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(EngineError, match=problem) as refused:
        refuse_impossible(kind, options)
    assert refused.value.kind == "refused"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('kind = "scripted"', 'kind = "scriptd"', "engine, at rung 8: kind is 'scriptd', expected scripted"),
        ("max_model_len = 4096", "max_model_len = 4096\nbatch = 1", "engine, at rung 8: options: .*batch"),
        (
            "max_think_tokens = 32",
            "max_think_tokens = 32\nengine = { batch = 1 }",
            "engine, at rung 32: options: .*batch",
        ),
    ],
)
def test_a_draft_is_refused_before_it_is_frozen(tmp_path: Path, old: str, new: str, problem: str) -> None:
    project = create_project(tmp_path)

    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    with pytest.raises(RegistrationError, match=rf"toy\.toml: {problem}"):
        project.freeze(edit=edit)
    assert not (tmp_path / "receipts" / "toy").exists()
