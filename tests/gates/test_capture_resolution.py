"""Cases a1, a4 and a5: lists that end below what was asked, ranks that share a mode, adapters that multiply graphs."""

from typing import Any

import pytest

from gatepost import registration
from gatepost.errors import RegistrationError
from gatepost.evidence import Record
from gatepost.gate import Gate
from gatepost.protocol import Protocol
from gatepost.registration import invalid_capture_sizes
from gatepost.stages import GateEntry, Scope
from gatepost.verdict import Verdict
from tests import protocols

from .builders import DIGEST, checks, facts, failed, judge, outcomes, plan

REGISTERED = [1, 2, 4, 8, 16, 19]
GRAPHS = {
    "requested_capture_sizes": REGISTERED,
    "requested_max": None,
    "resolved_capture_sizes": REGISTERED,
    "resolved_max": 19,
    "mode": "FULL_AND_PIECEWISE",
    "decode_mode": "FULL",
    "mixed_mode": "PIECEWISE",
    "adapter_cases": None,
}
RULES = {"capture_sizes", "largest_capture_size", "graph_mode", "decode_mode", "uncovered_decode_widths"}


def verdict(
    *,
    sizes: list[int] | None = REGISTERED,
    options: dict[str, Any] | None = None,
    width: int | None = 19,
    rows: int = 48,
    scheduler: dict[str, Any] | None = None,
    **graphs: Any,
) -> Verdict:
    """The verdict on an engine that resolved what study A registered, but for the changes."""
    registered = plan(
        task_ids=["t"], samples_per_task=rows, options={"cudagraph_capture_sizes": sizes, **(options or {})}
    )
    known = facts(cuda_graphs={**GRAPHS, **graphs}, scheduler={"max_num_seqs": width, **(scheduler or {})})
    return judge("capture_resolution", Record(registered, known))


def resolved(sizes: list[int]) -> dict[str, Any]:
    return {"resolved_capture_sizes": sizes, "resolved_max": max(sizes, default=0)}


@pytest.mark.parametrize("mode", ["FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"])
def test_exactly_the_registered_sizes_on_full_graphs_pass(mode: str) -> None:
    assert outcomes(verdict(mode=mode)) == dict.fromkeys(RULES, "pass")


@pytest.mark.parametrize(
    ("width", "asked", "registered", "live", "missing", "uncovered"),
    [
        (27, 27, None, [1, 2, 4, 8, 16, 24], [27], [25, 26, 27]),
        (27, None, [1, 2, 4, 8, 16, 24, 27], [1, 2, 4, 8, 16, 24], [27], [25, 26, 27]),
        (13, 13, None, [1, 2, 4, 8], [13], [9, 10, 11, 12, 13]),
        (19, 19, None, [1, 2, 4, 8, 16], [19], [17, 18, 19]),
        (15, 15, None, [1, 2, 4, 8], [15], [9, 10, 11, 12, 13, 14, 15]),
        (36, None, [1, 2, 4, 8, 16, 32, 48], [1, 2, 4, 8, 16, 32], [48], [33, 34, 35, 36]),
    ],
    ids=["scalar_27", "list_27", "scalar_13", "study_a_19", "study_a_15", "list_cut_by_batched_tokens"],
)
def test_a_list_that_ends_below_what_was_asked_fails(
    width: int,
    asked: int | None,
    registered: list[int] | None,
    live: list[int],
    missing: list[int],
    uncovered: list[int],
) -> None:
    found = verdict(
        sizes=registered,
        options={"max_cudagraph_capture_size": asked},
        width=width,
        requested_capture_sizes=registered,
        requested_max=asked,
        **resolved(live),
    )
    assert failed(found) == {"capture_sizes", "largest_capture_size", "uncovered_decode_widths"}
    assert checks(found)["uncovered_decode_widths"].observed == uncovered
    assert checks(found)["capture_sizes"].note == (
        f"requested {registered}, maximum {asked}; resolved {live}, maximum {max(live)}; missing {missing}"
    )


def test_a_maximum_alone_fails_even_where_it_happens_to_cover() -> None:
    found = verdict(sizes=None, options={"max_cudagraph_capture_size": 16}, width=16, **resolved([1, 2, 4, 8, 16]))
    assert failed(found) == {"capture_sizes"}


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        (resolved([1, 2, 4, 8, 16, 19, 24]), {"capture_sizes", "largest_capture_size"}),
        (resolved([1, 2, 4, 16, 19]), {"capture_sizes"}),
        ({"resolved_capture_sizes": REGISTERED[::-1]}, {"capture_sizes"}),
        ({"resolved_max": 16}, {"largest_capture_size"}),
        ({"mode": "PIECEWISE", "decode_mode": "PIECEWISE"}, {"graph_mode", "decode_mode"}),
        ({"mode": "FULL_AND_PIECEWISE", "decode_mode": "PIECEWISE"}, {"decode_mode"}),
        ({"mode": "FULL_AND_PIECEWISE", "decode_mode": "NONE"}, {"decode_mode"}),
        ({"mode": "full"}, {"graph_mode"}),
        ({"mode": "NONE", "decode_mode": "NONE", **resolved([])}, RULES),  # enforce_eager
        ({"uncovered_decode_widths": [18]}, {"uncovered_decode_widths"}),  # listed, and yet not captured
        ({"uncovered_decode_widths": [20]}, set()),  # wider than any step
    ],
)
def test_anything_else_fails(changes: dict[str, Any], broken: set[str]) -> None:
    assert failed(verdict(**changes)) == broken


@pytest.mark.parametrize(
    ("width", "rows", "speculated", "uncovered"),
    [
        (19, 48, None, []),
        (20, 48, None, [20]),
        (20, 19, None, []),  # no more rows than that are registered
        (20, 20, None, [20]),
        (9, 48, 1, []),  # 18 tokens a step
        (10, 48, 1, [20]),
        (6, 48, 2, []),
        (7, 48, 2, [21]),
        (8, 48, 2, [21, 24]),
    ],
)
def test_widths_are_those_of_a_step_in_tokens(
    width: int, rows: int, speculated: int | None, uncovered: list[int]
) -> None:
    live = {"scheduler": {"speculative_tokens": speculated or 0}}
    registered = {"options": {"speculative_config": speculated and {"num_speculative_tokens": speculated}}}
    for told in (live, registered):
        found = checks(verdict(width=width, rows=rows, **told))["uncovered_decode_widths"]
        assert (found.observed, found.outcome) == (uncovered, "fail" if uncovered else "pass")


@pytest.mark.parametrize(
    ("scheduler", "step_mode", "outcome"),
    [
        ({"data_parallel_size": 1}, None, "pass"),
        ({"data_parallel_size": 2}, None, "inconclusive"),
        ({"data_parallel_size": 2}, "FULL", "pass"),
        ({"data_parallel_size": 2}, "NONE", "fail"),  # one rank over the maximum takes the graph from all
    ],
)
def test_with_data_parallelism_the_mode_of_all_ranks_counts(
    scheduler: dict[str, Any], step_mode: str | None, outcome: str
) -> None:
    assert verdict(scheduler=scheduler, synchronised_step_mode=step_mode).outcome == outcome
    told = verdict(options=scheduler, synchronised_step_mode=step_mode)
    assert told.outcome == outcome


@pytest.mark.parametrize("size", [None, "2", "1", 1.0, 2.0, True, 0, -1, [2]])
def test_a_number_of_ranks_that_is_none_is_inconclusive(size: Any) -> None:
    assert outcomes(verdict()) == dict.fromkeys(RULES, "pass")
    odd = {**dict.fromkeys(RULES, "pass"), "data_parallel_size": "inconclusive"}
    assert outcomes(verdict(scheduler={"data_parallel_size": size}, synchronised_step_mode="FULL")) == odd
    registered = verdict(options={"data_parallel_size": size}, synchronised_step_mode="FULL")
    assert outcomes(registered) == (odd if size is not None else dict.fromkeys(RULES, "pass"))


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (None, "pass"),
        ([], "pass"),
        ([20], "pass"),
        ([3], "fail"),
        (["3"], "inconclusive"),
        ([3, "4"], "inconclusive"),
        ([20.0], "inconclusive"),
        ([True], "inconclusive"),
        ([None], "inconclusive"),
        ("unknown", "inconclusive"),
        ("", "inconclusive"),
        ({}, "inconclusive"),
        (0, "inconclusive"),
        (False, "inconclusive"),
    ],
)
def test_widths_that_cannot_be_read_are_inconclusive(told: Any, outcome: str) -> None:
    found = outcomes(verdict(uncovered_decode_widths=told))
    assert found == {**dict.fromkeys(RULES, "pass"), "uncovered_decode_widths": outcome}


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [([0, 6], "pass"), ([0, 1, 2, 4, 6], "pass"), ([0, 5], "pass"), ([0, 1, 2, 4], "fail"), (None, "inconclusive")],
)
def test_adapter_cases_stand_beside_the_sizes(cases: list[int] | None, outcome: str) -> None:
    found = verdict(options={"enable_lora": True, "max_loras": 5}, adapter_cases=cases)
    assert found.outcome == outcome
    note = checks(found)["largest_adapter_case"].note
    assert note == f"6 sizes for each of the cases {cases}; arms with and without adapters run different graphs"


@pytest.mark.parametrize("name", ["resolved_capture_sizes", "resolved_max", "mode", "decode_mode"])
def test_an_unknown_fact_is_inconclusive(name: str) -> None:
    assert verdict(**{name: None}).outcome == "inconclusive"


def test_without_any_size_no_width_is_covered() -> None:
    found = checks(verdict(width=2, **resolved([])))["uncovered_decode_widths"]
    assert (found.outcome, found.observed) == ("fail", [1, 2])


@pytest.mark.parametrize("scheduler", [{"max_num_seqs": None}, {"max_num_seqs": "19"}])
def test_an_unknown_width_is_inconclusive(scheduler: dict[str, Any]) -> None:
    assert verdict(scheduler=scheduler).outcome == "inconclusive"


@pytest.mark.parametrize(("cap", "outcome"), [(8, "fail"), (16, "pass")])
def test_the_list_is_that_of_the_rung_that_samples(cap: int, outcome: str) -> None:
    rungs = {8: {"cudagraph_capture_sizes": [1, 2, 4]}, 16: {"cudagraph_capture_sizes": REGISTERED}}
    registered = plan(options={"cudagraph_capture_sizes": [1]}, rung_options=rungs, scope=Scope.RUNG, cap=cap)
    known = facts(cuda_graphs=GRAPHS, scheduler={"max_num_seqs": 19})
    assert judge("capture_resolution", Record(registered, known)).outcome == outcome


@pytest.mark.parametrize(
    ("sizes", "valid"),
    [
        ([1], True),
        ([1, 2, 4, 8, 16, 19], True),
        ([16, 8, 8, 4, 1], False),
        ([1, 4, 8, 8, 16], False),
        ([1, 8, 4], False),
        ([0, 1], False),
        ([], False),
        ([1, 2.0], False),
        ([True, 2], False),
        ("1, 2", False),
    ],
)
def test_an_unsorted_list_cannot_be_registered(sizes: Any, valid: bool) -> None:
    assert (invalid_capture_sizes(sizes) is None) is valid


@pytest.mark.parametrize("where", ["engine.options", "rung 32: engine"])
def test_freezing_names_the_list(where: str) -> None:
    def never(entry: GateEntry) -> Gate:
        raise AssertionError(entry)

    draft = protocols.document(protocols.stage("s", "nested"))
    engine = draft["engine"]["options"] if where == "engine.options" else draft["rungs"][1]["engine"]
    engine["cudagraph_capture_sizes"] = [16, 8, 8, 4, 1]
    message = rf"{where}\.cudagraph_capture_sizes: \[16, 8, 8, 4, 1\], expected .* strictly ascending"
    with pytest.raises(RegistrationError, match=message):
        registration.check(Protocol.from_json(draft, digest=DIGEST), never, {})
