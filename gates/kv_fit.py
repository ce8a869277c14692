"""Do all active sequences fit into the cache at their longest?"""

from gatepost.gate import JSON, UNKNOWN_FACTS, Check, Checks, Evidence, count_of, gate

GROWING = ("full_attention", "mla_attention", "sink_full_attention")
"""Kinds of cache groups in which a request holds a block for each ``block_size`` of its tokens."""

BOUNDED = (
    "mamba",
    "sliding_window",
    "sliding_window_mla",
    "chunked_local_attention",
    "cross_attention",
    "encoder_only_attention",
)
"""Kinds in which it never holds more than ``blocks_per_request``. Kinds are those of vLLM 0.24 and 0.32, without that
which vLLM itself calls unknown."""


@gate(version=1, reads=["engine", "prompts"], role="validity")
def kv_fit(evidence: Evidence) -> Checks:
    """The sequences that are active at once fit, by tokens and, where the engine shows its cache groups, by blocks.

    Study A counts tokens: sequences times the longest prompt with its reserve, in whole blocks. On a hybrid model that
    overstates what fits, since every group draws blocks from one pool (vllm-project/vllm#54458), of which one is
    reserved for ever (vllm-project/vllm#47272). Live numbers only; where there are both, both have to hold.
    """
    plan, facts, prompts = evidence.plan, evidence.engine or UNKNOWN_FACTS, evidence.prompt_tokens or {}
    cache, active = facts.kv_cache or {}, plan.active_sequences(facts.scheduler)
    longest = max(prompts.values(), default=0)
    tokens = longest + plan.reserve_tokens if len(prompts) == len(plan.task_ids) else None
    if cache.get("groups") is None or cache.get("kv_cache_size_tokens") is not None:
        yield _token_rule(cache, active, tokens)
    if cache.get("groups") is not None:
        yield _block_ledger(cache, active, tokens, count_of(facts.scheduler, "max_num_batched_tokens"))


def _token_rule(cache: JSON, active: int | None, tokens: int | None) -> Check:
    block, live = count_of(cache, "block_size", at_least=1), count_of(cache, "kv_cache_size_tokens")
    if active is None or tokens is None or block is None or live is None:
        return Check("required_tokens", None, "<=", live, note="prompts, width, block size or cache size unknown")
    required, whole = active * _blocks(tokens, block) * block, live // block * block
    margins = f"margin {whole - required} tokens in whole blocks, {live - required} by plain subtraction"
    note = f"{active} sequences of {tokens} tokens, blocks of {block}; {margins}"
    return Check("required_tokens", required, "<=", whole, note=note)


def _block_ledger(cache: JSON, active: int | None, tokens: int | None, batched: int | None) -> Check:
    pool, reserved, groups = count_of(cache, "num_blocks"), count_of(cache, "reserved_blocks"), cache["groups"]
    usable = None if pool is None or reserved is None else pool - reserved
    held = [_held(group, tokens, batched) for group in groups] if isinstance(groups, list) else []
    if active is None or usable is None or not held or None in held:
        return Check("required_blocks", None, "<=", usable, note=f"width, pool or a group unknown: {held}")
    request = sum(blocks or 0 for blocks in held)
    parts = " + ".join(f"{blocks} {group['kind']}" for blocks, group in zip(held, groups, strict=True))
    note = f"{active} sequences of {parts} blocks; spare {usable - active * request}, room for {usable // request}"
    return Check("required_blocks", active * request, "<=", usable, note=note)


def _held(group: JSON, tokens: int | None, batched: int | None) -> int | None:
    """The most blocks of one cache group that one request holds at once; of a kind not listed here nothing is known."""
    if not isinstance(group, dict) or group.get("kind") not in (*GROWING, *BOUNDED):
        return None
    size, bound = count_of(group, "block_size", at_least=1), count_of(group, "blocks_per_request", at_least=1)
    grown = None if size is None or tokens is None else _blocks(tokens, size)
    if group["kind"] in GROWING:
        return grown
    window = count_of(group, "sliding_window", at_least=1)
    if bound is None and size is not None and window is not None and batched is not None:
        # What is batched is written before anything leaves the window, and the window begins inside a block.
        bound = _blocks(window - 1 + batched, size) + 1
    return bound if window is None or bound is None or grown is None else min(bound, grown)


def _blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)
