"""The embedded model's folder: facts a study registers about it, read without loading the weights."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatepost.gatefiles import load_module

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "models" / "tiny_thinker"
LISTS, MACROS = ROOT / "studies" / "native_seam", ROOT / "studies" / "verified_macro"

MAX_FOLDER_BYTES = 8_000_000
MAX_PROMPT_TOKENS = 260
REGISTERED_SAMPLING = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "repetition_penalty": 1.0}


def read(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((FOLDER / name).read_text("utf-8"))
    return value


def added_ids() -> dict[str, int]:
    return {token["content"]: token["id"] for token in read("tokenizer.json")["added_tokens"]}


@pytest.fixture(name="domain", scope="module")
def _domain() -> Any:
    return load_module(LISTS / "domain.py", prefix="lists_of_the_model")


@pytest.fixture(name="macros", scope="module")
def _macros() -> Any:
    return load_module(MACROS / "domain.py", prefix="macros_of_the_model")


@pytest.fixture(name="tokenizer", scope="module")
def _tokenizer() -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


def test_special_tokens_have_ids_of_their_own() -> None:
    names = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"}
    assert added_ids().keys() == names
    assert len(set(added_ids().values())) == len(names)


def test_model_eos_is_not_the_tokenizer_eos() -> None:
    assert read("config.json")["eos_token_id"] == added_ids()["<|endoftext|>"]
    assert read("tokenizer_config.json")["eos_token"] == "<|im_end|>"


def test_generation_config_would_betray_a_runner_that_inherits_it() -> None:
    folder = read("generation_config.json")
    assert all(folder.get(name) != value for name, value in REGISTERED_SAMPLING.items())


def test_model_is_small_and_stored_in_bfloat16() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) <= MAX_FOLDER_BYTES
    assert read("config.json")["dtype"] == "bfloat16"
    assert read("config.json")["max_position_embeddings"] == 2048


def test_tokenizer_is_fast(tokenizer: Any) -> None:
    assert tokenizer.is_fast
    assert len(tokenizer) == read("config.json")["vocab_size"]


def test_every_alias_is_one_id_after_first(domain: Any, tokenizer: Any) -> None:
    lead = tokenizer.encode("First:")
    ids = [tokenizer.encode(f"First: {alias}")[len(lead) :] for alias in domain.ANSWERS]
    assert [len(alias_ids) for alias_ids in ids] == [1] * 12
    assert len({alias_ids[0] for alias_ids in ids}) == 12
    assert ids == [tokenizer.encode(f" {alias}") for alias in domain.ANSWERS]


@pytest.mark.parametrize("value", [-99, -10, -9, 0, 7, 10, 99])
def test_small_integers_are_one_id(tokenizer: Any, value: int) -> None:
    assert len(tokenizer.encode(f" {value}")) == 1


def test_text_survives_a_round_trip(tokenizer: Any) -> None:
    text = "First: cat\n\nin: -12 100 out: 3; <think>née 漢</think>\n"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_every_call_is_one_id_in_an_answer(macros: Any, tokenizer: Any) -> None:
    lead = tokenizer.encode("PROGRAM:")
    calls = [*macros.PRIMITIVES, *(f"M{digit}" for digit in range(8))]
    ids = [tokenizer.encode(f"PROGRAM: {call}")[len(lead) :] for call in calls]
    assert [len(call_ids) for call_ids in ids] == [1] * len(calls)
    assert len({call_ids[0] for call_ids in ids}) == len(calls)


def task_files(study: Path) -> list[Path]:
    return sorted((study / "tasks").glob("*.jsonl"))


@pytest.mark.parametrize("path", task_files(LISTS), ids=lambda path: path.stem)
def test_list_prompts_open_the_thinking_channel_and_are_short(domain: Any, tokenizer: Any, path: Path) -> None:
    for line in path.read_text("utf-8").splitlines():
        check_prompt(tokenizer, domain.messages(json.loads(line)))


@pytest.mark.parametrize("arm", ["base", "designed"])
@pytest.mark.parametrize("path", task_files(MACROS), ids=lambda path: path.stem)
def test_macro_prompts_open_the_thinking_channel_and_are_short(
    macros: Any, tokenizer: Any, path: Path, arm: str
) -> None:
    for line in path.read_text("utf-8").splitlines():
        check_prompt(tokenizer, macros.messages(json.loads(line), arm))


def check_prompt(tokenizer: Any, chat: list[dict[str, str]]) -> None:
    """One `<think>`, at the end, no `</think>`, and no more tokens than the studies' envelopes leave room for."""
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    assert ids.count(added_ids()["<think>"]) == 1
    assert added_ids()["</think>"] not in ids
    assert tokenizer.decode(ids[-2:]) == "<think>\n"
    assert len(ids) <= MAX_PROMPT_TOKENS
