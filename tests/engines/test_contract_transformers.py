"""The Transformers engine keeps the contract, on a real model in a child."""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatepost.engine import Adapter, Engine, EngineSpec
from gatepost.engines.child import ChildSession
from gatepost.errors import EngineError
from gatepost.testing import EngineContract, build_request, build_sampling, collect


@pytest.fixture
def engine(transformers_session: ChildSession) -> Engine:
    return transformers_session


@pytest.fixture
def fresh_engine(transformers_spec: Callable[..., EngineSpec]) -> Iterator[Engine]:
    with ChildSession(transformers_spec()) as session:
        yield session


class TestTransformers(EngineContract):
    pass


def test_facts_are_read_back(transformers_session: ChildSession, model_folder: Path) -> None:
    facts = transformers_session.facts()
    assert (facts.device, facts.dtype, facts.attention) == ("cpu", "float32", "sdpa")
    assert (facts.use_cache, facts.max_model_len) == (True, 512)
    assert facts.device_name
    assert facts.model_eos_ids == [256]
    assert facts.tokenizer_eos_id == 258
    assert facts.markers == {"<think>": 259, "</think>": 260}
    assert facts.versions["torch"].startswith("2.")
    assert facts.environment["torch_threads"] == 1
    assert facts.environment["deterministic_algorithms"] is True
    assert facts.environment["versions_changed"] == {}
    assert facts.environment["parameters_by_dtype"].keys() == {"float32"}


def test_files_are_bound_by_digest(transformers_session: ChildSession, model_folder: Path) -> None:
    files = transformers_session.facts().model_files
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"} <= files.keys()
    for name, digest in files.items():
        assert hashlib.sha256((model_folder / name).read_bytes()).hexdigest() == digest


def test_under_no_think_all_is_answer(transformers_spec: Callable[..., EngineSpec]) -> None:
    with ChildSession(replace(transformers_spec(), thinking="no_think")) as session:
        (prompt,) = session.render({"t": [{"role": "user", "content": "hi"}]})
        request = build_request(
            prompt, session.facts(), sampling=build_sampling(), max_think_tokens=30, max_answer_tokens=20
        )
        row = collect(session, [request])[request.request_id]
    assert (len(row.token_ids), row.completion.finish_reason) == (20, "length")


def test_text_keeps_special_tokens(transformers_session: ChildSession) -> None:
    (prompt,) = transformers_session.render({"t": [{"role": "user", "content": "<|im_start|>"}]})
    assert prompt.text.endswith("<|im_start|>assistant\n<think>\n")
    assert prompt.token_ids.count(257) == 3
    request = build_request(prompt, transformers_session.facts())
    row = collect(transformers_session, [request])[request.request_id]
    assert ("</think>" in row.completion.text) == (request.think_close_id in row.token_ids)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float16"}, "dtype 'float16', expected float32 or bfloat16"),
        ({"attention": "flash"}, "attention 'flash', expected sdpa or eager"),
        ({"threads": 0}, "threads 0, expected at least 1"),
        ({"threads": True}, "threads: found True, expected an integer"),
        ({"temperature": 0.6}, "unknown temperature"),
        ({"device": "tpu"}, "device 'tpu', expected cpu, cuda or cuda:N"),
        ({"max_model_len": 513}, "max_model_len 513, but the model has 512 positions"),
    ],
)
def test_options_that_cannot_be_had_are_refused(
    transformers_spec: Callable[..., EngineSpec], changes: dict[str, object], message: str
) -> None:
    _assert_refused(transformers_spec(**changes), message)


def test_a_missing_option_is_refused(transformers_spec: Callable[..., EngineSpec]) -> None:
    spec = transformers_spec()
    assert isinstance(spec.options, dict)
    del spec.options["deterministic"]
    _assert_refused(spec, "options: deterministic is missing")


def test_an_adapter_is_refused(transformers_spec: Callable[..., EngineSpec]) -> None:
    _assert_refused(replace(transformers_spec(), adapter=Adapter("tuned", "tuned")), "takes no adapter; merge it into")


def test_a_missing_accelerator_is_refused(transformers_spec: Callable[..., EngineSpec]) -> None:
    from_driver = Path("/proc/driver/nvidia/version")
    if from_driver.exists():
        pytest.skip("this machine has an NVIDIA driver")
    _assert_refused(transformers_spec(device="cuda"), "finds no CUDA device")


def test_a_folder_without_weights_is_refused(transformers_spec: Callable[..., EngineSpec], tmp_path: Path) -> None:
    _assert_refused(transformers_spec(folder=tmp_path), "holds no config.json")


def test_a_repository_needs_its_revisions(transformers_spec: Callable[..., EngineSpec]) -> None:
    _assert_refused(transformers_spec(folder=Path("example/absent")), "a repository needs revision")


def test_a_repository_is_pinned_to_the_commit_it_resolves_to(
    transformers_spec: Callable[..., EngineSpec], model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's own cache layout, read offline."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    shutil.copytree(model_folder, tmp_path / "models--example--tiny" / "snapshots" / commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    spec = transformers_spec(folder=Path("example/tiny"), dtype="bfloat16", attention="eager", threads=2)
    with ChildSession(replace(spec, revision=commit, tokenizer_revision=commit)) as session:
        facts = session.facts()
    assert (facts.revision, facts.tokenizer_revision) == (commit, commit)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= facts.model_files.keys()
    assert (facts.dtype, facts.attention, facts.environment["torch_threads"]) == ("bfloat16", "eager", 2)
    _assert_refused(replace(spec, revision=commit[::-1], tokenizer_revision=commit), "cannot be fetched")


def _assert_refused(spec: EngineSpec, message: str) -> None:
    with pytest.raises(EngineError, match=re.escape(message)) as caught:
        ChildSession(spec)
    assert caught.value.kind == "refused"
