"""What gates may look at, in named channels. Reading an undeclared channel is an error, not a warning.

That is how content-blindness is enforced instead of asserted: a gate that may only see ids is handed an evidence
that holds nothing else.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NoReturn, TypeVar

from gatepost.absence import prompt_lengths
from gatepost.engine import FINISH_REASONS, EngineFacts, Prompt
from gatepost.errors import ElsewhereError, GatepostError
from gatepost.fingerprint import RowKey
from gatepost.plan import Plan
from gatepost.prompts import PromptIdentity, identity_of
from gatepost.reach import RegisteredReach
from gatepost.record import Approval, Grade, Parent, Record, Row, Sample, Task, Tasks
from gatepost.scoring import Choice, Score
from gatepost.verdict import JSON

__all__ = [
    "AFTER_GENERATION",
    "CONTENT_CHANNELS",
    "UNKNOWN_FACTS",
    "Approval",
    "Choice",
    "Evidence",
    "Grade",
    "Parent",
    "Plan",
    "Record",
    "Row",
    "Sample",
    "Score",
    "Task",
    "Tasks",
    "UndeclaredChannelError",
]

CONTENT_CHANNELS = frozenset({"text", "grades", "scores"})
"""Channels that show what was said. A blind stage has none of them."""

AFTER_GENERATION = frozenset({"completions", "token_ids", "scheduler", "text", "grades", "scores"})
"""Channels that exist only after sampling; a gate that reads none of them judges before it."""

UNKNOWN_FACTS = EngineFacts(kind="unknown", versions={})
"""An engine that reported nothing: every fact is unknown."""

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class UndeclaredChannelError(GatepostError):
    """A gate read a channel that it did not declare."""


class Evidence:
    """The view of a record that one gate gets: the plan, and the channels it declared."""

    CHANNELS = frozenset(
        {
            "approvals",
            "engine",
            "tasks",
            "reach",
            "prompts",
            "completions",
            "token_ids",
            "scheduler",
            "text",
            "grades",
            "scores",
        }
    )

    def __init__(self, record: Record, reads: Sequence[str], *, gate: str) -> None:
        self._record, self._reads, self._gate = record, frozenset(reads), gate

    @property
    def plan(self) -> Plan:
        """The registered side. Always readable: it was public before the data was."""
        return self._record.plan

    @property
    def approvals(self) -> tuple[Approval, ...] | None:
        """The GOs that were on record before the first attempt at the step."""
        self._require("approvals")
        return self._record.approvals

    @property
    def engine(self) -> EngineFacts | None:
        """What the running engine resolved."""
        self._require("engine")
        return self._record.engine

    @property
    def tasks(self) -> Tasks | None:
        """What the task domain says of the tasks."""
        self._require("tasks")
        return self._record.tasks

    @property
    def reach(self) -> Sequence[RegisteredReach] | None:
        """What it takes to meet each threshold of the whole protocol, counted from the registered sizes."""
        self._require("reach")
        return self._record.reach

    @property
    def prompts(self) -> tuple[Prompt, ...] | None:
        """The rendered prompts, with their ids."""
        self._require("prompts")
        return self._record.prompts

    @property
    def completions(self) -> tuple[Sample, ...] | None:
        """The samples, taken apart."""
        self._require("completions")
        return self._record.samples

    @property
    def token_ids(self) -> tuple[Row, ...] | None:
        """The rows, as recorded."""
        self._require("token_ids")
        return self._record.rows

    @property
    def scheduler(self) -> Mapping[str, JSON] | None:
        """The engine's own counters after generation."""
        self._require("scheduler")
        return self._record.scheduler

    @property
    def text(self) -> Mapping[RowKey, str] | None:
        """Decoded answers."""
        self._require("text")
        return self._record.text

    @property
    def grades(self) -> Mapping[RowKey, Grade] | None:
        """Parsed and graded answers."""
        self._require("grades")
        return self._record.grades

    @property
    def scores(self) -> tuple[Score, ...] | None:
        """Chosen and graded answers of the stages that this one scores."""
        self._require("scores")
        return self._record.scores

    @property
    def arm_scores(self) -> Mapping[str | None, Mapping[RowKey, Score]] | None:
        """Arm -> scores by sample; ``None`` unless every registered sample of every scored arm has exactly one.

        An arm with fewer samples on record would look worse than it is, or make another look better.
        """
        stages, scores = self.plan.protocol.sampling_stages(self.plan.stage), self.scores
        registered = Counter((stage.name, key) for stage in stages for key in self.plan.keys_of(stage))
        if scores is None or Counter((score.stage, score.key) for score in scores) != registered:
            return None
        return {stage.arm: {score.key: score for score in scores if score.stage == stage.name} for stage in stages}

    def tasks_of(self, family: str) -> frozenset[str]:
        """The registered tasks of a family, as the task domain has it; none where no tasks are on record."""
        recorded = self.tasks.tasks if self.tasks else ()
        return frozenset(task.task_id for task in recorded if task.family == family) & frozenset(self.plan.task_ids)

    @property
    def registered_prompts(self) -> Mapping[str, Prompt] | None:
        """Task id -> prompt, of the registered tasks."""
        return _only(self.prompts, lambda prompt: prompt.task_id, self.plan.task_ids)

    @property
    def prompt_tokens(self) -> Mapping[str, int] | None:
        """Task id -> length of its rendered prompt in tokens, of the registered tasks; known even of a digest."""
        self._require("prompts")
        lengths = prompt_lengths(self._record.prompts, self._record.prompt_digests)
        found = _only(lengths, lambda length: length[0], self.plan.task_ids)
        return None if found is None else {task_id: tokens for task_id, (_, tokens) in found.items()}

    @property
    def prompt_identities(self) -> tuple[PromptIdentity, ...] | None:
        """What each rendered prompt is, registered or not, in the arm of the stage and from the bound record."""
        if self.prompts is None:
            return None
        arm, records = self.plan.stage.arm, self.plan.record_sha256
        return tuple(identity_of(prompt, arm, records.get(prompt.task_id, "")) for prompt in self.prompts)

    @property
    def registered_rows(self) -> Mapping[RowKey, Row] | None:
        """The rows of registered samples."""
        return _only(self.token_ids, lambda row: row.key, self.plan.keys)

    @property
    def registered_samples(self) -> Mapping[RowKey, Sample] | None:
        """The registered samples, complete or not."""
        return _only(self.completions, lambda sample: sample.key, self.plan.keys)

    @property
    def complete_samples(self) -> Mapping[RowKey, Sample] | None:
        """The registered samples that ended for one of the reasons that make a row."""
        samples = self.registered_samples
        if samples is None:
            return None
        return {key: sample for key, sample in samples.items() if sample.row.finish_reason in FINISH_REASONS}

    @property
    def closed_samples(self) -> Mapping[RowKey, Sample] | None:
        """The complete samples that closed their thinking by the cap that applies, by right-censoring.

        Unknown under an engine's own budget: it closes thinking too, and does not say so.
        """
        samples, cap = self.complete_samples, self.plan.max_think_tokens
        if samples is None or cap is None or self.plan.protocol.thinking == "engine_budget":
            return None
        return {key: sample for key, sample in samples.items() if sample.closed_at(cap)}

    def _require(self, channel: str) -> None:
        if channel not in self._reads:
            self._refuse(channel)
        if channel in self._record.elsewhere:
            raise ElsewhereError(self._record.elsewhere[channel])

    def _refuse(self, channel: str) -> NoReturn:
        declared = ", ".join(sorted(self._reads)) or "nothing"
        raise UndeclaredChannelError(f"gate {self._gate} reads channel {channel!r} but declares {declared}")


def _only(
    items: Sequence[Item] | None, key_of: Callable[[Item], Key], registered: Iterable[Key]
) -> dict[Key, Item] | None:
    """The items of registered keys, by key. One that is stored twice is left out: nobody can say which one counts."""
    if items is None:
        return None
    by_key = {key_of(item): item for item in items}
    times = Counter(map(key_of, items))
    return {key: by_key[key] for key in registered if times[key] == 1}
