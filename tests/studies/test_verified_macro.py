"""The macro domain of the study: primitives, programs, depth, fingerprints, prompts, answers, generation."""

import itertools
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.gatefiles import load_module
from gatepost.studyfiles import load_domain

STUDY = Path(__file__).resolve().parents[2] / "studies" / "verified_macro"
DOMAIN: Any = load_module(STUDY / "domain.py", prefix="gatepost_domain")
MAKE: Any = load_module(STUDY / "make_tasks.py", prefix="study")
SPLITS = {path.stem: path for path in (STUDY / "tasks").glob("*.jsonl")}
LIBRARY = MAKE.LIBRARY

VALUES = st.tuples(*[st.integers(0, 16)] * 5)
PRIMITIVE = st.sampled_from(sorted(DOMAIN.PRIMITIVES))
PROGRAM = st.lists(PRIMITIVE, min_size=1, max_size=5).map(tuple)
CALLS = st.lists(st.sampled_from([*DOMAIN.PRIMITIVES, *LIBRARY]), min_size=1, max_size=5)


def read_split(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in SPLITS[name].read_text("utf-8").splitlines()]


STORED = [task for name in sorted(SPLITS) for task in read_split(name)]


@pytest.fixture(name="task")
def _task() -> dict[str, Any]:
    """A reuse task of depth three."""
    task: dict[str, Any] = MAKE.generate("sample", 1, seed=3, shapes=[MAKE.Shape(True, 3)])[0]
    return task


def test_the_study_is_a_complete_domain() -> None:
    assert load_domain("verified_macro", DOMAIN.VERSION, [], where="test").NAME == DOMAIN.NAME


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
        "PROGRAM: M²",
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


# Fingerprints


def disguised(task: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The same examples as floats, reordered, moved between the parts, under another name and key order."""
    pairs = [
        {"output": [float(v) for v in pair["output"]], "input": [float(v) for v in pair["input"]]}
        for part in DOMAIN.PARTS
        for pair in task[part]
    ]
    rng.shuffle(pairs)
    return {**task, "task_id": "copy", "hidden": pairs[:6], "visible": pairs[6:12], "probe": pairs[12:]}


@given(seed=st.integers(0, 11), order=st.integers())
def test_content_fingerprint_sees_through_a_disguise(seed: int, order: int) -> None:
    copy = disguised(STORED[seed], random.Random(order))
    assert DOMAIN.content_fingerprint(copy) == DOMAIN.content_fingerprint(STORED[seed])
    assert DOMAIN.record_fingerprint(copy) != DOMAIN.record_fingerprint(STORED[seed])


@pytest.mark.parametrize("part", DOMAIN.PARTS)
@pytest.mark.parametrize("side", ["input", "output"])
def test_fingerprints_change_with_any_example(task: dict[str, Any], part: str, side: str) -> None:
    before = DOMAIN.content_fingerprint(task), DOMAIN.record_fingerprint(task)
    task[part][-1][side][0] = (task[part][-1][side][0] + 1) % 17
    assert DOMAIN.content_fingerprint(task) != before[0]
    assert DOMAIN.record_fingerprint(task) != before[1]


def test_record_fingerprint_ignores_the_id_alone(task: dict[str, Any]) -> None:
    before = DOMAIN.record_fingerprint(task)
    assert DOMAIN.record_fingerprint({**task, "task_id": "other"}) == before
    assert DOMAIN.record_fingerprint({**task, "motifs": []}) != before


def test_program_fingerprint_is_of_the_behaviour() -> None:
    def digest(*names: str) -> str:
        return str(DOMAIN.program_fingerprint({"program": names}))

    assert digest("REV", "ADD1") == digest("ADD1", "REV") != digest("ADD1", "SWAP")


@pytest.mark.parametrize(
    "values", [[1, 2, 3, 4], [1, 2, 3, 4, 17], [-1, 2, 3, 4, 5], [True, 2, 3, 4, 5], ["1", 2, 3, 4, 5]]
)
def test_only_five_integers_modulo_17_are_values(task: dict[str, Any], values: list[Any]) -> None:
    task["hidden"][0]["input"] = values
    with pytest.raises(ValueError, match="not 5 integers modulo 17"):
        DOMAIN.content_fingerprint(task)


@pytest.mark.parametrize("names", [[], ["ADD2"], ["M0"], ["REV"] * 6])
def test_only_primitives_make_a_stored_program(names: list[str]) -> None:
    with pytest.raises(ValueError, match="not a program"):
        DOMAIN.program({"program": names})


# Prompts


@pytest.mark.parametrize("arm", DOMAIN.ARMS)
def test_prompt_shows_visible_examples_and_nothing_that_gives_the_answer_away(task: dict[str, Any], arm: str) -> None:
    before = DOMAIN.messages(task, arm)
    kept = {name: task[name] for name in ("visible", "library")}
    assert DOMAIN.messages(kept, arm) == before
    assert [message["role"] for message in before] == ["system", "user"]
    assert before[1]["content"].count("in: ") == len(task["visible"])


def test_arms_differ_by_the_library_alone(task: dict[str, Any]) -> None:
    base, designed = ("\n".join(m["content"] for m in DOMAIN.messages(task, arm)) for arm in DOMAIN.ARMS)
    added = [line for line in designed.splitlines() if line not in base.splitlines()]
    assert added == [f"{token} = {' | '.join(names)}" for token, names in LIBRARY.items()]
    assert [line for line in designed.splitlines() if line not in added] == base.splitlines()


@pytest.mark.parametrize("arm", [None, "", "Base", "mined"])
def test_unknown_arm_is_an_error(task: dict[str, Any], arm: str | None) -> None:
    with pytest.raises(ValueError, match=f"arm {arm!r}, expected one of base, designed"):
        DOMAIN.messages(task, arm)


@pytest.mark.parametrize(
    ("token", "names"), [("M0", ["REV"]), ("M0", ["REV"] * 4), ("M0", ["REV", "M1"]), ("REV", ["ADD1", "REV"])]
)
def test_a_macro_is_two_or_three_primitives(task: dict[str, Any], token: str, names: list[str]) -> None:
    task["library"] = {token: names}
    with pytest.raises(ValueError, match=f"not a macro: {token}"):
        DOMAIN.library(task, "designed")
    assert DOMAIN.library(task, "base") == {}


@pytest.mark.parametrize(("arm", "limit"), [("base", 200), ("designed", 265)])
def test_prompt_is_short(arm: str, limit: int) -> None:
    """A small tokenizer makes one token of a number, a word or a run of signs."""
    pattern = re.compile(r" ?\d+| ?[A-Za-z]+:?|\n+| ?[^\sA-Za-z\d]+")
    texts = ["".join(m["content"] for m in DOMAIN.messages(task, arm)) for task in STORED]
    assert max(len(pattern.findall(text)) for text in texts) <= limit


# Grading


def test_own_program_is_right_and_scores_every_visible_example() -> None:
    for task in STORED:
        text = " | ".join(task["program"])
        assert DOMAIN.grade(task, text)
        assert DOMAIN.visible_score(task, text) == len(task["visible"]) == 6


def test_another_spelling_is_right_too(task: dict[str, Any]) -> None:
    by_macro = next(token for token in task["motifs"])
    names = " | ".join(LIBRARY[by_macro])
    spelt = " | ".join(task["program"]).replace(names, by_macro, 1)
    assert by_macro in spelt
    assert DOMAIN.grade(task, spelt)
    assert DOMAIN.grade(task, f"NEG | NEG | {spelt}") or len(task["program"]) > 3


@pytest.mark.parametrize("parsed", [None, "NEG | NEG", "M9", "M6 | M6"])
def test_wrong_missing_and_impossible_programs_score_nothing(task: dict[str, Any], parsed: str | None) -> None:
    assert not DOMAIN.grade(task, parsed)
    assert DOMAIN.visible_score(task, parsed) == 0


def test_visible_and_hidden_examples_are_never_mixed(task: dict[str, Any]) -> None:
    text = " | ".join(task["program"])
    task["hidden"][0]["output"] = task["hidden"][1]["output"]
    assert not DOMAIN.grade(task, text)
    assert DOMAIN.visible_score(task, text) == 6
    task["visible"][0]["output"] = task["visible"][1]["output"]
    assert DOMAIN.visible_score(task, text) == 5


def test_no_hidden_example_grades_nothing(task: dict[str, Any]) -> None:
    text = " | ".join(task["program"])
    assert not DOMAIN.grade({**task, "hidden": []}, text)


@pytest.mark.parametrize(
    ("parsed", "base", "designed", "macro"),
    [
        (None, False, False, False),
        ("REV", True, True, False),
        ("REV | M1", False, True, True),
        ("M9", False, False, True),
        ("M6 | M6", False, False, True),
    ],
)
def test_validity_and_macro_use(
    task: dict[str, Any], parsed: str | None, base: bool, designed: bool, macro: bool
) -> None:
    assert [DOMAIN.is_valid(task, parsed, arm) for arm in DOMAIN.ARMS] == [base, designed]
    assert [DOMAIN.uses_macro(parsed, arm) for arm in DOMAIN.ARMS] == [False, macro]


# Generation


def test_generation_depends_on_split_and_seed_only() -> None:
    first = MAKE.generate("a", 5, seed=1)
    assert MAKE.generate("a", 5, seed=1) == first
    assert MAKE.generate("a", 3, seed=1) == first[:3]
    assert MAKE.generate("a", 5, seed=2) != first
    assert MAKE.generate("b", 5, seed=1) != first


@pytest.mark.parametrize("count", [0, 1, 2, 11, 12, 13])
def test_shapes_are_dealt_in_rounds_and_kinds_are_balanced(count: int) -> None:
    tasks = MAKE.generate("sample", count, seed=5)
    dealt = list(itertools.islice(itertools.cycle(MAKE.SHAPES), count))
    assert [(DOMAIN.is_reuse(task), task["min_depth"]) for task in tasks] == dealt
    families = [DOMAIN.family(task) for task in tasks]
    assert abs(families.count("reuse") - families.count("other")) <= 1


@pytest.mark.parametrize("task", STORED, ids=lambda task: task["task_id"])
def test_stored_task_is_what_it_says(task: dict[str, Any]) -> None:
    program = DOMAIN.program(task)
    assert len(program) == task["min_depth"] == DOMAIN.program_depth(program)
    assert DOMAIN.minimum_depth(DOMAIN.examples(task, "visible"), max_depth=len(program) - 1) is None
    every = [example for part in DOMAIN.PARTS for example in DOMAIN.examples(task, part)]
    assert len({given_ for given_, _ in every}) == 18
    assert all(DOMAIN.run(program, given_) == result for given_, result in every)
    macros = DOMAIN.library(task, "designed")
    occurring = [token for token, names in macros.items() if " ".join(names) in " ".join(program)]
    assert set(task["motifs"]) <= set(occurring)
    assert DOMAIN.is_reuse(task) == bool(occurring)
    assert DOMAIN.answers(task) == ()


def test_stored_splits_have_the_registered_sizes() -> None:
    sizes = {name: [DOMAIN.family(task) for task in read_split(name)] for name in SPLITS}
    assert {name: (f.count("reuse"), f.count("other")) for name, f in sizes.items()} == {
        "probe": (6, 6),
        "development": (30, 30),
    }
    assert len({DOMAIN.program_fingerprint(task) for task in read_split("probe")}) == 12


def test_stored_splits_are_disjoint() -> None:
    probe, development = read_split("probe"), read_split("development")
    for digest in (DOMAIN.record_fingerprint, DOMAIN.content_fingerprint, DOMAIN.program_fingerprint):
        assert set(map(digest, probe)).isdisjoint(map(digest, development))
    for digest in (DOMAIN.record_fingerprint, DOMAIN.content_fingerprint):
        assert len(set(map(digest, STORED))) == len(STORED)


def test_macros_are_no_shorter_in_disguise() -> None:
    assert [DOMAIN.program_depth(names) for names in LIBRARY.values()] == [len(names) for names in LIBRARY.values()]


def test_exclusions_are_kept_out() -> None:
    first = MAKE.generate("sample", 6, seed=7)
    programs = {DOMAIN.program_fingerprint(task) for task in first}
    again = MAKE.generate("sample", 6, seed=7, exclude_programs=programs)
    assert programs.isdisjoint(DOMAIN.program_fingerprint(task) for task in again)
    for digest in (DOMAIN.record_fingerprint, DOMAIN.content_fingerprint):
        known = {digest(task) for task in first}
        other = MAKE.generate("sample", 6, seed=7, exclude_records=known)
        assert known.isdisjoint(digest(task) for task in other)


def test_excluding_every_program_is_an_error() -> None:
    every = {DOMAIN.signature([name]) for name in DOMAIN.PRIMITIVES}
    with pytest.raises(ValueError, match="no task left of shape"):
        MAKE.generate("sample", 1, seed=1, shapes=[MAKE.Shape(False, 1)], exclude_programs=every)


def test_the_script_reproduces_the_stored_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(STUDY / "make_tasks.py"), str(tmp_path)], check=True)
    assert {path.stem for path in tmp_path.iterdir()} == set(SPLITS)
    for name, stored in SPLITS.items():
        assert (tmp_path / f"{name}.jsonl").read_bytes() == stored.read_bytes()
