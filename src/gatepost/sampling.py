"""Sample one step: every id is on disk before anything looks at it."""

import json
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from gatepost import jsonfile
from gatepost.engine import Chunk, Completion, Engine, Prompt, Request
from gatepost.errors import EngineError, RegistrationError
from gatepost.evidence import Plan, Row
from gatepost.fingerprint import RowKey

Progress = Callable[[int, int, int], None]
"""Called with (completed samples, registered samples, sampled tokens)."""


MAX_ID = 2**31
"""Token ids lie below this: evidence stores them as 32-bit integers."""


def render(engine: Engine, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> tuple[Prompt, ...]:
    """Have an engine render chat messages. Raises ``EngineError`` unless each task has exactly one sound prompt."""
    prompts = tuple(engine.render(conversations))
    found = [prompt.task_id for prompt in prompts]
    if sorted(found) != sorted(conversations):
        raise _garbage(f"prompts for {found}, expected one for each of {list(conversations)}")
    for prompt in prompts:
        _require_ids(prompt.token_ids, f"prompt {prompt.task_id!r}")
        _require_text(prompt.text, f"prompt {prompt.task_id!r}")
    return prompts


def first_line(error: Exception) -> str:
    """An error as a receipt notes it: without what the engine printed last."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _garbage(what: str) -> EngineError:
    return EngineError(f"engine gave {what}", kind="garbage")


def _require_ids(ids: Sequence[int], where: str) -> None:
    for value in ids:
        if type(value) is not int or not 0 <= value < MAX_ID:
            raise _garbage(f"{where} with id {value!r}, expected integers in [0, 2^31)")


def _require_text(text: object, where: str) -> None:
    if not isinstance(text, str) or any("\ud800" <= character <= "\udfff" for character in text):
        # What was said is not quoted: where text is withheld, an error must not tell it either.
        raise _garbage(f"{where} with a {type(text).__name__}, expected text without surrogates")


def _require_sound(event: Chunk | Completion) -> None:
    """Raise ``EngineError`` for what no table of evidence could hold."""
    where = f"an answer to request {event.request_id!r}"
    if isinstance(event, Chunk):
        _require_ids(event.token_ids, where)
        _require_ids(event.forward_input_lengths or (), f"{where}: forward input lengths")
        return
    _require_text(event.text, where)
    for name in ("finish_reason", "stage_one_finish_reason"):
        reason = getattr(event, name)
        if reason is not None:
            _require_text(reason, f"{where}: {name}")
    _require_ids([event.reprefilled_tokens], f"{where}: reprefilled_tokens")


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
            with_adapter=plan.stage.uses_adapter(key.sample_index),
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
        jsonfile.sync_folder(path.parent)

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
        with jsonfile.naming(self.path):
            self._file.write(json.dumps(record, default=repr) + "\n")  # no answer is kept too, and refused after
            self._file.flush()
            if isinstance(event, Completion):
                os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with jsonfile.naming(self.path), self._file:
            self._file.flush()
            os.fsync(self._file.fileno())


def sample(
    engine: Engine,
    requests: Mapping[str, tuple[RowKey, Request]],
    stream: Stream,
    progress: Progress,
    limits: list[str],
) -> tuple[list[Row], dict[RowKey, str]]:
    """Run the requests, streaming to disk; returns rows in registered order, and texts (none where they are withheld).

    Args:
        limits: what to add to, should the engine fail after the last sample was complete, which costs no run.

    Raises ``EngineError`` of kind ``garbage`` for an answer that nobody asked for, that comes after its completion, or
    that is none.
    """
    partial = {name: _Partial() for name in requests}
    completed = tokens = 0
    try:
        for event in engine.generate([request for _, request in requests.values()]):
            stream.write(event)
            _require_sound(event)
            _add(partial, event)
            completed += isinstance(event, Completion)
            tokens += len(event.token_ids) if isinstance(event, Chunk) else 0
            progress(completed, len(requests), tokens)
    except EngineError as error:
        if completed < len(requests) or error.kind == "garbage":
            raise
        limits.append(f"the engine failed after the last sample: {first_line(error)}")
    rows, text = [], {}
    for name, (key, request) in requests.items():
        rows.append(_row(key, request, partial[name]))
        completion = partial[name].completion
        if completion and stream.keeps_text:
            text[key] = completion.text
    return rows, text


def _add(partial: Mapping[str, _Partial], event: Chunk | Completion) -> None:
    """Add to the continuation that an answer belongs to, unless there is none, or it is complete."""
    sampled = partial.get(event.request_id)
    if sampled is None:
        raise EngineError(f"engine answered request {event.request_id!r}, which was not asked", kind="garbage")
    if sampled.completion is not None:
        raise _garbage(f"an answer to request {event.request_id!r} after its completion")
    if isinstance(event, Chunk):
        sampled.add(event)
    else:
        sampled.completion = event


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
