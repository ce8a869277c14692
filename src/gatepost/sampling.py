"""Sample one step: every id is on disk before anything looks at it."""

import json
import os
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from gatepost.engine import Chunk, Completion, Engine, Prompt, Request
from gatepost.errors import EngineError, RegistrationError
from gatepost.evidence import Plan, Row
from gatepost.fingerprint import RowKey

Progress = Callable[[int, int, int], None]
"""Called with (completed samples, registered samples, sampled tokens)."""


def requests_of(plan: Plan, prompts: Iterable[Prompt]) -> dict[str, tuple[RowKey, Request]]:
    """Request id -> registered key and request, in registered order."""
    protocol = plan.protocol
    by_task = {prompt.task_id: prompt for prompt in prompts}
    requests = {}
    for key in plan.keys:
        name = f"{key.task_id}/{key.sample_index}"
        seeds = plan.seeds(key)
        if seeds is None:
            raise RegistrationError(f"stage {plan.stage.name}: samples without a base seed")
        request = Request(
            request_id=name,
            token_ids=by_task[key.task_id].token_ids,
            seed=seeds.first,
            stage_two_seed=seeds.second if protocol.thinking == "force_close" else None,
            sampling=protocol.sampling,
            max_think_tokens=plan.sampled_think_tokens,
            max_answer_tokens=protocol.max_answer_tokens,
            think_close_id=protocol.model.think_close[1],
        )
        requests[name] = (key, request)
    return requests


@dataclass
class _Partial:
    """A continuation while it grows."""

    token_ids: "array[int]" = field(default_factory=lambda: array("i"))
    forward_input_lengths: "array[int] | None" = field(default_factory=lambda: array("i"))
    completion: Completion | None = None
    injected_start: int | None = None
    injected_tokens: int = 0

    def add(self, chunk: Chunk) -> None:
        if chunk.injected:
            self.injected_start = len(self.token_ids) if self.injected_start is None else self.injected_start
            self.injected_tokens += len(chunk.token_ids)
        self.token_ids.extend(chunk.token_ids)
        if chunk.forward_input_lengths is None:
            self.forward_input_lengths = None
        elif self.forward_input_lengths is not None:
            self.forward_input_lengths.extend(chunk.forward_input_lengths)


class Stream:
    """``stream.jsonl``: what an engine says, line by line, synced at the end of every sample.

    Where text is withheld, it is dropped here, and no file ever holds it.
    """

    def __init__(self, path: Path, *, keeps_text: bool) -> None:
        self.path, self.keeps_text = path, keeps_text
        self._file = path.open("x", encoding="utf-8")

    def write(self, event: Chunk | Completion) -> None:
        record: dict[str, object] = {"request_id": event.request_id}
        if isinstance(event, Chunk):
            record["token_ids"] = event.token_ids
            record["forward_input_lengths"] = event.forward_input_lengths
            record["injected"] = event.injected
        else:
            record["finish_reason"] = event.finish_reason
            if self.keeps_text:
                record["text"] = event.text
        self._file.write(json.dumps(record, allow_nan=False) + "\n")
        self._file.flush()
        if isinstance(event, Completion):
            os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def sample(
    engine: Engine, requests: Mapping[str, tuple[RowKey, Request]], stream: Stream, progress: Progress
) -> tuple[list[Row], dict[RowKey, str]]:
    """Run the requests, streaming to disk; returns rows in registered order, and texts (none where they are withheld).

    Raises ``EngineError`` of kind ``garbage`` for an answer to a request that was never made.
    """
    partial = {name: _Partial() for name in requests}
    completed = tokens = 0
    for event in engine.generate([request for _, request in requests.values()]):
        stream.write(event)
        if event.request_id not in partial:
            raise EngineError(f"engine answered request {event.request_id!r}, which was not asked", kind="garbage")
        if isinstance(event, Chunk):
            partial[event.request_id].add(event)
            tokens += len(event.token_ids)
        else:
            partial[event.request_id].completion = event
            completed += 1
        progress(completed, len(requests), tokens)
    rows, text = [], {}
    for name, (key, request) in requests.items():
        rows.append(_row(key, request, partial[name]))
        completion = partial[name].completion
        if completion and stream.keeps_text:
            text[key] = completion.text
    return rows, text


def _row(key: RowKey, request: Request, sampled: _Partial) -> Row:
    """A row of what came; without a completion it has no finish reason, and no gate takes it for complete."""
    completion = sampled.completion
    return Row(
        key=key,
        seed=request.seed,
        prompt_tokens=len(request.token_ids),
        token_ids=sampled.token_ids,
        forward_input_lengths=sampled.forward_input_lengths,
        finish_reason=completion.finish_reason if completion else None,
        claims={},
        stage_two_seed=request.stage_two_seed if sampled.injected_tokens else None,
        stage_one_finish_reason=completion.stage_one_finish_reason if completion else None,
        injected_start=sampled.injected_start,
        injected_tokens=sampled.injected_tokens,
        reprefilled_tokens=completion.reprefilled_tokens if completion else 0,
    )


def count_ids(stream: Path) -> tuple[int, int]:
    """(samples begun, ids) in a stream that may end in the middle of a line."""
    samples: set[str] = set()
    ids = 0
    for line in stream.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            break
        if "token_ids" in record:
            samples.add(record["request_id"])
            ids += len(record["token_ids"])
    return len(samples), ids
