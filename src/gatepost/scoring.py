"""Score sealed answers: visible examples choose, that choice is on disk, and only then do hidden examples grade.

A stage that scores runs after a selection, starts no engine, and takes three passes in this order (study A):

1. Receipts. The archive is whole, and every receipt of the whole history replays without a difference.
2. Termination. Recomputed from ids, as are all verdicts of the scored stages; it is part of that replay.
3. Text. Each answer is parsed. Per arm and task the earliest of the parsed samples with the best visible score is
   chosen. The choices are written, read back, and graded.

``choose`` hands the task domain only the fields of a task that it declared visible, so that a choice cannot depend on a
hidden example. This module is the third pass, without any file; ``gatepost.probe`` runs all three.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatepost.fingerprint import RowKey
from gatepost.stages import Stage
from gatepost.verdict import JSON

Task = Mapping[str, JSON]


class Scorer(Protocol):
    """What a task domain has to add for a study that scores. All functions are pure; answers are parsed ones."""

    VISIBLE_FIELDS: tuple[str, ...]
    """Fields of a task that may choose among its samples; ``visible_score`` is given no other."""

    def parse(self, text: str) -> str | None:
        """The answer in a text, or ``None``."""
        ...

    def visible_score(self, task: Task, parsed: str) -> int:
        """How well an answer does on the visible examples: the more the better."""
        ...

    def grade(self, task: Task, parsed: str) -> bool:
        """Whether an answer is right on the hidden examples."""
        ...

    def is_valid(self, task: Task, parsed: str, arm: str | None) -> bool:
        """Whether an answer keeps to what its arm offers."""
        ...

    def traits(self, task: Task, parsed: str, arm: str | None) -> frozenset[str]:
        """Named properties of an answer that gates may ask for, such as ``macro``."""
        ...


@dataclass(frozen=True)
class Choice:
    """What the visible examples say of one sample.

    Attributes:
        stage, arm: that sampled it.
        parsed: the answer; ``None`` where thinking did not end in time or nothing parsed.
        visible_score: of the answer; ``None`` without one.
        chosen: whether it is the earliest sample of its task and stage with the best visible score.
    """

    stage: str
    arm: str | None
    key: RowKey
    parsed: str | None
    visible_score: int | None
    chosen: bool


@dataclass(frozen=True)
class Score(Choice):
    """A choice, graded. An answer that does not parse is not right, not valid and has no traits."""

    correct: bool
    valid: bool
    traits: frozenset[str]


def choose(
    stage: Stage, answers: Mapping[RowKey, str | None], tasks: Mapping[str, Task], domain: Scorer
) -> Iterator[Choice]:
    """Parse the answers of one stage, and choose among the samples of each task.

    Args:
        answers: every registered sample, in order, and what was said after its thinking, if it ended.
    """
    parsed, scores = dict[RowKey, str | None](), dict[RowKey, int]()
    for key, text in answers.items():
        answer = parsed[key] = None if text is None else domain.parse(text)
        if answer is not None:
            visible = {name: value for name, value in tasks[key.task_id].items() if name in domain.VISIBLE_FIELDS}
            scores[key] = domain.visible_score(visible, answer)
    best: dict[str, RowKey] = {}
    for key in sorted(scores, key=lambda key: (-scores[key], key.sample_index)):
        best.setdefault(key.task_id, key)
    for key, answer in parsed.items():
        yield Choice(stage.name, stage.arm, key, answer, scores.get(key), best.get(key.task_id) == key)


def grade(choices: Sequence[Choice], tasks: Mapping[str, Task], domain: Scorer) -> Iterator[Score]:
    """Grade every sample, chosen or not, against the whole task."""
    for choice in choices:
        task, answer, arm = tasks[choice.key.task_id], choice.parsed, choice.arm
        if answer is None:
            yield Score(**vars(choice), correct=False, valid=False, traits=frozenset())
        else:
            valid, traits = domain.is_valid(task, answer, arm), domain.traits(task, answer, arm)
            yield Score(**vars(choice), correct=domain.grade(task, answer), valid=valid, traits=frozenset(traits))
