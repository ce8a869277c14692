"""Which sample is chosen, and what its grade is, without any file."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gatepost.fingerprint import RowKey
from gatepost.scoring import Choice, choose, grade
from tests.gates.builders import plan

STAGE = replace(plan().stage, name="base", arm="plain")
TASKS: dict[str, dict[str, Any]] = {
    name: {"task_id": name, "visible": 5, "hidden": "right"} for name in ("first", "second")
}


class Words:
    """A domain of words: as many visible examples are met as the word has letters, up to the task's limit."""

    VISIBLE_FIELDS = ("visible", "library")

    @staticmethod
    def parse(text: str) -> str | None:
        return text.strip() or None

    @staticmethod
    def visible_score(task: Mapping[str, Any], parsed: str) -> int:
        assert set(task) == {"visible"}, "a declared field that a task does not have is no field"
        return min(len(parsed), task["visible"])

    @staticmethod
    def grade(task: Mapping[str, Any], parsed: str) -> bool:
        return bool(parsed == task["hidden"])

    @staticmethod
    def is_valid(task: Mapping[str, Any], parsed: str, arm: str | None) -> bool:
        return arm == "plain" and parsed.isalpha()

    @staticmethod
    def traits(task: Mapping[str, Any], parsed: str, arm: str | None) -> frozenset[str]:
        return frozenset({"long"}) if len(parsed) > 5 else frozenset()


def choices_of(*texts: str | None, task: str = "first") -> list[Choice]:
    answers = {RowKey(task, index): text for index, text in enumerate(texts)}
    return list(choose(STAGE, answers, TASKS, Words()))


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        (["ab", "abc", "a"], 1),
        (["abc", "ab", "xyz"], 0),  # the earliest of the best
        (["", "ab", "ab"], 1),  # what does not parse is not there
        ([None, " ", "a"], 2),
        (["abcde", "abcdef", "right"], 0),  # which of them is right is not looked at
        ([None, "", "  "], None),
    ],
)
def test_the_earliest_of_the_best_parsed_samples(texts: list[str | None], chosen: int | None) -> None:
    choices = choices_of(*texts)
    assert [choice.chosen for choice in choices] == [index == chosen for index in range(3)]
    assert [choice.parsed is None for choice in choices] == [choice.visible_score is None for choice in choices]


def test_the_order_of_the_rows_does_not_choose() -> None:
    answers: dict[RowKey, str | None] = {RowKey("first", index): text for index, text in ((2, "xy"), (0, "ab"))}
    assert [choice.chosen for choice in choose(STAGE, answers, TASKS, Words())] == [False, True]


def test_tasks_choose_apart() -> None:
    answers: dict[RowKey, str | None] = {RowKey(task, 0): text for task, text in (("first", "a"), ("second", "abc"))}
    assert all(choice.chosen for choice in choose(STAGE, answers, TASKS, Words()))


def test_every_sample_is_graded_chosen_or_not() -> None:
    scores = list(grade(choices_of("abcde", "right", "no way", None), TASKS, Words()))
    found = [(score.chosen, score.correct, score.valid, sorted(score.traits)) for score in scores]
    assert found == [
        (True, False, True, []),
        (False, True, True, []),
        (False, False, False, ["long"]),
        (False, False, False, []),
    ]
    assert {(score.stage, score.arm) for score in scores} == {("base", "plain")}
