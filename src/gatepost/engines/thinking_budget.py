"""Where one continuation ends, and how a thinking that used up its budget is closed by force.

Sampling stops at a stop id. Before the first close id at most ``max_think_tokens`` ids are sampled, the close itself
included: closed at cap B means that the one-indexed step of the close is at most B. After it, at most
``max_answer_tokens``. A limit ends the row as ``length``, unless the id that reached it was a stop id. That is all of
study B's rule, which never injects a close.

``force_close``, the rule of study A, changes one case: where the thinking is used up without a close, the registered
close ids are put behind it, and a second stage, fed prompt, thinking and close again, samples at most
``max_answer_tokens``. A close that came in time is kept with the answer that follows it, and so is a stop id inside the
thinking.

``no_think`` has no thinking to count: the prompt closed it, and every id is answer.
"""

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gatepost.engine import Chunk, Completion, EngineSpec, Request
from gatepost.errors import EngineError
from gatepost.seeds import SEED_LIMIT

CHUNK_TOKENS = 16
"""Ids per chunk: often enough for a progress line, rare enough to cost nothing."""


class ThinkingBudget:
    """Counts the sampled ids of one request against its limits.

    Attributes:
        is_closed: whether the thinking has ended, by the prompt, by the model's own close or by force.
    """

    def __init__(self, request: Request, *, is_closed: bool = False) -> None:
        self.stop_ids = request.sampling.stop_ids
        self.is_closed = is_closed
        self._close_id = request.think_close_id
        self._think_left = request.max_think_tokens
        self._answer_left = request.max_answer_tokens

    def finish_reason_after(self, token_id: int) -> str | None:
        """Count one sampled id: ``stop`` or ``length`` if it is the last one, else ``None``."""
        if token_id in self.stop_ids:
            return "stop"
        if self.is_closed:
            self._answer_left -= 1
        else:
            self._think_left -= 1
            self.is_closed = token_id == self._close_id
        left = self._answer_left if self.is_closed else self._think_left
        return None if left > 0 else "length"


class Transcript:
    """The continuation of one request while it grows: counted against its budget, sent on in chunks.

    Attributes:
        token_ids: what was sampled and injected so far, in order.
        finish_reason: of the row; ``None`` while it grows.
        is_used_up: the thinking is used up without a close, and ``close_by_force`` is due before any other id.
    """

    def __init__(
        self, request: Request, force_close_ids: tuple[int, ...], chunk_tokens: int, *, is_closed: bool = False
    ) -> None:
        self.request = request
        self.token_ids = array("i")
        self.finish_reason: str | None = None
        self.is_used_up = False
        self._force_close_ids = force_close_ids
        self._chunk_tokens = chunk_tokens
        self._budget = ThinkingBudget(request, is_closed=is_closed)
        self._sent_tokens = self._reprefilled_tokens = 0
        self._stage_one_finish_reason: str | None = None
        self._started = time.perf_counter()

    @property
    def is_at_end(self) -> bool:
        """Whether the stage is over: nothing more may be sampled behind the last id."""
        return self.is_used_up or self.finish_reason is not None

    @property
    def is_chunk_due(self) -> bool:
        """Whether the ids that wait have to be sent: they are enough, or the last ones of a stage."""
        return self.is_at_end or len(self.token_ids) - self._sent_tokens >= self._chunk_tokens

    def add(self, token_id: int) -> None:
        """Count one sampled id."""
        self.token_ids.append(token_id)
        reason = self._budget.finish_reason_after(token_id)
        self.is_used_up = reason == "length" and not self._budget.is_closed and bool(self._force_close_ids)
        if self.is_used_up:
            self._stage_one_finish_reason = reason
        else:
            self.finish_reason = reason

    def end(self, finish_reason: str) -> None:
        """The engine ended the row by itself, for a reason that is passed on as it is."""
        self.finish_reason, self.is_used_up = finish_reason, False

    def chunk(self, forward_input_lengths: tuple[int, ...] | None) -> Chunk:
        """The ids that wait to be sent; they count as sent from here on."""
        waiting = tuple(self.token_ids[self._sent_tokens :])
        self._sent_tokens = len(self.token_ids)
        return Chunk(self.request.request_id, waiting, forward_input_lengths)

    def close_by_force(self, forward_input_lengths: tuple[int, ...] | None) -> Chunk:
        """Put the registered close ids behind the thinking, whose ids have been sent, and send them as injected."""
        self.token_ids.extend(self._force_close_ids)
        self._reprefilled_tokens = len(self.request.token_ids) + len(self.token_ids)
        self._budget.is_closed, self.is_used_up = True, False
        return replace(self.chunk(forward_input_lengths), injected=True)

    def completion(self, decode: Callable[[Sequence[int]], str]) -> Completion:
        """The end of the row, as it is now. Its text leaves out the stop id that ended it: nobody said that."""
        stopped = self.token_ids and self.token_ids[-1] in self.request.sampling.stop_ids
        return Completion(
            self.request.request_id,
            self.finish_reason,
            decode(self.token_ids[:-1] if stopped else self.token_ids),
            time.perf_counter() - self._started,
            self._stage_one_finish_reason,
            self._reprefilled_tokens,
        )


def refuse_unless_implemented(spec: EngineSpec, policies: Sequence[str]) -> None:
    """Raise ``EngineError`` (``refused``) for a thinking policy that the engine does not implement.

    So are close ids that the policy would not inject, and a forced close without any.
    """
    if spec.thinking not in policies:
        raise EngineError(
            f"engine {spec.kind}: thinking {spec.thinking!r}, expected {' or '.join(policies)}", kind="refused"
        )
    if bool(spec.force_close_ids) != (spec.thinking == "force_close"):
        raise EngineError(
            f"engine {spec.kind}: thinking {spec.thinking!r} with force_close_ids {list(spec.force_close_ids)}, "
            "expected some for force_close, none otherwise",
            kind="refused",
        )


def refuse_unless_it_fits(
    requests: Iterable[Request], max_model_len: int, *, force_close_ids: Sequence[int] = (), adapter: bool = False
) -> None:
    """Check every request before the first is sampled.

    Raises:
        EngineError: ``refused``, for a request id that comes twice, an empty prompt, limits that leave nothing to
            sample, a seed outside [0, 2^31), an adapter where the engine has none, or a prompt whose budgets go past
            the context length in tokens. With close ids to inject, they count too, and the second stage needs a seed
            and room for an answer.
    """
    seen: set[str] = set()
    for request in requests:
        problem = _problem(request, max_model_len, force_close_ids)
        if problem is None and request.request_id in seen:
            problem = "comes twice, expected unique request ids"
        if problem is None and request.with_adapter and not adapter:
            problem = "asks for the adapter, but the engine has none"
        if problem is not None:
            raise EngineError(f"request {request.request_id}: {problem}", kind="refused")
        seen.add(request.request_id)


def _problem(request: Request, max_model_len: int, force_close_ids: Sequence[int]) -> str | None:
    """Why a request cannot be sampled; ``None`` if it can."""
    prompt, think, answer = len(request.token_ids), request.max_think_tokens, request.max_answer_tokens
    least = 1 if force_close_ids else 0
    if prompt < 1 or think < 1 or answer < least:
        return f"{prompt} prompt, {think} thinking and {answer} answer tokens, expected at least 1, 1 and {least}"
    if not _is_seed(request.seed):
        return f"seed {request.seed}, expected one in [0, 2^31)"
    if force_close_ids and not _is_seed(request.stage_two_seed):
        return f"stage_two_seed {request.stage_two_seed}, expected one in [0, 2^31)"
    parts = [prompt, think, *([len(force_close_ids)] if force_close_ids else []), answer]
    if sum(parts) > max_model_len:
        return f"{' + '.join(map(str, parts))} tokens, expected at most max_model_len {max_model_len}"
    return None


def _is_seed(seed: int | None) -> bool:
    return seed is not None and 0 <= seed < SEED_LIMIT


class ForceClose(NamedTuple):
    """What closes a thinking that is used up, and what is sampled then.

    Attributes:
        token_ids: put behind the thinking.
        second_stage: the endless continuation of thinking and close, given their ids.
    """

    token_ids: tuple[int, ...]
    second_stage: Callable[[Sequence[int]], Iterator[int]]


def complete(
    request: Request,
    sampled: Iterator[int],
    *,
    take_lengths: Callable[[], tuple[int, ...] | None],
    decode: Callable[[Sequence[int]], str],
    force_close: ForceClose | None = None,
    chunk_tokens: int = CHUNK_TOKENS,
    is_closed: bool = False,
) -> Iterator[Chunk | Completion]:
    """Draw ids until the budget ends the request, in chunks.

    Args:
        request: what is sampled.
        sampled: its endless continuation; drawing the next id is what samples it.
        take_lengths: input lengths in tokens of the forward calls observed since it was last called.
        decode: ids to text, special tokens included.
        force_close: for the policy of that name; ``None`` for every other.
        chunk_tokens: how many ids make a chunk.
        is_closed: whether the prompt closes the thinking, so that all is answer.
    """
    row = Transcript(request, force_close.token_ids if force_close else (), chunk_tokens, is_closed=is_closed)
    while row.finish_reason is None:
        row.add(next(sampled))
        if row.is_chunk_due:
            yield row.chunk(take_lengths())
        if force_close and row.is_used_up:
            yield row.close_by_force(take_lengths())
            sampled = force_close.second_stage(row.token_ids)
    yield row.completion(decode)
