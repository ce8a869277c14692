"""The gate on contrasts: each task sampled without the adapter, with it, and with it again, all under one seed."""

from collections.abc import Sequence
from typing import Any

import pytest

from gatepost.errors import RegistrationError
from gatepost.evidence import Record, Row
from gatepost.fingerprint import RowKey
from gatepost.reach import SampleSize

from .builders import ADAPTER_FILES, STOP, checks, facts, failed, forced, gate, judge, outcomes, plan, row

LIMITS = {"min_changed_task_share": 0.5, "max_repeat_changed_share": 0.25}
TASKS = ("t1", "t2", "t3", "t4")
SHARES = ("changed_task_share", "repeat_changed_share", "changed_beyond_repeats")


def registered(**changes: Any) -> Any:
    return plan(**{"task_ids": TASKS, "samples_per_task": 3, "adapter": "contrast", **changes})


def rows(contrasts: Sequence[str]) -> list[Row]:
    """Per task three letters: what came without, with, and with the adapter again; the same letter, the same ids."""
    return [
        row((task, index), [ord(letter), STOP])
        for task, letters in zip(TASKS, contrasts, strict=True)
        for index, letter in enumerate(letters)
    ]


def verdict(stored: Sequence[Row] | None, *, files: Any = ADAPTER_FILES, **changes: Any) -> Any:
    limits = {name: changes.pop(name, limit) for name, limit in LIMITS.items()}
    record = Record(registered(**changes), facts(adapter_files=files), rows=None if stored is None else tuple(stored))
    return judge("adapter_applied", record, **limits)


@pytest.mark.parametrize(
    ("contrasts", "counts", "fails"),
    [
        (["abb", "abb", "abb", "abb"], (4, 0), set()),
        (["abb", "abb", "aaa", "aaa"], (2, 0), set()),
        (["abb", "aaa", "aaa", "aaa"], (1, 0), {"changed_task_share"}),
        (["aaa", "aaa", "aaa", "aaa"], (0, 0), {"changed_task_share", "changed_beyond_repeats"}),
        (["abc", "abb", "aaa", "aaa"], (2, 1), set()),  # as much noise as is allowed
        (["abc", "abc", "abb", "abb"], (4, 2), {"repeat_changed_share"}),
        (["abc", "abc", "aaa", "aaa"], (2, 2), {"repeat_changed_share", "changed_beyond_repeats"}),
        (["aab", "aaa", "aaa", "aaa"], (0, 1), {"changed_task_share", "changed_beyond_repeats"}),
        (["aba", "aba", "aba", "aba"], (4, 4), {"repeat_changed_share", "changed_beyond_repeats"}),
    ],
)
def test_an_adapter_changes_more_than_a_repeat(contrasts: list[str], counts: tuple[int, int], fails: set[str]) -> None:
    found = verdict(rows(contrasts))
    assert (checks(found)["changed_task_share"].k, checks(found)["repeat_changed_share"].k) == counts
    assert (failed(found), str(found.outcome)) == (fails, "fail" if fails else "pass")


def test_noise_is_not_outweighed_by_lenient_limits() -> None:
    lenient = {"min_changed_task_share": 0.25, "max_repeat_changed_share": 0.75}
    assert failed(verdict(rows(["abc", "aaa", "aaa", "aaa"]), **lenient)) == {"changed_beyond_repeats"}
    assert failed(verdict(rows(["abc", "abb", "aaa", "aaa"]), **lenient)) == set()


@pytest.mark.parametrize("on", [[30], [30, 31, 31], [30, 32], []])
def test_one_id_more_less_or_other_is_a_change(on: list[int]) -> None:
    stored = [row((task, index), on if index else [30, 31]) for task in TASKS for index in range(3)]
    assert checks(verdict(stored))["changed_task_share"].k == 4


def test_an_answer_after_a_forced_close_counts_too() -> None:
    stored = [forced((task, index), [30] * 16, [51 if index else 50, STOP]) for task in TASKS for index in range(3)]
    assert verdict(stored, thinking="force_close").outcome == "pass"


@pytest.mark.parametrize("where", [0, 1, 2, 11])
@pytest.mark.parametrize("fault", ["missing", "twice", "aborted", "unfinished", "of another sample"])
def test_one_row_that_is_not_there_leaves_every_share_open(where: int, fault: str) -> None:
    stored = rows(["abb", "abb", "abb", "abb"])
    task, index = stored[where].key
    match fault:
        case "missing":
            del stored[where]
        case "twice":
            stored.append(stored[where])
        case "aborted":
            stored[where] = row((task, index), [30], finish="abort")
        case "unfinished":
            stored[where] = row((task, index), [30], finish=None)
        case _:
            stored[where] = row(RowKey(task, 3), [30])
    found = verdict(stored)
    assert outcomes(found) == {"adapter_files": "pass", **dict.fromkeys(("complete_rows", *SHARES), "inconclusive")}
    assert (checks(found)["complete_rows"].k, checks(found)["complete_rows"].n) == (11, 12)


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        (ADAPTER_FILES, "pass"),
        ({**ADAPTER_FILES, "adapter_config.json": "e" * 64}, "fail"),
        ({**ADAPTER_FILES, "adapter_model.bin": "e" * 64}, "fail"),
        ({}, "fail"),
        (None, "inconclusive"),
    ],
)
def test_another_adapter_is_not_the_registered_one(files: dict[str, str] | None, outcome: str) -> None:
    found = verdict(rows(["abb", "abb", "abb", "abb"]), files=files)
    assert outcomes(found)["adapter_files"] == str(found.outcome) == outcome
    # Also where rows are missing: what is known to be wrong decides.
    assert str(verdict(None, files=files).outcome) == ("fail" if outcome == "fail" else "inconclusive")


@pytest.mark.parametrize(
    "changes",
    [{"adapter": "on"}, {"adapter": "off"}, {"adapter": None}, {"samples_per_task": 2}, {"task_ids": ()}],
    ids=str,
)
def test_what_is_no_contrast_is_not_judged(changes: dict[str, Any]) -> None:
    stored = [] if changes.get("task_ids") == () else rows(["abb", "abb", "abb", "abb"])
    assert str(verdict(stored, **changes).outcome) == "inconclusive"


@pytest.mark.parametrize(
    ("limits", "minimum", "maximum"),
    [
        (LIMITS, (2, True, True), (1, True, True)),
        ({"min_changed_task_share": 1.0, "max_repeat_changed_share": 0.0}, (4, True, True), (0, True, True)),
        ({"min_changed_task_share": 1.01, "max_repeat_changed_share": -0.01}, (None, False, True), (None, False, True)),
        ({"min_changed_task_share": 0.0, "max_repeat_changed_share": 1.0}, (0, True, False), (4, True, False)),
    ],
)
def test_reach(limits: dict[str, float], minimum: tuple[Any, ...], maximum: tuple[Any, ...]) -> None:
    reaches = gate("adapter_applied").reaches(SampleSize(4, 3), limits, where="test")
    assert [(reach.minimum, reach.meets, reach.misses) for reach in reaches] == [minimum, maximum]


def test_both_thresholds_have_to_be_given() -> None:
    with pytest.raises(RegistrationError, match="missing max_repeat_changed_share"):
        gate("adapter_applied").require_thresholds({"min_changed_task_share": 0.5}, where="test")
