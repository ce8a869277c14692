"""The macro tasks of the study: fingerprints, prompts, grading, generation and the stored splits."""

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
    by_macro = task["motifs"][0]
    names = " | ".join(LIBRARY[by_macro])
    spelt = " | ".join(task["program"]).replace(names, by_macro, 1)
    assert by_macro in spelt
    assert DOMAIN.grade(task, spelt)


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
        "one_macro": (12, 0),
    }
    assert len({DOMAIN.program_fingerprint(task) for task in read_split("probe")}) == 12


def test_stored_splits_are_disjoint() -> None:
    probe, development = read_split("probe"), read_split("development")
    for digest in (DOMAIN.record_fingerprint, DOMAIN.content_fingerprint, DOMAIN.program_fingerprint):
        assert set(map(digest, probe)).isdisjoint(map(digest, development))
    for digest in (DOMAIN.record_fingerprint, DOMAIN.content_fingerprint):
        assert len(set(map(digest, STORED))) == len(STORED)


def test_one_macro_is_enough_for_each_task_of_its_split() -> None:
    """Each macro of two primitives twice. Eight programs occur in development; the draft allows for as many as all."""
    tasks = read_split("one_macro")
    for task in tasks:
        (macro,) = task["motifs"]
        assert DOMAIN.grade(task, macro)
        assert DOMAIN.minimum_depth(DOMAIN.examples(task, "visible")) == 2
    assert len({task["motifs"][0] for task in tasks}) == 6
    programs = {DOMAIN.program_fingerprint(task) for task in read_split("development")}
    assert sum(DOMAIN.program_fingerprint(task) in programs for task in tasks) == 8


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
