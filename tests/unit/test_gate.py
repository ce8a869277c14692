from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost import gate as api
from gatepost.absence import AbsentRows
from gatepost.errors import RegistrationError, UserCodeError
from gatepost.evidence import Record, UndeclaredChannelError
from gatepost.gate import Check, Checks, Evidence, SampleSize, counts_in_band, gate, maximum_count, minimum_count
from gatepost.verdict import Outcome
from tests.gates.builders import plan


@gate(version=2, reads=["engine"], role="validity")
def example(evidence: Evidence, *, min_rate: float, max_rows: int, method: str, strict: bool) -> Checks:
    yield Check("rate", min_rate, ">=", 0.5)


GIVEN: dict[str, Any] = {"min_rate": 0.5, "max_rows": 3, "method": "wilson", "strict": True}


def test_the_signature_is_the_threshold_contract() -> None:
    assert (example.name, example.version, example.role) == ("example", 2, "validity")
    assert example.thresholds == ("min_rate", "max_rows", "method", "strict")
    example.require_thresholds(GIVEN, where="stage s")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_rows": ...}, "stage s: missing max_rows; found method, min_rate, strict, expected min_rate, max_rows"),
        ({"min_rat": 0.5}, "stage s: unknown min_rat; found"),
        ({"min_rate": ..., "min_rat": 0.5}, "missing min_rate and unknown min_rat"),
        (dict.fromkeys(GIVEN, ...), "found none, expected min_rate"),
        ({"min_rate": "0.5"}, "min_rate is '0.5', expected float"),
        ({"min_rate": None}, "min_rate is None, expected float"),
        ({"min_rate": True}, "min_rate is True, expected float"),
        ({"max_rows": 3.5}, "max_rows is 3.5, expected int"),
        ({"max_rows": False}, "max_rows is False, expected int"),
        ({"method": 1}, "method is 1, expected str"),
        ({"strict": 1}, "strict is 1, expected bool"),
    ],
)
def test_thresholds_too_many_too_few_or_of_another_type_are_refused(change: dict[str, Any], message: str) -> None:
    thresholds = {name: value for name, value in {**GIVEN, **change}.items() if value is not ...}
    with pytest.raises(RegistrationError, match=message):
        example.require_thresholds(thresholds, where="stage s")


def test_a_gate_without_thresholds_takes_none() -> None:
    @gate(version=1, reads=[])
    def plain(evidence: Evidence) -> Checks:
        return []

    with pytest.raises(RegistrationError, match=r"^stage s: unknown a, b; found a, b, expected none$"):
        plain.require_thresholds({"b": 1, "a": 2}, where="stage s")


def test_a_whole_number_is_a_rate() -> None:
    example.require_thresholds({**GIVEN, "min_rate": 1}, where="stage s")


def test_judging_gives_a_verdict() -> None:
    verdict = example.judge(Record(plan()), GIVEN)
    assert (verdict.gate, verdict.version, verdict.role, verdict.outcome) == ("example", 2, "validity", Outcome.PASS)


def test_a_gate_without_checks_is_inconclusive() -> None:
    @gate(version=1, reads=[])
    def silent(evidence: Evidence) -> Checks:
        return []

    assert silent.judge(Record(plan()), {}).outcome is Outcome.INCONCLUSIVE


def test_a_gate_cannot_read_what_it_did_not_declare() -> None:
    @gate(version=1, reads=["completions"])
    def nosy(evidence: Evidence) -> Checks:
        yield Check("grades", len(evidence.grades or ()), "==", 0)

    with pytest.raises(UndeclaredChannelError, match="gate nosy reads channel 'grades' but declares completions"):
        nosy.judge(Record(plan()), {})


@pytest.mark.parametrize(
    ("cap", "fixed", "doing"), [(16, None, "judging stage stage at 16"), (None, 8, "judging stage stage$")]
)
def test_a_gate_that_raises_is_blamed_with_what_it_was_doing(cap: int | None, fixed: int | None, doing: str) -> None:
    @gate(version=3, reads=[])
    def broken(evidence: Evidence) -> Checks:
        raise ZeroDivisionError("by zero")

    with pytest.raises(UserCodeError, match=doing.rstrip("$")) as caught:
        broken.judge(Record(plan(cap=cap, fixed_cap=fixed)), {})
    assert "gate broken (version 3, " in str(caught.value)
    assert (" at 16" in str(caught.value)) is (cap == 16)


@pytest.mark.parametrize(
    ("reads", "note", "expected"),
    [
        (["token_ids"], None, "{absent}"),
        (["token_ids"], "why", "why: {absent}"),
        (["completions", "engine"], None, "{absent}"),
        (["engine"], None, None),
        (["engine"], "why", "why"),
    ],
)
def test_an_open_check_names_rows_that_lie_elsewhere_if_its_gate_reads_rows(
    reads: list[str], note: str | None, expected: str | None
) -> None:
    @gate(version=1, reads=reads)
    def asks(evidence: Evidence) -> Checks:
        yield Check("open", None, "==", 1, note=note)
        yield Check("closed", 1, "==", 1, note=note)

    absent = AbsentRows("a/rows.jsonl", 12, "0" * 64, 4, {})
    judged = asks.judge(Record(plan(), absent_rows=absent), {})
    assert [check.note for check in judged.checks] == [expected and expected.format(absent=absent), note]


def test_every_name_of_the_gate_api_is_there() -> None:
    assert sorted(api.__all__) == sorted(set(api.__all__))
    assert [name for name in api.__all__ if not hasattr(api, name)] == []


@pytest.mark.parametrize(
    ("reads", "content", "before"),
    [
        ([], False, True),
        (["engine", "prompts", "tasks"], False, True),
        (["engine", "completions"], False, False),
        (["token_ids"], False, False),
        (["scheduler"], False, False),
        (["grades"], True, False),
        (["text"], True, False),
    ],
)
def test_channels_say_when_a_gate_can_judge_and_whether_blind(reads: list[str], content: bool, before: bool) -> None:
    @gate(version=1, reads=reads)
    def any_gate(evidence: Evidence) -> Checks:
        return []

    assert (any_gate.reads_content, any_gate.before_generation) == (content, before)


def with_default(evidence: Evidence, *, min_rate: float = 0.8) -> Checks:
    return []


def positional(evidence: Evidence, min_rate: float) -> Checks:
    return []


def anything(evidence: Evidence, **thresholds: float) -> Checks:
    return []


@pytest.mark.parametrize("function", [with_default, positional, anything])
def test_a_threshold_is_keyword_only_and_has_no_default(function: Any) -> None:
    with pytest.raises(TypeError, match="must be keyword-only and without a default"):
        gate(version=1, reads=[])(function)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [({"reads": ["ids"]}, "unknown channel ids"), ({"reads": [], "role": "advisory"}, "role 'advisory'")],
)
def test_a_wrong_declaration_is_refused(declaration: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gate(version=1, **declaration)(lambda evidence: [])


@given(st.integers(0, 60), st.integers(-2, 63))
def test_minimum_count(of: int, limit: int) -> None:
    passing = [count for count in range(of + 1) if count >= limit]
    found = minimum_count("x", of, lambda count: count >= limit)
    assert found.minimum == min(passing, default=None)
    assert (found.meets, found.misses) == (bool(passing), len(passing) < of + 1)


@given(st.integers(0, 60), st.integers(-2, 63))
def test_maximum_count(of: int, limit: int) -> None:
    passing = [count for count in range(of + 1) if count <= limit]
    found = maximum_count("x", of, lambda count: count <= limit)
    assert found.minimum == max(passing, default=None)
    assert (found.meets, found.misses) == (bool(passing), len(passing) < of + 1)


@given(st.integers(0, 60), st.floats(-0.2, 1.2), st.floats(-0.2, 1.2))
def test_counts_in_band(of: int, low: float, high: float) -> None:
    assert list(counts_in_band(of, low, high)) == [count for count in range(of + 1) if of and low <= count / of <= high]


def test_evidence_that_is_not_at_hand_leaves_a_verdict_without_checks() -> None:
    @gate(version=4, reads=["text"], role="validity")
    def reads_text(evidence: Evidence) -> Checks:
        yield Check("before", 1, "==", 1)
        yield Check("texts", len(evidence.text or ()), ">=", 1)

    verdict = reads_text.judge(Record(plan(), elsewhere={"text": "text.parquet is not here"}), {})
    assert (verdict.gate, verdict.version, verdict.role, verdict.checks, verdict.elsewhere) == (
        "reads_text", 4, "validity", (), "text.parquet is not here",
    )  # fmt: skip
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_reach_that_yields_anything_else_is_blamed_with_where_it_was_asked() -> None:
    @gate(version=1, reads=["completions"], reach=lambda size: ["no reach"])  # type: ignore[arg-type, list-item]
    def reaching(evidence: Evidence) -> Checks:
        return []

    with pytest.raises(UserCodeError, match=r"reach of gate reaching .*freezing stage s"):
        reaching.reaches(SampleSize(2, 2), {}, where="freezing stage s")
