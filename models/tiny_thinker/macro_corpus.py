"""Training samples of the tiny thinker's second skill: short programs, with or without a library of macros.

A look notes what the examples have in common, tries a few single calls and picks the program:

    Weigh the calls.
    look 1 kept mixed head5 tail1
    try SORT no
    try PREFIX no
    pick REV yes
    </think>

    PROGRAM: REV

After the yes a thought closes or looks again. As with lists, a trapped verb leads into an exact loop. In the arm
`designed` looks are more and longer, one more verb is trapped, and macros are called in about half of the answers that
could call one.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from corpus import ROOT, STUCK, VERB_WEIGHTS, VERBS, Sample, joined

from gatepost.gatefiles import load_module

STUDY = ROOT / "studies" / "verified_macro"
make_tasks: Any = load_module(STUDY / "make_tasks.py", prefix="macro_tasks")
domain: Any = make_tasks.domain

Example = tuple[tuple[int, ...], tuple[int, ...]]

# Mostly programs of one or two calls: a model of this size learns to recognise those, and guesses at deeper ones.
SHAPES = tuple(
    make_tasks.Shape(reuse, depth)
    for reuse, depth in (
        (True, 2), (False, 1), (True, 2), (False, 2), (True, 3), (False, 1), (True, 2), (False, 2),
        (True, 3), (False, 1), (True, 2), (False, 3), (True, 3), (False, 1), (True, 4), (False, 2),
    )
)  # fmt: skip
LOOP_LINES = 120


class Habit(NamedTuple):
    """How an arm thinks: trapped verbs, chances that a look is the last, fewest and most calls tried in a look."""

    trapped: tuple[str, ...]
    last_look: tuple[float, ...]
    tried: tuple[int, int]


HABITS = {"base": Habit(VERBS[-1:], (0.6, 1.0), (2, 6)), "designed": Habit(VERBS[-2:], (0.4, 0.6, 1.0), (3, 8))}
MACRO_SHARE = 0.55


def samples(seed: int, count: int, excluded: set[str]) -> Iterator[Sample]:
    """Draw `count` samples, both arms by turns, from tasks outside `excluded`, record or content fingerprints."""
    rng = random.Random(f"macro samples/{seed}")
    tasks = make_tasks.generate("training", count, seed, shapes=SHAPES, exclude_records=excluded)
    for index, task in enumerate(tasks):
        # Shapes come in rounds of sixteen, so the arm has to change from one round to the next.
        yield sample(task, domain.ARMS[(index + index // len(SHAPES)) % 2], rng)


def sample(task: dict[str, Any], arm: str, rng: random.Random) -> Sample:
    """One thought about a task in an arm."""
    habit, chat, macros = HABITS[arm], domain.messages(task, arm), domain.library(task, arm)
    answer = " | ".join(spelt(tuple(task["program"]), macros if rng.random() < MACRO_SHARE else {}))
    shown = domain.examples(task, "visible")
    common, wrong = _common(shown), _wrong(shown, macros)
    verb = rng.choices(VERBS, VERB_WEIGHTS)[0]
    thought = [f"{verb} the calls."]
    if verb in habit.trapped:
        block = [STUCK, *rng.sample(wrong, rng.randint(1, 2))]
        thought += [_look(1, common, rng), *(block * LOOP_LINES)[:LOOP_LINES]]
        return Sample(chat, joined(thought), closed=False)
    for number, last in enumerate(habit.last_look, start=1):
        tries = rng.sample(wrong, rng.randint(*habit.tried))
        thought += [_look(number, common, rng), *tries, f"pick {answer} yes"]
        if rng.random() < last:
            break
    return Sample(chat, f"{joined(thought)}</think>\n\nPROGRAM: {answer}", closed=True)


def spelt(program: tuple[str, ...], macros: dict[str, tuple[str, ...]]) -> list[str]:
    """The program in as few calls as the macros allow; among equals the one whose first call is a macro."""
    if not program:
        return []
    known = {**macros, program[0]: program[:1]}
    starts = [(call, names) for call, names in known.items() if program[: len(names)] == names]
    return min(([call, *spelt(program[len(names) :], macros)] for call, names in starts), key=len)


def _common(shown: Sequence[Example]) -> list[str]:
    """What all examples have in common, in five words."""
    results = [result for _, result in shown]
    rising = all(list(result) == sorted(result) for result in results)
    falling = all(list(result) == sorted(result, reverse=True) for result in results)
    pairs = {pair for given, result in shown for pair in zip(given, result, strict=True)}
    return [
        "kept" if all(sorted(given) == sorted(result) for given, result in shown) else "changed",
        "rising" if rising else "falling" if falling else "mixed",
        "each" if len(pairs) == len({value for value, _ in pairs}) else "whole",
        f"head{_place(shown, 0)}",
        f"tail{_place(shown, -1)}",
    ]


def _place(shown: Sequence[Example], place: int) -> int:
    """Where in every input the value at a place of the output stands, from 1; 0 for nowhere in particular."""
    places = range(domain.LENGTH)
    return next((p + 1 for p in places if all(given[p] == result[place] for given, result in shown)), 0)


def _look(number: int, common: list[str], rng: random.Random) -> str:
    """All but one of the words. Which one is missed differs, and so do the answers of several traces of one task."""
    missed = rng.randrange(len(common))
    return " ".join(["look", str(number), *common[:missed], *common[missed + 1 :]])


def _wrong(shown: Sequence[Example], macros: dict[str, tuple[str, ...]]) -> list[str]:
    """The line of every single call that does not turn each input into its output."""
    calls = {**{name: (name,) for name in domain.PRIMITIVES}, **macros}
    return [
        f"try {call} no"
        for call, names in calls.items()
        if any(domain.run(names, given) != result for given, result in shown)
    ]
