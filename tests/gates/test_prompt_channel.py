import pytest

from gatepost.engine import Prompt
from gatepost.evidence import Record

from .builders import checks, judge, plan, prompts_of


@pytest.mark.parametrize(
    ("ids", "outcome"),
    [
        ([1, 7, 9], "pass"),
        ([7], "pass"),
        ([1, 9], "fail"),  # nothing opens
        ([1, 7, 9, 8, 9], "fail"),  # the template closed it: thinking is off
        ([1, 7, 9, 8, 7], "fail"),  # open at the end, but a close is in the way
        ([1, 8, 7], "fail"),
        ([7, 7], "fail"),  # a marker quoted in the task
        ([8], "fail"),
        ([], "fail"),
    ],
)
def test_one_open_and_no_close(ids: list[int], outcome: str) -> None:
    registered = plan()
    assert judge("prompt_channel", Record(registered, prompts=prompts_of(registered, ids))).outcome == outcome


@pytest.mark.parametrize(
    ("names", "k"),
    [
        (["t1", "t2"], 2),
        (["t2", "t1"], 2),
        (["t1", "t2", "t3"], 2),  # nobody registered it, so it is in no denominator
        (["t1"], 1),
        (["t1", "t1", "t2"], 1),
        (["T1", "t2"], 1),
        ([], 0),
    ],
)
def test_the_denominator_is_the_registered_tasks(names: list[str], k: int) -> None:
    record = Record(plan(), prompts=tuple(Prompt(name, "", (1, 7)) for name in names))
    check = checks(judge("prompt_channel", record))["prompts_that_leave_thinking_open"]
    assert (check.k, check.n, check.outcome) == (k, 2, "pass" if k == 2 else "fail")


def test_unrecorded_prompts_are_inconclusive() -> None:
    assert judge("prompt_channel", Record(plan())).outcome == "inconclusive"


@pytest.mark.parametrize(
    ("ids", "outcome"),
    [
        ([1, 7, 9, 8, 9], "pass"),
        ([7, 8], "pass"),
        ([1, 7, 9], "fail"),  # thinking is on
        ([1, 9], "fail"),  # nothing says that it is off
        ([7, 8, 7], "fail"),
        ([8, 7], "fail"),
        ([7, 8, 7, 8], "fail"),
        ([8], "fail"),
    ],
)
def test_without_thinking_the_prompt_closes_what_it_opens(ids: list[int], outcome: str) -> None:
    registered = plan(thinking="no_think")
    verdict = judge("prompt_channel", Record(registered, prompts=prompts_of(registered, ids)))
    assert checks(verdict)["prompts_that_close_thinking"].outcome == outcome
    assert judge("prompt_channel", Record(registered)).outcome == "inconclusive"


@pytest.mark.parametrize("thinking", ["force_close", "engine_budget"])
def test_other_policies_leave_thinking_open(thinking: str) -> None:
    registered = plan(thinking=thinking)
    assert judge("prompt_channel", Record(registered, prompts=prompts_of(registered))).outcome == "pass"
