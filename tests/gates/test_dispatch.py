from typing import Any

import pytest

from gatepost.evidence import Plan, Record
from gatepost.reach import SampleSize

from .builders import checks, facts, gate, judge, outcomes, plan

NINETEEN = plan(task_ids=["t"], samples_per_task=48)


def step(mode: Any, tokens: Any, steps: Any, padded: Any = 48) -> dict[str, Any]:
    return {"mode": mode, "tokens": tokens, "padded_tokens": padded, "steps": steps}


def check(histogram: Any, limit: float = 0.05, *, registered: Plan = NINETEEN, **scheduler: Any) -> Any:
    record = Record(registered, scheduler={"max_num_seqs": 19, "dispatch": histogram, **scheduler})
    return checks(judge("dispatch", record, max_uncovered_step_share=limit))["uncovered_step_share"]


@pytest.mark.parametrize(
    ("histogram", "outcome", "k", "n"),
    [
        ([step("FULL", 19, 100)], "pass", 0, 100),
        ([step("FULL", 19, 95), step("NONE", 19, 5)], "pass", 5, 100),
        ([step("FULL", 19, 94), step("NONE", 19, 6)], "fail", 6, 100),
        ([step("FULL", 19, 94), step("PIECEWISE", 7, 6)], "fail", 6, 100),
        ([step("FULL", 19, 100), step("NONE", 20, 900)], "pass", 0, 100),  # with prompt ids: wider than decoding gets
        ([step("FULL", 16, 50), step("FULL", 19, 50), step("NONE", 1, 10)], "fail", 10, 110),
        ([step("NONE", 19, 100)], "fail", 100, 100),
    ],
)
def test_the_share_of_steps_without_a_full_graph(histogram: Any, outcome: str, k: int, n: int) -> None:
    found = check(histogram)
    assert (found.outcome, found.k, found.n) == (outcome, k, n)


def test_speculation_widens_decoding() -> None:
    histogram = [step("FULL", 19, 95), step("NONE", 38, 5), step("NONE", 39, 5)]
    assert check(histogram).n == 95
    assert check(histogram, speculative_tokens=1).n == 100


def test_where_the_width_is_unknown_every_step_counts() -> None:
    assert check([step("FULL", 19, 95), step("NONE", 20, 5)], max_num_seqs=None).n == 100


def test_the_note_counts_steps_by_mode() -> None:
    histogram = [step("FULL", 19, 90), step("FULL", 8, 6), step("PIECEWISE", 3, 3), step("NONE", 2, 1)]
    assert check(histogram).note == "FULL 96, NONE 1, PIECEWISE 3"


@pytest.mark.parametrize(
    "histogram",
    [
        None,
        [],
        {},
        [step("NONE", 4096, 3, 4096)],  # nothing but prompts
    ],
)
def test_no_histogram_of_decode_steps_is_inconclusive(histogram: Any) -> None:
    found = check(histogram)
    assert (found.outcome, found.note) == ("inconclusive", "no histogram of steps")
    record = Record(NINETEEN)
    assert judge("dispatch", record, max_uncovered_step_share=1.0).outcome == "inconclusive"


@pytest.mark.parametrize(
    "entry",
    [
        *[
            {name: value for name, value in step("FULL", 19, 9).items() if name != left_out}
            for left_out in step(0, 0, 0)
        ],
        *[step("FULL", 19, steps) for steps in (None, "9", 9.0, True, -1, 0)],
        *[step("FULL", tokens, 9) for tokens in (None, "19", 19.0, True, -5, 0)],
        *[step("FULL", 19, 9, padded) for padded in (None, "19", 19.0, True, -5, 0, 18)],
        *[step(mode, 19, 9) for mode in (None, "full", "FULL_DECODE_ONLY", "", 2, ["FULL"])],
        step("NONE", 4096, None, 4096),  # with prompt ids, and yet part of what was counted
        "FULL",
        None,
        1,
        ["FULL", 19, 19, 9],
    ],
)
def test_one_entry_that_is_none_makes_all_unknown(entry: Any) -> None:
    """Entries that cannot be read would otherwise make the share smaller."""
    good = [step("FULL", 19, 100)]
    assert check(good, 1.0).outcome == "pass"
    for histogram in ([entry], [*good, entry], [entry, *good]):
        found = check(histogram, 1.0)
        assert (found.outcome, found.n) == ("inconclusive", None)
        assert "no entry of a histogram" in found.note


def test_the_note_tells_an_entry_in_one_order() -> None:
    """A live run has the engine's order, a replay that of the file."""
    entry = {"steps": 9, "mode": "full", "tokens": 19}
    assert check([entry]).note == "no entry of a histogram: mode 'full', tokens 19, padded_tokens None, steps 9"
    assert check([7]).note == "7 is no entry of a histogram"


@pytest.mark.parametrize("padded", [19, 20])
def test_a_step_is_padded_to_its_own_width_or_more(padded: int) -> None:
    assert check([step("FULL", 19, 9, padded)]).outcome == "pass"


@pytest.mark.parametrize(
    ("registered", "live", "n"),
    [
        ({"max_num_seqs": 19}, {"max_num_seqs": 19}, 100),
        ({"max_num_seqs": 19}, {"max_num_seqs": 2}, 100),  # would make prompts of all that decode
        ({"max_num_seqs": 19}, {"max_num_seqs": 18}, 100),
        ({"max_num_seqs": 18}, {"max_num_seqs": 18}, 95),
        ({"max_num_seqs": 2}, {"max_num_seqs": 19}, 100),
        ({"max_num_seqs": 99}, {"max_num_seqs": 19}, 110),  # as wide as there are rows
        ({}, {"max_num_seqs": 18}, 95),
        ({"max_num_seqs": 10, "speculative_config": {"num_speculative_tokens": 1}}, {"speculative_tokens": 0}, 110),
        ({"max_num_seqs": 9, "speculative_config": {"num_speculative_tokens": 1}}, {"max_num_seqs": 9}, 95),
    ],
)
def test_a_step_is_as_narrow_as_registered(registered: dict[str, Any], live: dict[str, Any], n: int) -> None:
    known = plan(task_ids=["t"], samples_per_task=48, options=registered)
    histogram = [step("FULL", 8, 95), step("NONE", 19, 5), step("NONE", 20, 10), step("NONE", 49, 1, 49)]
    assert check(histogram, registered=known, **live).n == n


COUNTED = [step("FULL", 19, 95), step("FULL", 4, 3), step("NONE", 300, 2, 300)]
"""100 forward calls with 2417 ids."""


@pytest.mark.parametrize(
    ("counters", "odd"),
    [
        ({}, {}),
        ({"steps": None, "sampled_tokens": None}, {}),
        ({"steps": 100, "sampled_tokens": 1800}, {}),
        ({"steps": 101}, {}),  # a step in which nothing could be scheduled
        ({"steps": 99}, {"histogram_steps": "fail"}),
        ({"steps": 99, "data_parallel_size": 1}, {"histogram_steps": "fail"}),
        ({"steps": 99, "data_parallel_size": 2}, {}),  # asked again once the ranks agree
        ({"steps": "100"}, {"histogram_steps": "inconclusive"}),
        ({"steps": -1}, {"histogram_steps": "inconclusive"}),
        ({"sampled_tokens": 2417}, {}),
        ({"sampled_tokens": 2418}, {"histogram_tokens": "fail"}),
        ({"sampled_tokens": 2417.0}, {"histogram_tokens": "inconclusive"}),
        ({"steps": 1, "sampled_tokens": 9999}, {"histogram_steps": "fail", "histogram_tokens": "fail"}),
    ],
)
def test_the_histogram_agrees_with_the_other_counters(counters: dict[str, Any], odd: dict[str, str]) -> None:
    record = Record(NINETEEN, scheduler={"max_num_seqs": 19, "dispatch": COUNTED, **counters})
    found = judge("dispatch", record, max_uncovered_step_share=0.05)
    assert outcomes(found) == {"uncovered_step_share": "pass", **odd}


@pytest.mark.parametrize(("shares", "odd"), [(False, {"histogram_steps"}), (None, {"histogram_steps"}), (True, set())])
def test_layers_that_share_caches_ask_twice(shares: bool | None, odd: set[str]) -> None:
    known = plan(task_ids=["t"], samples_per_task=48, options={"kv_sharing_fast_prefill": shares})
    record = Record(known, scheduler={"max_num_seqs": 19, "dispatch": COUNTED, "steps": 99})
    assert outcomes(judge("dispatch", record, max_uncovered_step_share=0.05)).keys() - {"uncovered_step_share"} == odd


@pytest.mark.parametrize(
    ("sizes", "padded", "observed"),
    [
        ([1, 2, 4, 8, 16, 19], [(19, 19), (5, 8)], None),
        ([1, 2, 4, 8, 16], [(19, 19), (5, 8)], [19]),
        ([1, 2, 4, 8, 16, 19], [(19, 19), (5, 5), (3, 3)], [3, 5]),
        ([], [(19, 19)], [19]),
        (None, [(19, 19)], None),
        ("19", [(19, 19)], None),
    ],
)
def test_a_full_graph_is_one_that_was_captured(sizes: Any, padded: list[tuple[int, int]], observed: Any) -> None:
    histogram = [*(step("FULL", tokens, 50, size) for tokens, size in padded), step("NONE", 7, 1, 7)]
    engine = facts(cuda_graphs={"resolved_capture_sizes": sizes})
    record = Record(NINETEEN, engine, scheduler={"max_num_seqs": 19, "dispatch": histogram})
    found = checks(judge("dispatch", record, max_uncovered_step_share=0.05))
    assert found["uncovered_step_share"].outcome == "pass"
    odd = found.get("full_sizes_not_captured")
    assert (odd and (odd.observed, odd.outcome)) == (observed and (observed, "fail"))


@pytest.mark.parametrize(
    ("limit", "meets", "misses"),
    [(-0.1, False, True), (0.0, True, True), (0.05, True, True), (0.999, True, True), (1.0, True, False)],
)
def test_reach(limit: float, meets: bool, misses: bool) -> None:
    reach = gate("dispatch").reach
    assert reach is not None
    (found,) = reach(SampleSize(12, 4), max_uncovered_step_share=limit)
    assert (found.minimum, found.meets, found.misses) == (None, meets, misses)
