"""A deterministic engine that follows a script. Standard library only, so it runs anywhere, in a child or not.

It is an engine and not a mock: prompts, budgets, seeds, stop ids and chunks go through the same code as a model's, and
its faults are real ones. Options, all of them optional:

``max_model_len``
    Context length in tokens; 4096.
``chunk_tokens``
    Ids per chunk; 16. What a killed child loses is what it held back, so with 1 it loses nothing.
``rules``
    How requests are continued. The first rule whose ``match`` fits the request id decides; a request that none fits is
    refused. The default is one ``Rule`` with its defaults. See ``Rule``.
``ignores_adapter``
    Whether samples with the adapter come out as they do without; false. An adapter that is applied shifts every draw.
``facts``
    Fields of ``EngineFacts`` to report instead of the engine's own, so that any resolved engine can be scripted.
``start_fault``, ``render_fault``, ``close_fault``
    A fault on that occasion, see ``scripted_faults``.
"""

import fnmatch
import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gatepost.engine import Chunk, Completion, EngineFacts, EngineSpec, Prompt, Request
from gatepost.engines import scripted_text as text
from gatepost.engines.adapter import digests
from gatepost.engines.plain import from_plain, to_plain
from gatepost.engines.scripted_faults import commit
from gatepost.engines.thinking_budget import (
    CHUNK_TOKENS,
    ForceClose,
    complete,
    refuse_unless_implemented,
    refuse_unless_it_fits,
)
from gatepost.errors import DataError, EngineError
from gatepost.verdict import JSON


@dataclass(frozen=True)
class Rule:
    """How some requests are continued. Ranges and lists are drawn from by the request's seed and prompt.

    Attributes:
        match: shell pattern over request ids (``*``, ``task-7/*``).
        think_tokens: range [low, high] of the one-indexed step of the close id; ``None`` never closes.
        think_text: what is thought, over and over if it is short; ``None`` draws words. Markers in it become ids.
        answers: the answer is one of these texts.
        stop: whether a stop id follows the answer; otherwise its last id goes on to the limit.
        finish_reason: ``budget`` is the true one; any other text, or null, is reported in its place.
        forwards: observed input lengths: ``cached`` [n, 1, 1, …], ``growing`` [n, n+1, …] or ``unobserved``.
        fault, fault_after_tokens: a fault once so many ids were sampled, over both stages of a forced close.
    """

    match: str = "*"
    think_tokens: Sequence[int] | None = (4, 40)
    think_text: str | None = None
    answers: Sequence[str] = tuple(f"First:{answer}" for answer in text.ANSWERS)
    stop: bool = True
    finish_reason: str | None = "budget"
    forwards: str = "cached"
    fault: str | None = None
    fault_after_tokens: int = 0


@dataclass(frozen=True)
class ScriptedOptions:
    """The options of the module docstring."""

    max_model_len: int = 4096
    chunk_tokens: int = CHUNK_TOKENS
    rules: tuple[Rule, ...] = (Rule(),)
    ignores_adapter: bool = False
    facts: Mapping[str, JSON] = field(default_factory=dict)
    start_fault: str | None = None
    render_fault: str | None = None
    close_fault: str | None = None

    @classmethod
    def read(cls, registered: Mapping[str, JSON]) -> "ScriptedOptions":
        """Read the registered options. Raises ``EngineError`` (``refused``) for an unknown or an impossible one."""
        try:
            return from_plain(cls, dict(registered), where="options", defaults=True)
        except DataError as error:
            raise EngineError(str(error), kind="refused") from error


class ScriptedEngine:
    """Follows ``gatepost.engine.Engine``."""

    def __init__(self, spec: EngineSpec) -> None:
        refuse_unless_implemented(spec, ("natural", "force_close"))
        self._options = ScriptedOptions.read(spec.options)
        try:
            self._facts = _facts(spec, self._options)
        except DataError as error:
            raise EngineError(str(error), kind="refused") from error
        self._sampling: JSON = to_plain(spec.sampling)
        self._force_close_ids = spec.force_close_ids
        self._has_adapter = spec.adapter is not None
        self._closed = False
        commit(self._options.start_fault)

    def facts(self) -> EngineFacts:
        """The scripted facts. ``sampling`` becomes unknown once a request came with other values than the spec's."""
        return replace(self._facts, sampling=self._facts.sampling or self._sampling)

    def render(self, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Prompt]:
        """Render with the engine's own template."""
        commit(self._options.render_fault)
        rendered = {task_id: text.render(messages) for task_id, messages in conversations.items()}
        return [Prompt(task_id, prompt, tuple(text.encode(prompt))) for task_id, prompt in rendered.items()]

    def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
        """Follow the script, request after request."""
        batch = list(requests)
        refuse_unless_it_fits(
            batch, self._options.max_model_len, force_close_ids=self._force_close_ids, adapter=self._has_adapter
        )
        if any(to_plain(request.sampling) != self._sampling for request in batch):
            self._sampling = None
        for request in batch:
            yield from self._continue(request)

    def close(self) -> None:
        """Nothing to release, once."""
        if not self._closed:
            self._closed = True
            commit(self._options.close_fault)

    def _continue(self, request: Request) -> Iterator[Chunk | Completion]:
        rule = self._rule(request)
        if self._options.ignores_adapter:
            request = replace(request, with_adapter=False)
        forwards, fault = _Forwards(rule.forwards), _Fault(rule)

        def stage(script: Iterator[int], *, fed_tokens: int) -> Iterator[int]:
            return forwards.observe(fault.strike(script), fed_tokens)

        def second_stage(ids: Sequence[int]) -> Iterator[int]:
            script = _answer(rule, request, _draw(request, request.stage_two_seed))
            return stage(script, fed_tokens=len(request.token_ids) + len(ids))

        events = complete(
            request,
            stage(_script(rule, request), fed_tokens=len(request.token_ids)),
            take_lengths=forwards.take,
            decode=text.decode,
            force_close=ForceClose(self._force_close_ids, second_stage) if self._force_close_ids else None,
            chunk_tokens=self._options.chunk_tokens,
        )
        for event in events:
            if isinstance(event, Completion) and rule.finish_reason != "budget":
                event = replace(event, finish_reason=rule.finish_reason)
            yield event

    def _rule(self, request: Request) -> Rule:
        for rule in self._options.rules:
            if fnmatch.fnmatchcase(request.request_id, rule.match):
                return rule
        raise EngineError(f"request {request.request_id}: no rule matches it", kind="refused")


def _facts(spec: EngineSpec, options: ScriptedOptions) -> EngineFacts:
    facts = EngineFacts(
        kind=spec.kind,
        versions={},
        device="cpu",
        device_name="script",
        use_cache=True,
        max_model_len=options.max_model_len,
        markers={marker: _one_id(marker) for marker in spec.markers},
        model_eos_ids=[text.IDS[text.MODEL_EOS]],
        tokenizer_eos_id=text.IDS[text.TURN_END],
        adapter_files=None if spec.adapter is None else digests(Path(spec.adapter.path)),
    )
    return from_plain(EngineFacts, {**to_plain(facts), **options.facts}, where="options: facts")


def _one_id(marker: str) -> int | None:
    ids = text.encode(marker)
    return ids[0] if len(ids) == 1 else None


def _script(rule: Rule, request: Request) -> Iterator[int]:
    """The endless continuation of one request."""
    draw = _draw(request, request.seed)
    thoughts = _thoughts(rule, draw)
    if rule.think_tokens is None:
        yield from thoughts
    else:
        low, high = rule.think_tokens
        yield from itertools.islice(thoughts, draw.randint(low, high) - 1)
    yield text.IDS[text.THINK_CLOSE]
    yield from _answer(rule, request, draw)


def _draw(request: Request, seed: int | None) -> random.Random:
    # Greedy has no seed. The prompt counts too, so that two tasks do not think alike.
    adapter = " adapter" if request.with_adapter else ""
    return random.Random(f"{None if request.sampling.greedy else seed} {request.token_ids}{adapter}")


def _answer(rule: Rule, request: Request, draw: random.Random) -> Iterator[int]:
    """An answer without end: stop ids follow it, or its last id over and over."""
    answer = text.encode("\n" + draw.choice(rule.answers))
    yield from answer
    stop_ids = request.sampling.stop_ids or (text.IDS[text.MODEL_EOS],)
    yield from itertools.repeat(stop_ids[0] if rule.stop else answer[-1])


def _thoughts(rule: Rule, draw: random.Random) -> Iterator[int]:
    if rule.think_text is not None:
        yield from itertools.cycle(text.encode(rule.think_text))
    while True:
        yield text.IDS[draw.choice(text.THOUGHTS)]


class _Fault:
    """The fault of one request, committed once enough of its ids were sampled, in whichever stage."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self._sampled = rule, 0

    def strike(self, script: Iterator[int]) -> Iterator[int]:
        for token_id in script:
            if self._sampled == self._rule.fault_after_tokens:
                commit(self._rule.fault)
            self._sampled += 1
            yield token_id


class _Forwards:
    """The input lengths that a model would have been seen to be fed."""

    def __init__(self, mode: str) -> None:
        if mode not in ("cached", "growing", "unobserved"):
            raise EngineError(f"forwards {mode!r}, expected cached, growing or unobserved", kind="refused")
        self._mode = mode
        self._seen: list[int] = []

    def observe(self, script: Iterator[int], fed_tokens: int) -> Iterator[int]:
        for token_id in script:
            self._seen.append(fed_tokens)
            fed_tokens = fed_tokens + 1 if self._mode == "growing" else 1
            yield token_id

    def take(self) -> tuple[int, ...] | None:
        seen, self._seen = tuple(self._seen), []
        return None if self._mode == "unobserved" else seen
