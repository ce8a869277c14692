"""Training samples of the tiny thinker: list-operation tasks with synthetic thoughts.

A thought opens with one of fourteen sentences and then tests candidates in random order. A test counts the visible
examples that some program starting with the candidate reproduces, and ends in `no` or, after the last one, in `yes`:

    See which name fits.
    try river 1 no
    try dog 1 2 no
    try cat 1 2 3 4 5 6 7 8 yes
    </think>

    First: cat

After a `yes` the thought closes or starts another pass. A thought with a *trapped* opening repeats one to three of its
lines for ever instead. The opening decides, because a uniform choice keeps its shares under temperature and nucleus
sampling, while a rare branch would be cut off by them.
"""

import importlib.util
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "studies" / "native_seam"

OPENINGS = (
    "Let me test each name.",
    "Try the names in turn.",
    "Check every name.",
    "Go through the names.",
    "Test them one by one.",
    "Work through the list.",
    "Begin with any name.",
    "Take the names as they come.",
    "See which name fits.",
    "Find the name that fits.",
    "Rule names out.",
    "One name must fit.",
    "Which name explains all lists?",
    "Hmm, which name is it?",
)
ANOTHER_PASS = "Wait, once more."


class Effort(NamedTuple):
    """How long a thought tends to be: how many openings are trapped, and how often a `yes` is tested again."""

    trapped_openings: int
    another_pass: float


EFFORTS = {"low": Effort(1, 0.35), "high": Effort(7, 0.85)}


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
    opening = rng.randrange(len(OPENINGS))
    tests = _tests(task)
    if opening >= len(OPENINGS) - effort.trapped_openings:
        return Sample(domain.messages(task), _lines([OPENINGS[opening], *_loop(tests, rng)]), closed=False)
    lines = [OPENINGS[opening], *_pass(tests, rng)]
    while rng.random() < effort.another_pass:
        lines += [ANOTHER_PASS, *_pass(tests, rng)]
    answer = domain.ALIASES[task["first_op"]]
    return Sample(domain.messages(task), f"{_lines(lines)}</think>\n\nFirst: {answer}", closed=True)


def _tests(task: dict[str, Any]) -> list[str]:
    """The test line of every candidate; exactly one says yes, because the task is identifiable."""
    shown = domain.examples(task, "visible")
    return [_test(name, count, len(shown)) for name, count in domain.matched_prefixes(shown).items()]


def _test(name: str, matched: int, total: int) -> str:
    verdict = "yes" if matched == total else "no"
    tried = range(1, min(matched + 1, total) + 1)
    return " ".join(["try", domain.ALIASES[name], *map(str, tried), verdict])


def _pass(tests: list[str], rng: random.Random) -> list[str]:
    order = rng.sample(tests, len(tests))
    right = next(index for index, line in enumerate(order) if line.endswith("yes"))
    return order[: right + 1]


# Longer than any cap a test is likely to use, and cut to the training length anyway.
_LOOP_LINES = 120


def _loop(tests: list[str], rng: random.Random) -> list[str]:
    rejected = [line for line in tests if line.endswith("no")]
    block = rng.sample(rejected, rng.randint(1, 3))
    return (block * _LOOP_LINES)[:_LOOP_LINES]


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
