"""What the embedded model is trained on, second skill: thoughts that are true about their tasks."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatepost.gatefiles import load_module

FOLDER = Path(__file__).resolve().parents[2] / "models" / "tiny_thinker"
TASKS = 96


@pytest.fixture(name="corpus", scope="module")
def _corpus() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)  # its files import one another as the scripts that they are
        yield load_module(FOLDER / "macro_corpus.py", prefix="macro_corpus_of_the_model")


def drawn(corpus: Any, arm: str) -> list[tuple[dict[str, Any], Any]]:
    rng = random.Random(1)
    tasks = corpus.make_tasks.generate("training", TASKS, 1, shapes=corpus.SHAPES)
    return [(task, corpus.sample(task, arm, rng)) for task in tasks]


@pytest.mark.parametrize("arm", ["base", "designed"])
def test_a_closed_thought_picks_what_it_answers_and_is_right(corpus: Any, arm: str) -> None:
    closed = [(task, sample.completion) for task, sample in drawn(corpus, arm) if sample.closed]
    assert len(closed) > TASKS / 2
    for task, completion in closed:
        thought, _, answer = completion.partition("</think>\n\n")
        parsed = corpus.domain.parse(answer)
        assert corpus.domain.is_valid(task, parsed, arm)
        assert corpus.domain.grade(task, parsed)
        assert set(re.findall("^pick (.*) yes$", thought, re.MULTILINE)) == {parsed}


@pytest.mark.parametrize("arm", ["base", "designed"])
def test_what_was_tried_is_wrong_and_offered(corpus: Any, arm: str) -> None:
    for task, sample in drawn(corpus, arm):
        tried = re.findall("^try (.*) no$", sample.completion, re.MULTILINE)
        assert tried
        for call in set(tried):
            assert corpus.domain.is_valid(task, call, arm)
            assert corpus.domain.visible_score(task, call) < len(task["visible"])


@pytest.mark.parametrize("arm", ["base", "designed"])
def test_an_open_thought_repeats_itself_to_its_end(corpus: Any, arm: str) -> None:
    loops = [sample.completion.splitlines()[2:] for _, sample in drawn(corpus, arm) if not sample.closed]
    assert loops
    for lines in loops:
        period = lines.index(lines[0], 1)
        assert lines[period:] == lines[:-period]


def test_macros_are_called_in_some_answers_of_the_arm_that_has_them(corpus: Any) -> None:
    for arm, expected in (("base", {False}), ("designed", {True, False})):
        answers = [sample.completion.partition("PROGRAM: ")[2] for task, sample in drawn(corpus, arm) if task["motifs"]]
        assert {corpus.domain.uses_macro(answer, arm) for answer in answers if answer} == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (("SORT", "REV"), ["M0"]),
        (("PREFIX", "PREFIX", "REV"), ["M6"]),
        (("ADD1", "SORT", "REV"), ["ADD1", "M0"]),
        (("ROTL", "ROTL", "ROTL"), ["M1", "ROTL"]),
        (("REV",), ["REV"]),
    ],
)
def test_the_fewest_calls(corpus: Any, program: tuple[str, ...], expected: list[str]) -> None:
    assert corpus.spelt(program, corpus.make_tasks.LIBRARY) == expected
    assert corpus.spelt(program, {}) == list(program)
