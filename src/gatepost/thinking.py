"""How thinking ended, decided from ids alone: the prompt's and the sampled ones.

Whether a thinking block is open at the first sampled id is a fact of the prompt (its last open or close id), never
of the output. Thought and answer are split at the *first* close.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """How a continuation ended, as far as thinking is concerned."""

    ANSWERED = "answered"
    EMPTY_ANSWER = "empty_answer"
    UNCLOSED = "thinking_unclosed"
    EOS_BEFORE_CLOSE = "eos_before_close"
    STOPPED_INSIDE = "stopped_inside_thinking"


@dataclass(frozen=True)
class Block:
    """One thinking block: the ids between its two markers, and whether a close id ended it."""

    tokens: int
    closed: bool


@dataclass(frozen=True)
class Continuation:
    """A sampled continuation, taken apart.

    Attributes:
        ending: of the last thinking block and the answer.
        blocks: thinking blocks in order; the first is the prompt's open block, if it left one open.
        close_step: one-indexed position of the first id that closed a block; ``None`` if none did.
        answer_ids: ids after the first close, final stop id removed; ``None`` where there is no answer.
        orphan_closes: close ids outside any block.
        reopened: open ids sampled after the first block had closed.
        nested_opens: open ids sampled inside an open block; they are counted as thinking.
        prompt_open: whether the prompt left thinking open.
    """

    ending: Ending
    blocks: tuple[Block, ...]
    close_step: int | None
    answer_ids: tuple[int, ...] | None
    orphan_closes: int
    reopened: int
    nested_opens: int
    prompt_open: bool

    @property
    def thinking_tokens(self) -> int:
        """Thinking ids over all blocks."""
        return sum(block.tokens for block in self.blocks)

    @property
    def closed_once(self) -> bool:
        """Natural close in study B's sense: exactly one close id, and it closed the thinking block."""
        return self.close_step is not None and not self.orphan_closes and not self.reopened

    def closed_at(self, cap_tokens: int) -> bool:
        """Right-censored view: closed at cap B iff the one-indexed close step is at most B."""
        return self.closed_once and self.close_step is not None and self.close_step <= cap_tokens


def leaves_thinking_open(prompt_ids: Sequence[int], open_id: int, close_id: int) -> bool:
    """Whether the prompt's last marker is an open one."""
    for token in reversed(prompt_ids):
        if token in (open_id, close_id):
            return token == open_id
    return False


def take_apart(
    ids: Sequence[int],
    *,
    prompt_open: bool,
    open_id: int,
    close_id: int,
    stop_ids: Sequence[int],
    finish_reason: str | None,
) -> Continuation:
    """Classify one continuation. ``finish_reason`` only tells a limit from a stop; ids decide the rest."""
    body, stopped = list(ids), False
    if body and body[-1] in stop_ids:
        body.pop()
        stopped = True
    blocks: list[Block] = []
    inside, start = prompt_open, 0
    close_step: int | None = None
    orphan_closes = reopened = nested_opens = 0
    for position, token in enumerate(body):
        if token == close_id:
            if inside:
                blocks.append(Block(position - start, closed=True))
                close_step = position + 1 if close_step is None else close_step
                inside = False
            else:
                orphan_closes += 1
        elif token == open_id and inside:
            nested_opens += 1
        elif token == open_id:
            reopened += bool(blocks)
            inside, start = True, position + 1
    if inside:
        blocks.append(Block(len(body) - start, closed=False))
    answer = None if inside else tuple(body[close_step or 0 :])
    if inside and stopped:
        ending = Ending.EOS_BEFORE_CLOSE
    elif inside:
        ending = Ending.UNCLOSED if finish_reason == "length" else Ending.STOPPED_INSIDE
    else:
        ending = Ending.ANSWERED if answer else Ending.EMPTY_ANSWER
    return Continuation(ending, tuple(blocks), close_step, answer, orphan_closes, reopened, nested_opens, prompt_open)
