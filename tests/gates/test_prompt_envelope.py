import pytest

from gatepost.engine import Prompt
from gatepost.evidence import Record
from gatepost.stages import Scope

from .builders import checks, facts, failed, judge, outcomes, plan

NAMES = ["longest_prompt_tokens", "longest_total_tokens", "longest_total_tokens_in_live_context"]


def record(lengths: dict[str, int], *, context: int | None = 30, **registered: object) -> Record:
    prompts = tuple(Prompt(name, "", (1,) * length) for name, length in lengths.items())
    return Record(plan(**registered), facts(max_model_len=context), prompts=prompts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lengths", "limits", "context", "broken"),
    [
        ({"t1": 10, "t2": 9}, (10, 30), 30, set()),  # 10 + 16 + 4 = 30: every boundary at once
        ({"t1": 9, "t2": 11}, (10, 31), 31, {NAMES[0]}),
        ({"t1": 10, "t2": 9}, (10, 29), 30, {NAMES[1]}),
        ({"t1": 10, "t2": 9}, (10, 30), 29, {NAMES[2]}),
        ({"t1": 11, "t2": 9}, (10, 30), 30, set(NAMES)),
        ({"t1": 10, "t2": 9, "t3": 99}, (10, 30), 30, set()),  # nobody registered it
    ],
)
def test_both_sides_of_every_boundary(
    lengths: dict[str, int], limits: tuple[int, int], context: int, broken: set[str]
) -> None:
    verdict = judge(
        "prompt_envelope", record(lengths, context=context), max_prompt_tokens=limits[0], max_total_tokens=limits[1]
    )
    assert failed(verdict) == broken
    assert verdict.outcome == ("fail" if broken else "pass")


@pytest.mark.parametrize(
    ("scope", "cap", "fixed_cap", "total"),
    [
        (Scope.NESTED, 8, None, 30),  # judged at 8, but sampled at 16
        (Scope.NESTED, 16, None, 30),
        (Scope.RUNG, 8, None, 22),
        (Scope.SELECTED, 16, None, 30),
        (Scope.ONCE, None, 2, 16),
    ],
)
def test_the_cap_is_the_one_that_is_sampled_under(
    scope: Scope, cap: int | None, fixed_cap: int | None, total: int
) -> None:
    shown = record({"t1": 10, "t2": 9}, scope=scope, cap=cap, fixed_cap=fixed_cap)
    verdict = judge("prompt_envelope", shown, max_prompt_tokens=10, max_total_tokens=30)
    assert checks(verdict)[NAMES[1]].observed == total


@pytest.mark.parametrize("lengths", [{}, {"t1": 10}, {"t1": 10, "t3": 9}])
def test_a_missing_prompt_may_be_the_longest(lengths: dict[str, int]) -> None:
    verdict = judge("prompt_envelope", record(lengths), max_prompt_tokens=10, max_total_tokens=30)
    assert outcomes(verdict) == dict.fromkeys(NAMES, "inconclusive")


def test_an_unknown_context_is_inconclusive() -> None:
    shown = record({"t1": 10, "t2": 9}, context=None)
    verdict = judge("prompt_envelope", shown, max_prompt_tokens=10, max_total_tokens=30)
    assert outcomes(verdict) == dict(zip(NAMES, ["pass", "pass", "inconclusive"], strict=True))


@pytest.mark.parametrize(("total", "broken"), [(32, set()), (31, {NAMES[1]})])
def test_an_injected_close_takes_room_too(total: int, broken: set[str]) -> None:
    shown = record({"t1": 10, "t2": 9}, context=32, thinking="force_close")  # 10 + 16 + 2 + 4
    verdict = judge("prompt_envelope", shown, max_prompt_tokens=10, max_total_tokens=total)
    assert failed(verdict) == broken
