"""What was recorded of a step: the data that gates judge through an ``Evidence``."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gatepost.absence import AbsentRows, PromptDigest
from gatepost.engine import EngineFacts, Prompt
from gatepost.fingerprint import RowKey
from gatepost.plan import Plan
from gatepost.reach import RegisteredReach
from gatepost.scoring import Score
from gatepost.thinking import Continuation, Ending, leaves_thinking_open, take_apart
from gatepost.verdict import JSON


@dataclass(frozen=True)
class Task:
    """What the task domain says of one task, computed by code and recorded; the task itself is a bound file.

    Attributes:
        answers: every answer that the visible examples allow, by exhaustive enumeration; empty if not enumerable.
        family: the class that the split is balanced over (study B: the first operation's alias).
    """

    task_id: str
    split: str
    record_fingerprint: str
    content_fingerprint: str
    program_fingerprint: str
    answers: tuple[str, ...]
    family: str


@dataclass(frozen=True)
class Parent:
    """Fingerprints of a registered parent corpus, per level."""

    name: str
    records: frozenset[str]
    contents: frozenset[str]
    programs: frozenset[str]


@dataclass(frozen=True)
class Tasks:
    """The tasks of a stage, and the parent corpora they must be new against."""

    tasks: tuple[Task, ...]
    parents: tuple[Parent, ...]


@dataclass(frozen=True)
class Row:
    """One sampled continuation, as numbers.

    Attributes:
        prompt_tokens: length of the rendered prompt in tokens.
        token_ids: the continuation: sampled ids, and injected ones where they were put.
        forward_input_lengths: input length in tokens of each observed forward call; ``None`` if not recorded.
        finish_reason: as the engine gave it; stage two's after a forced close.
        stage_two_seed, stage_one_finish_reason: around a forced close; ``None`` where there was no second stage.
        injected_start, injected_tokens: which ids were injected, from zero; ``None`` and 0 for none.
        reprefilled_tokens: prefix tokens that stage two fed again; neither sampled nor injected.
        claims: what somebody else's record says of this row and its numbers cannot show.
    """

    key: RowKey
    seed: int
    prompt_tokens: int
    token_ids: "array[int]"
    forward_input_lengths: "array[int] | None"
    finish_reason: str | None
    claims: Mapping[str, JSON]
    stage_two_seed: int | None = None
    stage_one_finish_reason: str | None = None
    injected_start: int | None = None
    injected_tokens: int = 0
    reprefilled_tokens: int = 0

    @property
    def sampled_tokens(self) -> int:
        """Ids that the model sampled."""
        return len(self.token_ids) - self.injected_tokens


@dataclass(frozen=True)
class Grade:
    """What the task domain made of one answer. ``parsed`` is ``None`` when there was nothing to parse."""

    key: RowKey
    parsed: str | None
    correct: bool


@dataclass(frozen=True)
class Sample:
    """A row with its continuation taken apart at the study's markers."""

    row: Row
    continuation: Continuation

    def closed_at(self, cap_tokens: int) -> bool:
        """Whether the model closed its own thinking, once, within the cap."""
        return self.continuation.closed_at(cap_tokens) and self.own_close_step is not None

    @property
    def own_close_step(self) -> int | None:
        """One-indexed step at which the model closed its thinking; ``None`` if it did not, or a close was injected."""
        return None if self.row.injected_tokens else self.continuation.close_step

    @property
    def key(self) -> RowKey:
        """Which sample it is."""
        return self.row.key

    @property
    def stopped(self) -> bool:
        """Whether the last id is a stop id, which counts as neither thinking nor answer."""
        found = self.continuation
        if found.answer_ids is None:
            return found.ending is Ending.EOS_BEFORE_CLOSE
        return len(self.row.token_ids) > (found.close_step or 0) + len(found.answer_ids)

    @property
    def thinking_ids(self) -> "array[int]":
        """The ids of the first thinking block, without its markers."""
        found = self.continuation
        if not found.blocks:
            return array("i")
        end = len(self.row.token_ids) - self.stopped if found.close_step is None else found.close_step - 1
        return self.row.token_ids[end - found.blocks[0].tokens : end]

    def touches_budget(self, cap_tokens: int, margin_tokens: int) -> bool:
        """Whether thinking was closed by force, or came within the margin of the cap; a reopened one counts too."""
        blocks = self.continuation.blocks
        return bool(self.row.injected_tokens) or any(block.tokens + margin_tokens >= cap_tokens for block in blocks)

    def touches_answer_limit(self, cap_tokens: int, limit_tokens: int, max_model_len: int | None) -> bool:
        """Whether the answer was cut: at its limit, at the end of the context, or by what the engine says.

        A stop id in the last slot is an end. Where thinking is open at the cap, there is no answer that could be cut.
        """
        row, begin = self.row, self.continuation.close_step or 0
        if row.injected_start is not None:
            begin = row.injected_start + row.injected_tokens
        elif begin > cap_tokens or (self.continuation.blocks and not begin):
            return False
        end = len(row.token_ids) - self.stopped
        at_context = max_model_len is not None and row.prompt_tokens + end >= max_model_len
        return row.finish_reason == "length" or end - begin >= limit_tokens or at_context


@dataclass(frozen=True)
class Approval:
    """One signed GO.

    Attributes:
        protocol, step: digest and name of what it is a GO for, as signed.
        key: the public key, 32 bytes, that it names.
        holds: whether its signature holds under that key; ``None`` where no library was there to say.
    """

    protocol: str
    step: str
    key: bytes
    holds: bool | None


@dataclass(frozen=True)
class Record:
    """Everything that was recorded of a step, every channel. ``None`` means that it was not recorded.

    Gates never get this, but an ``Evidence`` over it.

    Attributes:
        counted: the samples by their counts alone, where the ids lie elsewhere; ``rows`` are theirs.
        elsewhere: channel -> which file of it is not at hand.
    """

    plan: Plan
    engine: EngineFacts | None = None
    tasks: Tasks | None = None
    prompts: tuple[Prompt, ...] | None = None
    rows: tuple[Row, ...] | None = None
    scheduler: Mapping[str, JSON] | None = None
    text: Mapping[RowKey, str] | None = None
    grades: Mapping[RowKey, Grade] | None = None
    scores: tuple[Score, ...] | None = None
    reach: Sequence[RegisteredReach] | None = None
    approvals: tuple[Approval, ...] | None = None
    absent_rows: AbsentRows | None = None
    prompt_digests: tuple[PromptDigest, ...] | None = None
    counted: tuple[Sample, ...] | None = None
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def samples(self) -> tuple[Sample, ...] | None:
        """Rows taken apart, in stored order; ``None`` without rows or without the prompts' ids.

        Imported rows carry no prompt ids; what the protocol claims of its template stands in.
        """
        if self.rows is None or self.counted is not None:
            return self.counted
        model = self.plan.protocol.model
        open_id, close_id = model.think_open[1], model.think_close[1]
        template_opens = self.plan.protocol.thinking != "no_think"
        opens = {
            prompt.task_id: leaves_thinking_open(prompt.token_ids, open_id, close_id) for prompt in self.prompts or ()
        }
        return tuple(
            Sample(
                row,
                take_apart(
                    row.token_ids,
                    prompt_open=opens.get(row.key.task_id, template_opens),
                    open_id=open_id,
                    close_id=close_id,
                    stop_ids=self.plan.protocol.sampling.stop_ids,
                    finish_reason=row.finish_reason,
                ),
            )
            for row in self.rows
        )
