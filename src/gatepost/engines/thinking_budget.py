"""Where one continuation ends. The rule of study B, and the only one: no close is ever injected.

Sampling stops at a stop id. Before the first close id at most ``max_think_tokens`` ids are sampled, the close itself
included: closed at cap B means that the one-indexed step of the close is at most B. After it, at most
``max_answer_tokens``. A limit ends the row as ``length``, unless the id that reached it was a stop id.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from gatepost.engine import Chunk, Completion, EngineSpec, Request
from gatepost.errors import EngineError
from gatepost.seeds import SEED_LIMIT

CHUNK_TOKENS = 16
"""Ids per chunk: often enough for a progress line, rare enough to cost nothing."""


class ThinkingBudget:
    """Counts the sampled ids of one request against its limits."""

    def __init__(self, request: Request) -> None:
        self.stop_ids = request.sampling.stop_ids
        self._close_id = request.think_close_id
        self._think_left = request.max_think_tokens
        self._answer_left = request.max_answer_tokens
        self._closed = False

    def finish_reason_after(self, token_id: int) -> str | None:
        """Count one sampled id: ``stop`` or ``length`` if it is the last one, else ``None``."""
        if token_id in self.stop_ids:
            return "stop"
        if self._closed:
            self._answer_left -= 1
        else:
            self._think_left -= 1
            self._closed = token_id == self._close_id
        left = self._answer_left if self._closed else self._think_left
        return None if left > 0 else "length"


def refuse_unless_implemented(spec: EngineSpec, policies: Sequence[str]) -> None:
    """Raise ``EngineError`` (``refused``) for a thinking policy that the engine does not implement."""
    if spec.thinking not in policies:
        raise EngineError(
            f"engine {spec.kind}: thinking {spec.thinking!r}, expected {' or '.join(policies)}", kind="refused"
        )


def refuse_unless_it_fits(requests: Iterable[Request], max_model_len: int) -> None:
    """Check every request before the first is sampled.

    Raises:
        EngineError: ``refused``, for a request id that comes twice, an empty prompt, limits that leave nothing to
            sample, a seed outside [0, 2^31), or a prompt whose budgets go past the context length in tokens.
    """
    seen: set[str] = set()
    for request in requests:
        prompt, think, answer = len(request.token_ids), request.max_think_tokens, request.max_answer_tokens
        if prompt < 1 or think < 1 or answer < 0:
            problem = f"{prompt} prompt, {think} thinking and {answer} answer tokens, expected at least 1, 1 and 0"
        elif request.request_id in seen:
            problem = "comes twice, expected unique request ids"
        elif not 0 <= request.seed < SEED_LIMIT:
            problem = f"seed {request.seed}, expected one in [0, 2^31)"
        elif prompt + think + answer > max_model_len:
            problem = f"{prompt} + {think} + {answer} tokens, expected at most max_model_len {max_model_len}"
        else:
            seen.add(request.request_id)
            continue
        raise EngineError(f"request {request.request_id}: {problem}", kind="refused")


def complete(
    request: Request,
    sampled: Iterator[int],
    *,
    take_lengths: Callable[[], tuple[int, ...] | None],
    decode: Callable[[Sequence[int]], str],
) -> Iterator[Chunk | Completion]:
    """Draw ids until the budget ends the request, in chunks.

    Args:
        request: what is sampled.
        sampled: its endless continuation; drawing the next id is what samples it.
        take_lengths: input lengths in tokens of the forward calls observed since it was last called.
        decode: ids to text, special tokens included.
    """
    budget, token_ids, sent = ThinkingBudget(request), list[int](), 0
    started = time.perf_counter()
    finish_reason = None
    while finish_reason is None:
        token_ids.append(next(sampled))
        finish_reason = budget.finish_reason_after(token_ids[-1])
        if finish_reason is not None or len(token_ids) - sent == CHUNK_TOKENS:
            yield Chunk(request.request_id, tuple(token_ids[sent:]), take_lengths())
            sent = len(token_ids)
    yield Completion(request.request_id, finish_reason, decode(token_ids), time.perf_counter() - started)
