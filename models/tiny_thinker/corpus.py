"""Training samples of the tiny thinker's first skill: list-operation tasks with synthetic thoughts.

A thought notes what the results have in common, tries a few wrong candidates and picks the right one. A test counts
the visible examples that some program starting with the candidate reproduces, and says yes if it reproduces them all:

    Weigh the names.
    seen same mixed kept small
    try horse 1 no
    try square 1 2 no
    pick cat 1 2 3 4 5 6 7 8 yes
    </think>

    First: cat

After the yes a thought closes or goes through another pass. A thought that opens with a *trapped* verb gets stuck: it
repeats the same two or three lines for ever.
"""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from gatepost.gatefiles import load_module

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "studies" / "native_seam"

VERBS = (
    "Test", "Check", "Try", "Weigh", "Probe", "Match", "Review", "Search",
    "Visit", "Judge", "Rate", "Study", "Scan", "Order", "Compare", "Repeat",
)  # fmt: skip
# Choices near uniform keep their shares under temperature and nucleus sampling, which cut off rare branches. So the
# opening decides about a trap; the last verb, trapped for every effort, is never the least likely one.
VERB_WEIGHTS = (1.0,) * 15 + (1.2,)
ANOTHER_PASS = "Wait, once more."
STUCK = "Hmm, again."
MAX_REJECTED_PER_PASS = 5


class Effort(NamedTuple):
    """How long a thought tends to be: which opening verbs are trapped, and how often another pass follows one."""

    trapped: tuple[str, ...]
    another_pass: float


EFFORTS = {"low": Effort(VERBS[-1:], 0.35), "high": Effort(VERBS[-8:], 0.8)}


class Sample(NamedTuple):
    """A chat and the completion to learn: the text after `<think>` and whether it closes and answers."""

    messages: list[dict[str, str]]
    completion: str
    closed: bool


domain: Any = load_module(STUDY / "domain.py", prefix="list_operations")


def samples(seed: int, count: int, high_share: float, excluded: set[str]) -> Iterator[Sample]:
    """Draw `count` samples, a `high_share` of them with high effort, from tasks outside `excluded`.

    `excluded` holds record or content fingerprints, those of the evaluation tasks.
    """
    rng = random.Random(f"samples/{seed}")
    for task in domain.generate("training", count, seed, exclude_records=excluded):
        effort = "high" if rng.random() < high_share else "low"
        yield sample(task | {"effort": effort}, rng)


def sample(task: dict[str, Any], rng: random.Random) -> Sample:
    """One thought about a task, of the task's effort."""
    effort = EFFORTS[task["effort"]]
    verb = rng.choices(VERBS, VERB_WEIGHTS)[0]
    shown = domain.examples(task, "visible")
    common = _common(shown)
    tests = _tests(shown)
    thought = [f"{verb} the names."]
    if verb in effort.trapped:
        thought += [_note(common, rng), *_loop(tests, rng)]
        return Sample(domain.messages(task), joined(thought), closed=False)
    thought += [_note(common, rng), *_pass(tests, rng)]
    while rng.random() < effort.another_pass:
        thought += [ANOTHER_PASS, _note(common, rng), *_pass(tests, rng)]
    answer = domain.ALIASES[task["first_op"]]
    return Sample(domain.messages(task), f"{joined(thought)}</think>\n\nFirst: {answer}", closed=True)


def _common(shown: list[Any]) -> list[str]:
    """What all results have in common, in five words; they narrow the candidates to a few without naming one."""
    results = [result for _, result in shown]
    shorter_by = {len(given) - len(result) for given, result in shown}
    largest = max((abs(value) for result in results for value in result), default=0)
    rising = all(map(_is_rising, results))
    falling = all(_is_rising(result[::-1]) for result in results)
    return [
        "same" if shorter_by == {0} else "less" if shorter_by == {1} else "cut",
        "rising" if rising else "falling" if falling else "mixed",
        "signed" if any(value < 0 for result in results for value in result) else "unsigned",
        "kept" if all(Counter(result) <= Counter(given) for given, result in shown) else "changed",
        "small" if largest <= 9 else "medium" if largest <= 27 else "large",
    ]


def _note(common: list[str], rng: random.Random) -> str:
    """All but one of the words. Which one is missed differs, and so do the answers of several traces of one task."""
    missed = rng.randrange(len(common))
    return " ".join(["seen", *common[:missed], *common[missed + 1 :]])


def _is_rising(values: tuple[int, ...]) -> bool:
    return all(a <= b for a, b in pairwise(values))


def _tests(shown: list[Any]) -> list[str]:
    """The test line of every candidate; exactly one says yes, because the task is identifiable."""
    return [_test(name, count, len(shown)) for name, count in domain.matched_prefixes(shown).items()]


def _test(name: str, matched: int, total: int) -> str:
    # The two kinds of line differ in their first word, so that the right name is chosen straight from the note.
    start, verdict = ("pick", "yes") if matched == total else ("try", "no")
    checked = range(1, min(matched + 1, total) + 1)
    return " ".join([start, domain.ALIASES[name], *map(str, checked), verdict])


def _pass(tests: list[str], rng: random.Random) -> list[str]:
    """A few rejected candidates, however many, then the right one."""
    rejected, right = _split(tests)
    return rng.sample(rejected, rng.randint(0, MAX_REJECTED_PER_PASS)) + right


def _split(tests: list[str]) -> tuple[list[str], list[str]]:
    return [line for line in tests if line.endswith("no")], [line for line in tests if line.endswith("yes")]


# Longer than any cap a test is likely to use, and cut to the training length anyway.
_LOOP_LINES = 120


def _loop(tests: list[str], rng: random.Random) -> list[str]:
    block = [STUCK, *rng.sample(_split(tests)[0], rng.randint(1, 2))]
    return (block * _LOOP_LINES)[:_LOOP_LINES]


def joined(lines: list[str]) -> str:
    """The lines of a thought, each ended."""
    return "".join(f"{line}\n" for line in lines)
