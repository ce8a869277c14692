"""Cache groups of models that mix layers, read from a real engine (case b1)."""

from pathlib import Path

import pytest

from gatepost.testing import build_request, collect
from gatepost.verdict import JSON
from tests.engines.vllm_engines import build_model, needs_vllm, running, vllm_spec

pytestmark = needs_vllm

MAX_MODEL_LEN = 1024


def _cache(kind: str, folder: Path, *, attention: str, **options: object) -> dict[str, dict[str, JSON]]:
    """Cache groups by kind, checked against the engine's own sum over them; the engine has sampled by then."""
    made_up = {"load_format": "dummy", "max_model_len": MAX_MODEL_LEN, **options}
    with running(vllm_spec(build_model(kind, folder), **made_up)) as session:
        facts = session.facts()
        (prompt,) = session.render({"t": [{"role": "user", "content": "hi"}]})
        collect(session, [build_request(prompt, facts, seed=seed) for seed in range(2)])
    assert facts.attention == attention
    assert facts.kv_cache is not None
    groups = facts.kv_cache["groups"]
    blocks = sum(group["blocks_at_max_model_len"] for group in groups)
    assert facts.kv_cache["max_concurrency"] == pytest.approx(facts.kv_cache["num_blocks"] / blocks)
    assert facts.kv_cache["reserved_blocks"] == 1
    by_kind = {group["kind"]: group for group in groups}
    # Of the group that grows with a request: one state of a recurrent layer may stand for fewer tokens.
    assert facts.kv_cache["block_size"] == by_kind["full_attention"]["block_size"]
    return by_kind


def test_a_window_holds_what_it_reaches(tmp_path: Path) -> None:
    groups = _cache("sliding", tmp_path, attention="CPU_ATTN")
    block = groups["full_attention"]["block_size"]
    assert groups["full_attention"]["blocks_per_request"] is None
    assert groups["sliding_window"]["sliding_window"] == 256
    # vLLM counts the window, a whole batch of prefill, and one block more for where the window begins.
    assert groups["sliding_window"]["blocks_per_request"] == -(-min(255 + 1024, MAX_MODEL_LEN) // block) + 1


@pytest.mark.parametrize(("prefix_caching", "blocks"), [(False, 1), (True, 2)], ids=["none", "align"])
def test_a_recurrent_group_holds_a_state_and_does_not_grow(tmp_path: Path, prefix_caching: bool, blocks: int) -> None:
    """vLLM keeps a second state of each request where it has to find it again by its prefix."""
    groups = _cache(
        "hybrid", tmp_path, attention="CPU_ATTN+GDN_ATTN", dtype="bfloat16", enable_prefix_caching=prefix_caching,
        max_num_batched_tokens=2048,
    )  # fmt: skip
    assert groups["mamba"]["blocks_per_request"] == groups["mamba"]["blocks_at_max_model_len"] == blocks
    assert groups["full_attention"]["blocks_per_request"] is None
