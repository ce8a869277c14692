"""`gatepost.testing.build_record`: a record that gates take for a sound one, and that says what it was told."""

import pytest

from gatepost.gatefiles import Gates
from gatepost.testing import build_record
from gatepost.verdict import Verdict

GATES = Gates()


def verdict(name: str, *arguments: object, thresholds: dict[str, object] | None = None, **options: object) -> Verdict:
    gate = GATES.get(name, 1, where="test")
    gate.require_thresholds(thresholds or {}, where="test")  # type: ignore[arg-type]
    return gate.judge(build_record(*arguments, **options), thresholds or {})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cache_contract", "right_censoring", "seed_binding", "seeds", "token_accounting"])
def test_it_is_sound_to_gates_that_ask(name: str) -> None:
    made = verdict(name, [1, 8, 16, None], samples_per_task=2)
    assert made.checks
    assert made.outcome == "pass", made


@pytest.mark.parametrize(
    ("steps", "cap", "k"), [([1, 5, 8, None], 8, 3), ([16, None], 16, 1), ([1], 1, 1), ([None], 1, 0)]
)
def test_samples_close_where_they_are_said_to(steps: list[int | None], cap: int, k: int) -> None:
    (check,) = verdict("natural_close", steps, cap_tokens=cap, thresholds={"min_natural_close_rate": 0.5}).checks
    assert (check.k, check.n) == (k, len(steps))
    samples = build_record(steps, cap_tokens=cap).samples
    assert samples is not None
    assert [sample.own_close_step for sample in samples] == steps
    assert [sample.continuation.thinking_tokens for sample in samples] == [cap if s is None else s - 1 for s in steps]


def test_grades_are_what_is_said_and_without_them_there_are_none() -> None:
    thresholds: dict[str, object] = {"min_parse_rate": 0.5}
    (graded,) = verdict("parse_given_close", [2, 2, 2], correct=[True, False, None], thresholds=thresholds).checks
    assert (graded.k, graded.n) == (2, 3)
    assert verdict("parse_given_close", [2, 2, 2], thresholds=thresholds).outcome == "inconclusive"
    record = build_record([2, 2, 2], correct=[True, False, None])
    assert record.grades is not None
    assert [(grade.parsed, grade.correct) for grade in record.grades.values()] == [
        ("answer", True),
        ("answer", False),
        (None, False),
    ]


def test_tasks_have_as_many_samples_as_asked() -> None:
    record = build_record([3] * 6, samples_per_task=3)
    assert [tuple(key) for key in record.plan.keys] == [(f"task-{t}", k) for t in (0, 1) for k in (0, 1, 2)]


@pytest.mark.parametrize(
    ("steps", "options", "said"),
    [
        ([0], {}, "a close at id 0, expected one from 1 to the cap of 16"),
        ([17], {}, "a close at id 17"),
        ([9], {"cap_tokens": 8}, "a close at id 9, expected one from 1 to the cap of 8"),
        ([1, 2, 3], {"samples_per_task": 2}, "3 samples, expected a multiple of 2 a task"),
        ([1, 2], {"correct": [True]}, "shorter"),
    ],
)
def test_what_no_engine_could_give_is_refused(steps: list[int], options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        build_record(steps, **options)  # type: ignore[arg-type]
