"""Engines by name. A name stands for an import string, so that naming an engine never imports it.

The import happens in the child process alone; see ``gatepost.engines.child``.
"""

import re
from typing import NamedTuple

from gatepost.errors import EngineError

_IMPORT_STRING = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class EngineTarget(NamedTuple):
    """Where an engine lives: ``module:Class``, and the extra of gatepost that installs what it needs, if any."""

    import_string: str
    extra: str | None


_TARGETS = {
    "scripted": EngineTarget("gatepost.engines.scripted:ScriptedEngine", None),
    "transformers": EngineTarget("gatepost.engines.transformers:TransformersEngine", "transformers"),
    "vllm": EngineTarget("gatepost.engines.vllm:VLLMEngine", "vllm"),
}


def register(kind: str, import_string: str) -> None:
    """Make an engine known by name.

    Args:
        kind: the name that protocols use.
        import_string: ``module:Class``; the class takes an ``EngineSpec`` and follows ``gatepost.engine.Engine``.

    Raises:
        EngineError: ``refused``, for a malformed import string or a name that already stands for another engine.
    """
    if not _IMPORT_STRING.fullmatch(import_string):
        raise EngineError(f"engine {kind!r}: {import_string!r} is not of the form module:Class", kind="refused")
    taken = _TARGETS.setdefault(kind, EngineTarget(import_string, None))
    if taken.import_string != import_string:
        raise EngineError(f"engine {kind!r} is already {taken.import_string}, not {import_string}", kind="refused")


def resolve(kind: str) -> EngineTarget:
    """The engine behind a registered name; an import string stands for itself.

    Raises:
        EngineError: ``refused``, naming the known engines.
    """
    if kind in _TARGETS:
        return _TARGETS[kind]
    if _IMPORT_STRING.fullmatch(kind):
        return EngineTarget(kind, None)
    known = ", ".join(sorted(_TARGETS))
    raise EngineError(f"engine {kind!r} is unknown, expected one of {known}, or module:Class", kind="refused")
