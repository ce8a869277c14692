"""Training samples of the tiny thinker: list-operation tasks with synthetic thoughts.

A thought says what the results have in common and then tests candidates in random order, likely ones first. A test
counts the visible examples that some program starting with the candidate reproduces; the first that reproduces all of
them ends the pass:

    Weigh the names.
    seen same signed mixed kept small
    try horse 1 no
    try square 1 2 no
    try cat 1 2 3 4 5 6 7 8 yes
    </think>

    First: cat

After a pass the thought closes or starts another. A thought that opens with a *trapped* verb repeats one to three test
lines for ever instead. The opening decides, because a uniform choice keeps its shares under temperature and nucleus
sampling, while a rare branch in the middle would be cut off by them.
"""

import importlib.util
import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "studies" / "native_seam"

VERBS = (
    "Test", "Check", "Try", "Weigh", "Probe", "Match", "Review", "Search", "Visit", "Circle", "Compare", "Repeat",
)  # fmt: skip
ANOTHER_PASS = "Wait, once more."
EXPERIENCE_TASKS = 3000


class Effort(NamedTuple):
    """How long a thought tends to be: which opening verbs are trapped, and how often another pass follows."""

    trapped: tuple[str, ...]
    another_pass: float


EFFORTS = {"low": Effort(VERBS[-1:], 0.45), "high": Effort(VERBS[-6:], 0.9)}


class Sample(NamedTuple):
    """A chat and the completion to learn: the text after `<think>` and whether it closes and answers."""

    messages: list[dict[str, str]]
    completion: str
    closed: bool


def load_domain() -> ModuleType:
    """The study's domain module, loaded from its file as the study itself does."""
    spec = importlib.util.spec_from_file_location("list_operations", STUDY / "domain.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


domain = load_domain()


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
    verb = rng.choice(VERBS)
    shown = domain.examples(task, "visible")
    seen = _observation(shown)
    tests = _tests(shown)
    lines = [f"{verb} the names.", f"seen {seen}"]
    if verb in effort.trapped:
        return Sample(domain.messages(task), _lines(lines + _loop(tests, rng)), closed=False)
    lines += _pass(tests, seen, rng)
    while rng.random() < effort.another_pass:
        lines += [ANOTHER_PASS, f"seen {seen}", *_pass(tests, seen, rng)]
    answer = domain.ALIASES[task["first_op"]]
    return Sample(domain.messages(task), f"{_lines(lines)}</think>\n\nFirst: {answer}", closed=True)


def _observation(shown: list[Any]) -> str:
    """What all results have in common, in five words; it narrows the candidates to a few without naming one."""
    results = [result for _, result in shown]
    shorter_by = {len(given) - len(result) for given, result in shown}
    largest = max((abs(value) for result in results for value in result), default=0)
    rising = all(map(_is_rising, results))
    falling = all(_is_rising(result[::-1]) for result in results)
    words = (
        "same" if shorter_by == {0} else "less" if shorter_by == {1} else "cut",
        "signed" if any(value < 0 for result in results for value in result) else "unsigned",
        "rising" if rising else "falling" if falling else "mixed",
        "kept" if all(Counter(result) <= Counter(given) for given, result in shown) else "changed",
        "small" if largest <= 9 else "medium" if largest <= 27 else "large",
    )
    return " ".join(words)


def _is_rising(values: tuple[int, ...]) -> bool:
    return all(a <= b for a, b in pairwise(values))


@cache
def _experience() -> dict[str, Counter[str]]:
    """How often each first operation stood behind an observation, in a fixed sample of tasks."""
    counts: dict[str, Counter[str]] = {}
    for task in domain.generate("experience", EXPERIENCE_TASKS, seed=0):
        counts.setdefault(_observation(domain.examples(task, "visible")), Counter())[task["first_op"]] += 1
    return counts


def _tests(shown: list[Any]) -> dict[str, str]:
    """The test line of every candidate; exactly one says yes, because the task is identifiable."""
    return {name: _test(name, count, len(shown)) for name, count in domain.matched_prefixes(shown).items()}


def _test(name: str, matched: int, total: int) -> str:
    verdict = "yes" if matched == total else "no"
    tried = range(1, min(matched + 1, total) + 1)
    return " ".join(["try", domain.ALIASES[name], *map(str, tried), verdict])


def _pass(tests: dict[str, str], seen: str, rng: random.Random) -> list[str]:
    """Tests up to the first yes, in a random order that prefers what the observation suggests."""
    suggested = _experience().get(seen, Counter())
    # Weighted sampling without replacement (Efraimidis and Spirakis 2006): sort by u ** (1 / weight). The square root
    # keeps second choices alive, so that traces of one task differ.
    order = sorted(tests, key=lambda name: rng.random() ** (1 / (0.5 + suggested[name] ** 0.5)), reverse=True)
    lines = [tests[name] for name in order]
    right = next(index for index, line in enumerate(lines) if line.endswith("yes"))
    return lines[: right + 1]


# Longer than any cap a test is likely to use, and cut to the training length anyway.
_LOOP_LINES = 120


def _loop(tests: dict[str, str], rng: random.Random) -> list[str]:
    rejected = [line for line in tests.values() if line.endswith("no")]
    block = rng.sample(rejected, rng.randint(1, 3))
    return (block * _LOOP_LINES)[:_LOOP_LINES]


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
