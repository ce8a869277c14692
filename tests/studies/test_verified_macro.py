"""The macro language of the study: primitives, programs and their limits, depth, signatures."""

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.gatefiles import load_module

STUDY = Path(__file__).resolve().parents[2] / "studies" / "verified_macro"
DOMAIN: Any = load_module(STUDY / "domain.py", prefix="gatepost_domain")
LIBRARY = {
    "M0": ("SORT", "REV"),
    "M1": ("ROTL", "ROTL"),
    "M6": ("PREFIX", "PREFIX", "REV"),
    "M7": ("DIFF", "NEG", "SWAP"),
}

VALUES = st.tuples(*[st.integers(0, 16)] * 5)
PRIMITIVE = st.sampled_from(sorted(DOMAIN.PRIMITIVES))
PROGRAM = st.lists(PRIMITIVE, min_size=1, max_size=5).map(tuple)
CALLS = st.lists(st.sampled_from([*DOMAIN.PRIMITIVES, *LIBRARY]), min_size=1, max_size=5)


# Primitives


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("ADD1", (3, 1, 16, 1, 9), (4, 2, 0, 2, 10)),
        ("MUL2", (3, 1, 16, 8, 9), (6, 2, 15, 16, 1)),
        ("NEG", (3, 1, 16, 0, 9), (14, 16, 1, 0, 8)),
        ("REV", (3, 1, 16, 4, 9), (9, 4, 16, 1, 3)),
        ("ROTL", (3, 1, 16, 4, 9), (1, 16, 4, 9, 3)),
        ("SWAP", (3, 1, 16, 4, 9), (1, 3, 16, 4, 9)),
        ("SORT", (3, 1, 16, 1, 9), (1, 1, 3, 9, 16)),
        ("PREFIX", (3, 1, 16, 1, 9), (3, 4, 3, 4, 13)),
        ("DIFF", (3, 1, 16, 1, 9), (3, 15, 15, 2, 8)),
        ("ZIGZAG", (3, 1, 16, 4, 9), (3, 16, 9, 1, 4)),
    ],
)
def test_primitive(name: str, values: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert DOMAIN.run([name], values) == expected


def test_calls_run_from_left_to_right() -> None:
    assert DOMAIN.run(["ADD1", "MUL2"], (0, 1, 2, 3, 4)) == (2, 4, 6, 8, 10)
    assert DOMAIN.run(["MUL2", "ADD1"], (0, 1, 2, 3, 4)) == (1, 3, 5, 7, 9)


@given(program=PROGRAM, values=VALUES)
def test_every_program_stays_in_the_domain(program: tuple[str, ...], values: tuple[int, ...]) -> None:
    result = DOMAIN.run(program, values)
    assert len(result) == 5
    assert set(result) <= set(range(17))


@pytest.mark.parametrize(
    "pair", [("NEG", "NEG"), ("REV", "REV"), ("SWAP", "SWAP"), ("PREFIX", "DIFF"), ("DIFF", "PREFIX")]
)
@given(values=VALUES)
def test_pairs_that_undo_each_other(pair: tuple[str, str], values: tuple[int, ...]) -> None:
    assert DOMAIN.run(pair, values) == values


# Answers and programs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PROGRAM: ADD1", "ADD1"),
        ("PROGRAM: ADD1 | M0", "ADD1 | M0"),
        ("PROGRAM: ADD1|\tM9  |REV \t", "ADD1 | M9 | REV"),
        ("so\nPROGRAM: ADD1\nbye", "ADD1"),
        ("PROGRAM: ADD1\nPROGRAM: REV", "REV"),
        ("PROGRAM: ADD1\nPROGRAM: ADD2", "ADD1"),
        ("PROGRAM: SORT | SORT | SORT | SORT | SORT", "SORT | SORT | SORT | SORT | SORT"),
        ("PROGRAM: M6 | M6", "M6 | M6"),
    ],
)
def test_program_is_read(text: str, expected: str) -> None:
    assert DOMAIN.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ADD1",
        "PROGRAM:",
        "PROGRAM: ",
        "PROGRAM:ADD1",
        "PROGRAM:  ADD1",
        " PROGRAM: ADD1",
        "Program: ADD1",
        "PROGRAM: add1",
        "PROGRAM: ADD1.",
        "PROGRAM: ADD1 REV",
        "PROGRAM: ADD1 |",
        "PROGRAM: | ADD1",
        "PROGRAM: ADD1 || REV",
        "PROGRAM: ADD1 |\nREV",
        "PROGRAM: ADD2",
        "PROGRAM: ADD1 | ADD2",
        "PROGRAM: M",
        "PROGRAM: M10",
        "PROGRAM: M\u0663",
        "PROGRAM: SORT | SORT | SORT | SORT | SORT | SORT",
        "PROGRAM: ADD1<|endoftext|>",
        "The PROGRAM: ADD1",
        "PROGRAM: ADD1\r\n",
    ],
)
def test_program_is_refused(text: str) -> None:
    assert DOMAIN.parse(text) is None


@given(
    calls=CALLS, bar=st.sampled_from([" | ", "|", "| ", "  |\t"]), before=st.sampled_from(["", "M0\n", "PROGRAM: x\n"])
)
def test_parsing_reads_back_what_was_written(calls: list[str], bar: str, before: str) -> None:
    parsed = DOMAIN.parse(f"{before}PROGRAM: {bar.join(calls)}\n")
    assert parsed == " | ".join(calls)
    assert DOMAIN.parse(f"PROGRAM: {parsed}") == parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REV", ("REV",)),
        ("M0 | REV", ("SORT", "REV", "REV")),
        ("REV | M6", ("REV", "PREFIX", "PREFIX", "REV")),
        ("M0 | M6", ("SORT", "REV", "PREFIX", "PREFIX", "REV")),
        ("M6 | M7", None),
        ("M0 | M0 | M0", None),
        ("REV | REV | REV | REV | REV", ("REV",) * 5),
        ("REV | REV | REV | REV | REV | REV", None),
        ("REV | REV | REV | REV | M0", None),
        ("M8", None),
        ("ADD2", None),
        ("", None),
    ],
)
def test_expansion_and_its_limits(text: str, expected: tuple[str, ...] | None) -> None:
    assert DOMAIN.expand(text, LIBRARY) == expected


@given(calls=CALLS, values=VALUES)
def test_expansion_behaves_as_its_calls_one_after_another(calls: list[str], values: tuple[int, ...]) -> None:
    step_by_step, length = values, 0
    for call in calls:
        names = LIBRARY.get(call, (call,))
        step_by_step, length = DOMAIN.run(names, step_by_step), length + len(names)
    expanded = DOMAIN.expand(" | ".join(calls), LIBRARY)
    assert (expanded is None) == (length > 5)
    assert expanded is None or DOMAIN.run(expanded, values) == step_by_step


# Depth and signatures


def programs_up_to(depth: int) -> list[tuple[str, ...]]:
    return [p for length in range(depth + 1) for p in itertools.product(DOMAIN.PRIMITIVES, repeat=length)]


def depths_by_brute_force(inputs: Any, depth: int) -> dict[Any, int]:
    depths: dict[Any, int] = {}
    for program in programs_up_to(depth):
        depths.setdefault(tuple(DOMAIN.run(program, values) for values in inputs), len(program))
    return depths


def test_levels_agree_with_brute_force() -> None:
    levels = itertools.islice(DOMAIN.levels(DOMAIN.SIGNATURE_INPUTS), 4)
    found = {outputs: depth for depth, level in enumerate(levels) for outputs in level}
    assert found == depths_by_brute_force(DOMAIN.SIGNATURE_INPUTS, 3)


@given(inputs=st.lists(VALUES, min_size=1, max_size=3), program=st.lists(PRIMITIVE, max_size=3))
def test_minimum_depth_agrees_with_brute_force(inputs: list[tuple[int, ...]], program: list[str]) -> None:
    outputs = tuple(DOMAIN.run(program, values) for values in inputs)
    depth = depths_by_brute_force(inputs, 2).get(outputs)
    shown = list(zip(inputs, outputs, strict=True))
    assert DOMAIN.minimum_depth(shown, max_depth=2) == depth
    assert DOMAIN.minimum_depth(shown) in ({3} if depth is None else {depth})


def test_minimum_depth_of_what_no_program_does() -> None:
    assert DOMAIN.minimum_depth([((1, 2, 3, 4, 5), (0, 0, 0, 0, 1)), ((5, 4, 3, 2, 1), (1, 2, 3, 4, 6))]) is None


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("NEG | NEG", 0),
        ("PREFIX | DIFF | SORT", 1),
        ("REV | ADD1 | REV", 1),
        ("SORT | REV", 2),
        ("ROTL | ROTL | ROTL | ROTL | ROTL", 0),
        ("SORT | PREFIX | SWAP | MUL2 | REV", 5),
    ],
)
def test_program_depth(text: str, depth: int) -> None:
    assert DOMAIN.program_depth(text.split(" | ")) == depth


@given(left=PROGRAM, right=PROGRAM)
def test_signatures_are_equal_exactly_if_behaviours_are(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    same = all(DOMAIN.run(left, values) == DOMAIN.run(right, values) for values in DOMAIN.SIGNATURE_INPUTS)
    assert (DOMAIN.signature(left) == DOMAIN.signature(right)) == same


def test_signature_inputs_tell_programs_apart_as_many_random_ones_do() -> None:
    rng = random.Random(0)
    many = tuple(tuple(rng.randrange(17) for _ in range(5)) for _ in range(60))
    sizes = [[len(level) for level in itertools.islice(DOMAIN.levels(x), 5)] for x in (DOMAIN.SIGNATURE_INPUTS, many)]
    assert sizes == [[1, 10, 72, 465, 2866]] * 2


@given(program=st.lists(PRIMITIVE, min_size=1, max_size=3), values=VALUES)
def test_equal_signatures_mean_equal_results_elsewhere(program: list[str], values: tuple[int, ...]) -> None:
    for other in programs_up_to(2):
        if DOMAIN.signature(other) == DOMAIN.signature(program):
            assert DOMAIN.run(other, values) == DOMAIN.run(program, values)
