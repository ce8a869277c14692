"""Cases b1, b2 and b5: tokens and blocks, blocks per group, the reserved block, and the two published rungs."""

from typing import Any

import pytest

from gatepost.engine import Prompt
from gatepost.evidence import Record
from gatepost.stages import Scope

from .builders import checks, facts, judge, outcomes, plan

ATTENTION = {"kind": "full_attention", "block_size": 16, "layers": 8, "blocks_per_request": None}


def mamba(blocks: int | None, block_size: int = 16) -> dict[str, Any]:
    return {"kind": "mamba", "block_size": block_size, "layers": 8, "blocks_per_request": blocks}


def record(
    cache: dict[str, Any] | None,
    *,
    tokens: int = 80,
    rows: int = 4,
    max_num_seqs: int | None = 3,
    batched: int | None = None,
    **registered: Any,
) -> Record:
    """``rows`` samples of one prompt, each ``tokens`` long at most: 10 of prompt, 4 of answer, thinking between."""
    cap = tokens - 14
    known = plan(task_ids=["t"], samples_per_task=rows, caps=(cap,), cap=cap, scope=Scope.RUNG, **registered)
    scheduler = {"max_num_seqs": max_num_seqs, "max_num_batched_tokens": batched}
    return Record(known, facts(kv_cache=cache, scheduler=scheduler), prompts=(Prompt("t", "", (1,) * 10),))


def pool(num_blocks: int, *groups: dict[str, Any], reserved: int | None = 1) -> dict[str, Any]:
    return {"block_size": 16, "num_blocks": num_blocks, "reserved_blocks": reserved, "groups": list(groups)}


@pytest.mark.parametrize(
    ("cap", "width", "live", "required", "whole", "plain"),
    [(49_152, 19, 996_864, 963_072, 33_792, 33_792), (61_440, 15, 997_888, 950_400, 46_992, 47_488)],
)
def test_the_published_rungs(cap: int, width: int, live: int, required: int, whole: int, plain: int) -> None:
    tasks = [f"t{index}" for index in range(12)]
    registered = plan(
        task_ids=tasks,
        samples_per_task=4,
        caps=(cap,),
        cap=cap,
        scope=Scope.RUNG,
        thinking="force_close",
        max_answer_tokens=512,
    )
    prompts = tuple(Prompt(task, "", (1,) * (990 - index)) for index, task in enumerate(tasks))
    known = facts(kv_cache={"block_size": 528, "kv_cache_size_tokens": live}, scheduler={"max_num_seqs": width})
    check = checks(judge("kv_fit", Record(registered, known, prompts=prompts)))["required_tokens"]
    assert (check.outcome, check.observed, check.limit) == ("pass", required, live // 528 * 528)
    assert f"margin {whole} tokens in whole blocks, {plain} by plain subtraction" in (check.note or "")


@pytest.mark.parametrize(
    ("size", "outcome", "margin"),
    [(240, "pass", "margin 0"), (239, "fail", "margin -16"), (255, "pass", "margin 0"), (256, "pass", "margin 16")],
)
def test_both_sides_of_the_token_rule(size: int, outcome: str, margin: str) -> None:
    check = checks(judge("kv_fit", record({"block_size": 16, "kv_cache_size_tokens": size})))["required_tokens"]
    assert (check.outcome, check.observed) == (outcome, 3 * 80)
    assert margin in (check.note or "")


@pytest.mark.parametrize(
    ("rows", "max_num_seqs", "tokens", "required"),
    [(4, 3, 80, 240), (2, 3, 80, 160), (3, 3, 80, 240), (4, 3, 81, 288), (4, 3, 65, 240), (4, 3, 64, 192)],
)
def test_the_width_is_that_of_rows_or_of_the_scheduler(
    rows: int, max_num_seqs: int, tokens: int, required: int
) -> None:
    cache = {"block_size": 16, "kv_cache_size_tokens": 300}
    verdict = judge("kv_fit", record(cache, tokens=tokens, rows=rows, max_num_seqs=max_num_seqs))
    assert checks(verdict)["required_tokens"].observed == required


@pytest.mark.parametrize(
    ("num_blocks", "tokens", "width", "outcome", "needed", "spare"),
    [
        (128, 2048, 1, "fail", 128, -1),  # a pool of exactly the needed size never schedules it: one block is reserved
        (129, 2048, 1, "pass", 128, 0),
        (128, 2032, 1, "pass", 127, 0),
        (14, 80, 3, "fail", 15, -2),  # the prompts fit, the answers grow over a border
        (16, 80, 3, "pass", 15, 0),
        (15, 80, 3, "fail", 15, -1),
    ],
)
def test_one_block_is_reserved(num_blocks: int, tokens: int, width: int, outcome: str, needed: int, spare: int) -> None:
    verdict = judge("kv_fit", record(pool(num_blocks, ATTENTION), tokens=tokens, max_num_seqs=width))
    check = checks(verdict)["required_blocks"]
    assert (verdict.outcome, check.observed, check.limit) == (outcome, needed, num_blocks - 1)
    assert f"spare {spare}, " in (check.note or "")


HYBRID = [{**ATTENTION, "block_size": 528}, *[mamba(2, 528)] * 3]


@pytest.mark.parametrize(
    ("width", "size_tokens", "failing"),
    [
        (11, None, {"required_blocks"}),
        (10, None, set()),
        (11, 232_848, {"required_blocks"}),  # blocks times block size: the proxy passes, the groups do not fit
        (11, 200_454, {"required_blocks", "required_tokens"}),
        (10, 200_454, {"required_tokens"}),  # the stricter decides
        (9, 200_454, set()),
    ],
)
def test_every_group_of_a_hybrid_takes_blocks(width: int, size_tokens: int | None, failing: set[str]) -> None:
    cache = {**pool(441, *HYBRID), "block_size": 528, "kv_cache_size_tokens": size_tokens}
    verdict = judge("kv_fit", record(cache, tokens=20_000, rows=12, max_num_seqs=width))
    check = checks(verdict)["required_blocks"]
    assert {name for name, outcome in outcomes(verdict).items() if outcome == "fail"} == failing
    assert (check.observed, check.limit) == (width * 44, 440)
    assert check.note == (
        f"{width} sequences of 38 full_attention + 2 mamba + 2 mamba + 2 mamba blocks; "
        f"spare {440 - width * 44}, room for 10"
    )


@pytest.mark.parametrize(
    ("block_size", "num_blocks", "tokens", "request_blocks", "room"),
    [(400, 200, 400, 4, 49), (400, 200, 8000, 23, 8), (784, 204, 400, 4, 50), (784, 204, 8000, 14, 14)],
    ids=["bf16 short", "bf16 long", "fp8 short", "fp8 long"],
)
def test_half_the_bytes_do_not_double_a_hybrid(
    block_size: int, num_blocks: int, tokens: int, request_blocks: int, room: int
) -> None:
    cache = pool(num_blocks, {**ATTENTION, "block_size": block_size}, *[mamba(1, block_size)] * 3)
    for width in (room, room + 1, 98):
        verdict = judge("kv_fit", record(cache, tokens=tokens, rows=98, max_num_seqs=width))
        check = checks(verdict)["required_blocks"]
        assert (check.observed, verdict.outcome) == (width * request_blocks, "pass" if width <= room else "fail")
        assert (check.note or "").endswith(f"room for {room}")


@pytest.mark.parametrize(
    ("group", "batched", "blocks"),
    [
        ({"kind": "full_attention", "block_size": 1}, None, 80),
        ({"kind": "full_attention", "block_size": 0}, None, None),
        ({"kind": "mla_attention", "block_size": 16}, None, 5),
        ({**ATTENTION, "blocks_per_request": 999}, None, 5),  # that of the longest request there can be
        (mamba(2), None, 2),
        ({"kind": "sliding_window", "block_size": 16, "sliding_window": 1}, 16, 2),  # 16 ids, the first inside a block
        ({"kind": "sliding_window", "block_size": 16, "sliding_window": 0}, 16, None),
        ({"kind": "sliding_window", "block_size": 16, "sliding_window": 17}, 16, 3),  # 32 ids across 3 blocks
        ({"kind": "sliding_window", "block_size": 16, "sliding_window": 18}, 16, 4),
        ({"kind": "sliding_window", "block_size": 16, "sliding_window": 4096}, 16, 5),  # no more than its tokens
        ({"kind": "sliding_window", "block_size": 16, "sliding_window": 4096, "blocks_per_request": 2}, None, 2),
        ({"kind": "sliding_window", "block_size": 16, "sliding_window": 17}, None, None),
        (mamba(None), None, None),
        ({**ATTENTION, "block_size": None}, None, None),
        ({**ATTENTION, "blocks_per_request": 1}, None, 5),
        ({"kind": "mla_attention", "block_size": 16, "blocks_per_request": 1}, None, 5),
        ({"kind": "sink_full_attention", "block_size": 16, "blocks_per_request": 1}, None, 5),
        ({"kind": "sliding_window_mla", "block_size": 16, "sliding_window": 17}, 16, 3),
        *[
            ({"kind": kind, "block_size": 16, "blocks_per_request": 2}, None, 2)
            for kind in ("mamba", "sliding_window", "sliding_window_mla", "chunked_local_attention", "cross_attention")
        ],
        ({"kind": "encoder_only_attention", "block_size": 16, "blocks_per_request": 2}, None, 2),
        *[
            ({"kind": kind, "block_size": 16, "blocks_per_request": 1}, None, None)
            for kind in ("chunked_attention", "new_attention", "unknown", "Mamba", "", None, 1, ["mamba"], {"a": 1})
        ],
        ({"kind": "new_attention", "block_size": 16}, None, None),
        ({"kind": "new_attention", "block_size": 16, "sliding_window": 17}, 16, None),
        ({"block_size": 16, "blocks_per_request": 2}, None, None),
        ("full_attention", None, None),
    ],
)
def test_what_a_request_holds_of_a_group(group: Any, batched: int | None, blocks: int | None) -> None:
    verdict = judge("kv_fit", record(pool(99, group), max_num_seqs=1, batched=batched))
    check = checks(verdict)["required_blocks"]
    assert (check.outcome, check.observed) == ("inconclusive" if blocks is None else "pass", blocks)


@pytest.mark.parametrize(
    "cache",
    [
        None,
        {},
        {"block_size": 16},
        {"kv_cache_size_tokens": 999},
        {"block_size": 0, "kv_cache_size_tokens": 999},
        {"block_size": "16", "kv_cache_size_tokens": 999},
        pool(99, ATTENTION, reserved=None),
        pool(99),
        {**pool(99, ATTENTION), "num_blocks": None},
        {**pool(99, ATTENTION), "groups": 3},
    ],
)
def test_an_unknown_cache_is_inconclusive(cache: dict[str, Any] | None) -> None:
    assert judge("kv_fit", record(cache)).outcome == "inconclusive"


def test_an_unknown_width_and_a_missing_prompt_are_inconclusive() -> None:
    cache = {"block_size": 16, "kv_cache_size_tokens": 999}
    assert judge("kv_fit", record(cache)).outcome == "pass"
    assert judge("kv_fit", record(cache, max_num_seqs=None)).outcome == "inconclusive"
    known = facts(kv_cache=cache, scheduler={"max_num_seqs": 1})
    assert judge("kv_fit", Record(plan(), known, prompts=(Prompt("t1", "", (1,)),))).outcome == "inconclusive"
