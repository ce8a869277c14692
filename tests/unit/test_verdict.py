import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost import jsonfile
from gatepost.verdict import Check, Outcome, Verdict, conjunction, every, share

PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], UNKNOWN),
        ([PASS], PASS),
        ([PASS, PASS], PASS),
        ([FAIL], FAIL),
        ([UNKNOWN], UNKNOWN),
        ([PASS, UNKNOWN], UNKNOWN),
        ([UNKNOWN, FAIL], FAIL),
        ([PASS, FAIL], FAIL),
        ([PASS, UNKNOWN, FAIL], FAIL),
    ],
)
def test_conjunction(outcomes: list[Outcome], expected: Outcome) -> None:
    assert conjunction(outcomes) is conjunction(reversed(outcomes)) is expected


@pytest.mark.parametrize(
    ("observed", "relation", "limit", "outcome"),
    [
        (1, "==", 1, PASS),
        (1, "==", 1.0, PASS),  # JSON has one kind of number
        (1, "==", 2, FAIL),
        ("a", "==", "a", PASS),
        ("1", "==", 1, FAIL),
        (True, "==", True, PASS),
        (True, "==", 1, FAIL),
        (0, "==", False, FAIL),
        ([1, 2], "==", [1, 2], PASS),
        ((1, 2), "==", [1, 2], PASS),
        ([2, 1], "==", [1, 2], FAIL),
        ([], "==", [], PASS),
        ({"a": 1}, "==", {"a": 1}, PASS),
        (0.8, ">=", 0.8, PASS),
        (math.nextafter(0.8, 0), ">=", 0.8, FAIL),
        (0.8, ">", 0.8, FAIL),
        (0.8, "<=", 0.8, PASS),
        (math.nextafter(0.8, 1), "<=", 0.8, FAIL),
        (0.8, "<", 0.8, FAIL),
        (1, "<", 2, PASS),
        (2**70, ">", 1.5, PASS),
        ("stop", "in", ["stop", "length"], PASS),
        ("sto", "in", ["stop", "length"], FAIL),
        (True, "in", [0, 1], FAIL),
        (3, "in", [], FAIL),
        ([1], "in", [[1], [2]], PASS),
    ],
)
def test_a_relation_holds_or_does_not(observed: Any, relation: str, limit: Any, outcome: Outcome) -> None:
    assert Check("x", observed, relation, limit).outcome is outcome


@pytest.mark.parametrize("relation", ["==", "<=", ">=", "<", ">", "in"])
@pytest.mark.parametrize(
    "unknown", [None, math.nan, math.inf, -math.inf, [None], [math.inf], {"a": math.nan}, [[1, None]]]
)
def test_what_is_unknown_or_not_finite_decides_nothing(relation: str, unknown: Any) -> None:
    assert Check("x", unknown, relation, [1] if relation == "in" else 1).outcome is UNKNOWN
    assert Check("x", 1, relation, unknown).outcome is UNKNOWN
    assert Check("x", unknown, relation, unknown).outcome is UNKNOWN


@pytest.mark.parametrize("relation", ["<=", ">=", "<", ">"])
@pytest.mark.parametrize(("observed", "limit"), [("9", 10), (9, "10"), ("a", "b"), (True, 0), (1, False), ([1], [0])])
def test_only_numbers_have_an_order(relation: str, observed: Any, limit: Any) -> None:
    assert Check("x", observed, relation, limit).outcome is UNKNOWN


@pytest.mark.parametrize("limit", ["stop or length", 3, {"stop": 1}])
def test_membership_is_of_a_list(limit: Any) -> None:
    assert Check("x", "stop", "in", limit).outcome is UNKNOWN


@pytest.mark.parametrize("relation", ["=", "!=", "not in", ""])
def test_an_unknown_relation_is_a_mistake_of_the_gate(relation: str) -> None:
    with pytest.raises(ValueError, match="relation"):
        Check("x", 1, relation, 1)


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (Check("rate", 0.8125, ">=", 0.8, 39, 48), "rate 0.8125 >= 0.8 (39/48)"),
        (Check("rate", None, ">=", 0.8, None, 0, "empty sample"), "rate unknown >= 0.8 (None/0): empty sample"),
        (Check("device", "cpu", "==", "cpu"), "device cpu == cpu"),
        (Check("rate", 1 / 3, "<", 0.5), "rate 0.333333 < 0.5"),
    ],
)
def test_one_line_per_check(check: Check, line: str) -> None:
    assert str(check) == line


@pytest.mark.parametrize(
    ("k", "n", "observed", "note"),
    [(39, 48, 0.8125, None), (0, 48, 0.0, None), (0, 0, None, "empty sample"), (None, 48, None, "not recorded")],
)
def test_share(k: int | None, n: int, observed: float | None, note: str | None) -> None:
    check = share("rate", k, n, ">=", 0.0)
    assert (check.observed, check.note) == (observed, note)
    assert check.outcome is (UNKNOWN if observed is None else PASS)


@pytest.mark.parametrize(
    ("items", "outcome", "note"),
    [
        ([2, 4], PASS, None),
        ([2, 3, 5], FAIL, "first: 3"),
        ([1, 2, 3, 4], FAIL, "first: 1"),
        ([], UNKNOWN, "empty sample"),
    ],
)
def test_every(items: list[int], outcome: Outcome, note: str | None) -> None:
    check = every("even", items, lambda item: item % 2 == 0)
    assert (check.outcome, check.k, check.n, check.note) == (outcome, sum(i % 2 == 0 for i in items), len(items), note)


scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e9, 1e9) | st.text()


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=3)
    return lists | lists.map(tuple) | st.dictionaries(st.text(), inner, max_size=3)


values = st.recursive(scalars, containers, max_leaves=6)
checks = st.builds(
    Check,
    name=st.text(),
    observed=values,
    relation=st.sampled_from(["==", "<=", ">=", "<", ">", "in"]),
    limit=values,
    k=st.none() | st.integers(0, 99),
    n=st.none() | st.integers(0, 99),
    note=st.none() | st.text(),
)


@given(st.lists(checks, max_size=4))
def test_a_verdict_read_back_is_the_verdict(found: list[Check]) -> None:
    verdict = Verdict("gate", 1, "adequacy", tuple(found))
    stored = jsonfile.loads(jsonfile.canonical(verdict.to_json()), source="test")
    again = Verdict.from_json(stored)
    assert again == verdict
    assert again.outcome is verdict.outcome
    assert [check["outcome"] for check in stored["checks"]] == [str(check.outcome) for check in found]
