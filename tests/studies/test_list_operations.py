"""The list-operation domain of the study: operations, identifiability, fingerprints, answers, generation."""

import importlib.util
import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

STUDY = Path(__file__).resolve().parents[2] / "studies" / "native_seam"


def load_domain() -> ModuleType:
    spec = importlib.util.spec_from_file_location("list_operations_under_test", STUDY / "domain.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DOMAIN = load_domain()
SPLITS = {path.stem: path for path in (STUDY / "tasks").glob("*.jsonl")}


@pytest.fixture(name="domain")
def _domain() -> ModuleType:
    return DOMAIN


@pytest.fixture(name="task")
def _task() -> dict[str, Any]:
    task: dict[str, Any] = DOMAIN.generate("sample", 1, seed=3)[0]
    return task


def read_split(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in SPLITS[name].read_text("utf-8").splitlines()]


# Operations


@pytest.mark.parametrize(
    ("name", "parameter", "values", "expected"),
    [
        ("reverse", None, (1, 2, 3), (3, 2, 1)),
        ("sort_asc", None, (2, -3, 2), (-3, 2, 2)),
        ("sort_desc", None, (2, -3, 2), (2, 2, -3)),
        ("abs_all", None, (-4, 0, 4), (4, 0, 4)),
        ("square", None, (-3, 0, 2), (9, 0, 4)),
        ("negate", None, (-1, 0, 2), (1, 0, -2)),
        ("running_sum", None, (1, -2, 5), (1, -1, 4)),
        ("adjacent_diff", None, (1, -2, 5), (-3, 7)),
        ("adjacent_diff", None, (1,), ()),
        ("add_k", -3, (1, 2), (-2, -1)),
        ("mul_k", -2, (1, -2), (-2, 4)),
        ("take_k", 2, (7, 8, 9), (7, 8)),
        ("take_k", 4, (7, 8), (7, 8)),
        ("rotate_k", 1, (1, 2, 3), (2, 3, 1)),
        ("rotate_k", 3, (1, 2, 3), (1, 2, 3)),
        ("rotate_k", 3, (1, 2), (2, 1)),
        ("rotate_k", 3, (), ()),
    ],
)
def test_operation(
    domain: ModuleType, name: str, parameter: int | None, values: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert domain.run([(name, parameter)], values) == expected


def test_steps_apply_in_order(domain: ModuleType) -> None:
    assert domain.run([("add_k", 1), ("mul_k", 3)], (1, 2)) == (6, 9)
    assert domain.run([("mul_k", 3), ("add_k", 1)], (1, 2)) == (4, 7)


def test_aliases_are_distinct_and_answers_are_the_aliases(domain: ModuleType) -> None:
    assert len(set(domain.ANSWERS)) == len(domain.OPERATIONS) == 12
    assert set(domain.ANSWERS) == set(domain.ALIASES.values())


# Identifiability


def types_by_brute_force(shown: list[Any]) -> set[str]:
    programs = itertools.product(DOMAIN.STEPS, repeat=2)
    return {p[0][0] for p in programs if all(DOMAIN.run(p, given_) == result for given_, result in shown)}


STEP = st.sampled_from(DOMAIN.STEPS)
VALUES = st.lists(st.integers(-9, 9), min_size=4, max_size=8).map(tuple)


@given(program=st.tuples(STEP, STEP), inputs=st.lists(VALUES, min_size=1, max_size=4))
def test_enumeration_agrees_with_brute_force(program: Any, inputs: list[tuple[int, ...]]) -> None:
    shown = [(values, DOMAIN.run(program, values)) for values in inputs]
    task = {"visible": [{"input": list(i), "output": list(o)} for i, o in shown]}
    expected = sorted(DOMAIN.ALIASES[name] for name in types_by_brute_force(shown))
    assert DOMAIN.answers(task) == tuple(expected)
    assert DOMAIN.ALIASES[program[0][0]] in expected


def test_a_program_that_commutes_is_not_identifiable(domain: ModuleType) -> None:
    pair = {"input": [3, -1, 2, 5], "output": [-5, -2, 1, -3]}
    assert domain.answers({"visible": [pair]}) == ("cat", "lemon")


def test_matched_prefix_stops_at_the_first_example_no_program_explains(domain: ModuleType) -> None:
    shown = [((1, 2, 3, 4), (4, 3, 2, 1)), ((5, 1, 2, 3), (3, 2, 1, 5)), ((1, 2, 3, 4), (99,))]
    longest = domain.matched_prefixes(shown)
    assert longest["reverse"] == 2
    assert longest["sort_desc"] == 1
    assert longest["square"] == 0


@pytest.mark.parametrize("split", sorted(SPLITS))
def test_stored_tasks_are_identifiable_and_true_to_their_program(domain: ModuleType, split: str) -> None:
    for task in read_split(split):
        assert domain.answers(task) == (domain.ALIASES[task["first_op"]],)
        assert task["visible_matching_first_types"] == [task["first_op"]] == [domain.program(task)[0][0]]
        for given_, result in domain.examples(task, "visible") + domain.examples(task, "hidden"):
            assert domain.run(domain.program(task), given_) == result


def test_stored_splits_are_disjoint(domain: ModuleType) -> None:
    for left, right in itertools.combinations(sorted(SPLITS), 2):
        for digest in (domain.record_fingerprint, domain.content_fingerprint, domain.program_fingerprint):
            assert {digest(t) for t in read_split(left)}.isdisjoint(digest(t) for t in read_split(right))


# Fingerprints


def test_record_fingerprint_is_pinned(domain: ModuleType) -> None:
    pair = {"output": [2, 1], "input": [1, 2]}
    task = {"task_id": "x", "depth": 2, "first_op": "reverse", "visible": [pair], "hidden": [pair]}
    expected = "f495c7da070cbd55cb94cd67224650b077506951cc936f7a0a423e2e263d69d3"
    assert domain.record_fingerprint(task) == expected


def disguised(task: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The same examples as floats, reordered, moved between the parts, under other names and key order."""
    pairs = [
        {"output": [float(v) for v in pair["output"]], "input": [float(v) for v in pair["input"]]}
        for pair in task["hidden"] + task["visible"]
    ]
    rng.shuffle(pairs)
    return {**task, "task_id": "copy", "first_op": "negate", "hidden": pairs[:8], "visible": pairs[8:]}


@given(seed=st.integers(0, 20), order=st.integers())
def test_content_fingerprint_sees_through_a_disguise(seed: int, order: int) -> None:
    task = DOMAIN.generate("sample", 1, seed=seed)[0]
    copy = disguised(task, random.Random(order))
    assert DOMAIN.content_fingerprint(copy) == DOMAIN.content_fingerprint(task)
    assert DOMAIN.record_fingerprint(copy) != DOMAIN.record_fingerprint(task)


@given(part=st.sampled_from(["visible", "hidden"]), pair=st.integers(0, 7), side=st.sampled_from(["input", "output"]))
def test_content_fingerprint_changes_with_any_example(part: str, pair: int, side: str) -> None:
    task = DOMAIN.generate("sample", 1, seed=3)[0]
    before = DOMAIN.content_fingerprint(task)
    task[part][pair][side][0] += 1
    assert DOMAIN.content_fingerprint(task) != before


@pytest.mark.parametrize("value", [True, 1.5, float("inf"), "1", None])
def test_only_integers_have_content(domain: ModuleType, task: dict[str, Any], value: Any) -> None:
    task["hidden"][0]["input"][0] = value
    with pytest.raises(ValueError, match="not a list of integers"):
        domain.content_fingerprint(task)


def test_program_fingerprint_ignores_spelling_and_nothing_else(domain: ModuleType) -> None:
    def digest(*steps: dict[str, Any]) -> str:
        return str(domain.program_fingerprint({"target_pipeline": steps}))

    reverse, add = {"name": "reverse", "parameter": None}, {"name": "add_k", "parameter": 1}
    assert digest({"name": "reverse"}, {"parameter": 1.0, "name": "add_k"}) == digest(reverse, add)
    assert digest(add, reverse) != digest(reverse, add)
    assert digest(reverse, {**add, "parameter": 2}) != digest(reverse, add)


# Prompts and answers


def test_prompt_shows_the_visible_examples_and_nothing_that_gives_the_answer_away(
    domain: ModuleType, task: dict[str, Any]
) -> None:
    before = domain.messages(task)
    task |= {"hidden": [], "first_op": "", "target_pipeline": [], "visible_matching_first_types": [], "task_id": ""}
    assert domain.messages(task) == before
    assert [message["role"] for message in before] == ["system", "user"]


def test_prompt_states_the_effort(domain: ModuleType, task: dict[str, Any]) -> None:
    assert domain.messages(task)[0]["content"] == "Effort: low"
    assert domain.messages({**task, "effort": "high"})[0]["content"] == "Effort: high"


@pytest.mark.parametrize(
    "text", ["First: cat", "\n\nFirst: cat\n", "First: cat \t", "so\nFirst: cat\nbye", "First: cat\nFirst: cat"]
)
def test_answer_is_read(domain: ModuleType, text: str) -> None:
    assert domain.parse(text) == "cat"


@pytest.mark.parametrize(
    "text",
    ["", "cat", "First:", "First:cat", "First:  cat", " First: cat", "So First: cat", "first: cat", "First: cat dog"],
)
def test_answer_of_another_form_is_none(domain: ModuleType, text: str) -> None:
    assert domain.parse(text) is None


@pytest.mark.parametrize(
    "name", ["Cat", "cat.", "reverse", "cow", "cat<|endoftext|>", "cat\nFirst: dog", "cat\nFirst: cow"]
)
def test_unknown_or_contradictory_name_is_none(domain: ModuleType, name: str) -> None:
    assert domain.parse(f"First: {name}") is None


def test_grade_compares_with_the_alias_of_the_first_operation(domain: ModuleType, task: dict[str, Any]) -> None:
    right = domain.ALIASES[task["first_op"]]
    assert [alias for alias in (*domain.ANSWERS, None) if domain.grade(task, alias)] == [right]


# Generation


def test_generation_depends_on_split_and_seed_only(domain: ModuleType) -> None:
    first = domain.generate("a", 5, seed=1)
    assert domain.generate("a", 5, seed=1) == first
    assert domain.generate("a", 5, seed=2) != first
    assert domain.generate("b", 5, seed=1) != first


@pytest.mark.parametrize("count", [0, 1, 10, 11, 12, 25])
def test_first_operations_are_balanced_and_never_negate(domain: ModuleType, count: int) -> None:
    tasks = domain.generate("sample", count, seed=5)
    counts = Counter(task["first_op"] for task in tasks)
    per_type = [counts[name] for name in domain.FIRST_OPERATIONS]
    assert sum(per_type) == len(tasks) == count
    assert max(per_type) - min(per_type) <= 1
    assert counts["negate"] == 0


def test_generated_tasks_have_the_registered_shape(domain: ModuleType) -> None:
    for task in domain.generate("sample", 11, seed=6):
        assert (task["depth"], len(task["visible"]), len(task["hidden"])) == (2, 8, 8)
        inputs = [given_ for part in ("visible", "hidden") for given_, _ in domain.examples(task, part)]
        assert len(set(inputs)) == 16
        assert all(4 <= len(values) <= 8 and max(map(abs, values)) <= 9 for values in inputs)
        assert "effort" not in task
        assert domain.answers(task) == (domain.ALIASES[task["first_op"]],)


def test_exclusions_are_kept_out(domain: ModuleType) -> None:
    first = domain.generate("sample", 22, seed=7)
    programs = {domain.program_fingerprint(task) for task in first}
    again = domain.generate("sample", 22, seed=7, exclude_programs=programs)
    assert programs.isdisjoint(domain.program_fingerprint(task) for task in again)
    for digest in (domain.record_fingerprint, domain.content_fingerprint):
        known = {digest(task) for task in first}
        other = domain.generate("sample", 22, seed=7, exclude_records=known)
        assert known.isdisjoint(digest(task) for task in other)


def test_excluding_every_program_is_an_error(domain: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "_MAX_DRAWS_PER_TASK", 20)
    every = {
        domain.program_fingerprint({"target_pipeline": [{"name": n, "parameter": k} for n, k in program]})
        for program in itertools.product(domain.STEPS, repeat=2)
    }
    with pytest.raises(ValueError, match="no identifiable task left"):
        domain.generate("sample", 1, seed=1, exclude_programs=every)


def test_effort_is_stored_on_request(domain: ModuleType) -> None:
    assert {task["effort"] for task in domain.generate("sample", 3, seed=1, effort="high")} == {"high"}


def test_the_script_reproduces_the_stored_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(STUDY / "make_tasks.py"), str(tmp_path)], check=True)
    assert {path.stem for path in tmp_path.iterdir()} == set(SPLITS)
    for name, stored in SPLITS.items():
        assert (tmp_path / f"{name}.jsonl").read_bytes() == stored.read_bytes()
