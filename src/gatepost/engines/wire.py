"""What the parent and the engine's child say to each other: one JSON object a line, strict both ways.

Every message is a dataclass; its kind on the wire is named in ``COMMANDS`` (parent to child) or ``ANSWERS`` (child to
parent). Lines are RFC 8785 bytes, so a NaN, a lone surrogate or an integer past 2^53 can be neither sent nor read.

The talk, in order: ``start`` is answered by ``facts``; ``ask_facts`` by ``facts``; ``render`` by ``prompts``; any
number of ``request`` and one ``generate`` by ``chunk`` and ``completion`` messages and one ``generated``; ``close`` by
``closed``. At any point one ``failure`` may come instead, and it is the last message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatepost.engine import Chunk, Completion, EngineFacts, EngineSpec, Prompt, Request
from gatepost.engines.plain import from_plain, to_plain
from gatepost.errors import DataError
from gatepost.jsonfile import canonical, loads

MAX_LINE_BYTES = 16 * 2**20
"""Longer lines are refused both ways: a million token ids fit, a runaway writer does not."""


@dataclass(frozen=True)
class Start:
    """Import the engine class ``target`` (``module:Class``) and construct it from ``spec``."""

    target: str
    spec: EngineSpec


@dataclass(frozen=True)
class AskFacts:
    """Say again what the engine resolved, counters included."""


@dataclass(frozen=True)
class Render:
    """Render chat messages: task id -> messages."""

    conversations: Mapping[str, Sequence[Mapping[str, str]]]


@dataclass(frozen=True)
class Generate:
    """Sample every request sent since the last ``generate``."""


@dataclass(frozen=True)
class Close:
    """Release the device and exit."""


@dataclass(frozen=True)
class Facts:
    """What the running engine resolved."""

    facts: EngineFacts


@dataclass(frozen=True)
class Prompts:
    """The rendered prompts."""

    prompts: tuple[Prompt, ...]


@dataclass(frozen=True)
class Generated:
    """Every request has been sampled."""


@dataclass(frozen=True)
class Closed:
    """The device is released; the child exits now."""


@dataclass(frozen=True)
class Failure:
    """The engine raised; the child exits now.

    Attributes:
        reason: a kind of ``EngineError``, or ``missing_package``.
        package: the missing top-level package, for that reason alone.
    """

    reason: str
    message: str
    package: str | None


Command = Start | AskFacts | Render | Request | Generate | Close
Answer = Facts | Prompts | Chunk | Completion | Generated | Closed | Failure

COMMANDS: Mapping[str, type[Any]] = {
    "start": Start,
    "ask_facts": AskFacts,
    "render": Render,
    "request": Request,
    "generate": Generate,
    "close": Close,
}
ANSWERS: Mapping[str, type[Any]] = {
    "facts": Facts,
    "prompts": Prompts,
    "chunk": Chunk,
    "completion": Completion,
    "generated": Generated,
    "closed": Closed,
    "failure": Failure,
}

_KINDS = {kind: name for name, kind in {**COMMANDS, **ANSWERS}.items()}


def encode(message: Command | Answer) -> bytes:
    """One line, newline included. Raises ``DataError`` for what is not a message or has no canonical JSON."""
    kind = _KINDS.get(type(message))
    if kind is None:
        raise DataError(f"a {type(message).__name__} is not a message")
    line = canonical({"kind": kind, **to_plain(message)}, source=f"message {kind}") + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise DataError(f"message {kind}: {len(line)} bytes, expected at most {MAX_LINE_BYTES}")
    return line


def decode_command(line: bytes) -> Command:
    """The command in one line. Raises ``DataError``."""
    command: Command = _decode(line, COMMANDS)
    return command


def decode_answer(line: bytes) -> Answer:
    """The answer in one line. Raises ``DataError``."""
    answer: Answer = _decode(line, ANSWERS)
    return answer


def _decode(line: bytes, kinds: Mapping[str, type[Any]]) -> Any:
    if len(line) > MAX_LINE_BYTES:
        raise DataError(f"message: {len(line)} bytes, expected at most {MAX_LINE_BYTES}")
    document = loads(line, source="message")
    if not isinstance(document, dict):
        raise DataError(f"message: found {type(document).__name__}, expected an object")
    kind = document.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise DataError(f"message: kind {kind!r}, expected one of {', '.join(kinds)}")
    return from_plain(kinds[kind], document, where=f"message {kind}")
