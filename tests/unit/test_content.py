"""Copies that differ in wrapping, order, number spelling or id are copies (case h2), and what is new is new."""

import itertools
import unicodedata
from functools import partial
from typing import Any

import pytest

from gatepost.content import content_fingerprint, require_catches_copies
from gatepost.errors import RegistrationError

fingerprint = partial(content_fingerprint, text=["statement"], unordered=["examples"])

FIRST = {"in": [1, 2, 3], "out": [3, 2, 1]}
SECOND = {"in": [4, 5], "out": [5, 4]}
TASK: dict[str, Any] = {
    "id": "t1", "seed": 7, "statement": "Reverse the list and return it.", "examples": [FIRST, SECOND],
}  # fmt: skip
KNOWN = "d5d95b6454a6241944065ae69d06810ba1e4372b6a13c0613e44c0ef099fc8fd"

COPIES = {
    "another id and order": {**TASK, "id": "zz9", "seed": 8, "examples": [SECOND, FIRST]},
    "wrapped": {**TASK, "id": "t3", "seed": 9, "statement": "Reverse the\r\n  list and\nreturn it. "},
    "numbers and keys spelled otherwise": {**TASK, "examples": [{"out": [3, 2, 1], "in": [1.0, 2.0, 3.0]}, SECOND]},
}
NEW = {
    "another example": (
        {**TASK, "id": "t5", "examples": [FIRST, {"in": [4, 6], "out": [6, 4]}]},
        "ed00c7309d23524c0d97b3219c056b0759b9925d584978ff4377f00617c7cba1",
    ),
    "another statement": (
        {**TASK, "id": "t6", "statement": "Reverse the list and return it twice."},
        "b28328384184f90936507d0761bfa7c8fde746b31c69177b2a9df7bbe6141ffd",
    ),
}


def test_the_task_itself() -> None:
    assert fingerprint(TASK) == KNOWN


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_the_fingerprint_of_its_original(name: str) -> None:
    assert fingerprint(COPIES[name]) == KNOWN


@pytest.mark.parametrize("name", NEW)
def test_what_is_new_has_another(name: str) -> None:
    task, digest = NEW[name]
    assert fingerprint(task) == digest


def test_unicode_is_composed_before_it_is_compared() -> None:
    composed = {**TASK, "statement": "Trié"}
    assert fingerprint(composed) == fingerprint({**TASK, "statement": unicodedata.normalize("NFD", "Trié")})


def test_order_is_all_that_unordered_ignores() -> None:
    orders = {
        fingerprint({**TASK, "examples": list(order)}) for order in itertools.permutations([FIRST, SECOND, FIRST])
    }
    assert len(orders) == 1
    assert fingerprint(TASK) not in orders, "an example twice is not the same as once"


def test_the_self_test_passes_what_catches_copies() -> None:
    require_catches_copies(fingerprint, TASK, COPIES.values(), NEW["another example"][0])


@pytest.mark.parametrize(
    ("weak", "problem"),
    [
        (lambda task: str(task), "planted copy 1 passes for new"),
        (lambda task: task["statement"], "planted copy 2 passes for new"),
        (lambda task: str(sorted(map(str, task["examples"]))) + " ".join(task["statement"].split()), "planted copy 3"),
        (lambda task: "always the same", "a new task passes for a copy"),
    ],
)
def test_the_self_test_fails_what_does_not(weak: Any, problem: str) -> None:
    with pytest.raises(RegistrationError, match=problem):
        require_catches_copies(weak, TASK, COPIES.values(), NEW["another example"][0])


def test_a_planted_copy_that_cannot_fail_is_refused() -> None:
    with pytest.raises(RegistrationError, match="no changed copy but the task itself"):
        require_catches_copies(fingerprint, TASK, [dict(TASK)], NEW["another example"][0])
