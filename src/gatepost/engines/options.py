"""What can be said of a registered engine before it starts, and without its packages: its name, gatepost's own options.

Further arguments of vLLM differ from version to version, so the installed one alone can refuse them, when it starts. A
name that gatepost does not know may be one that a hook of the project registers in a live run.
"""

import difflib
from collections.abc import Mapping

from gatepost.engines.adapter import refuse_unless_taken
from gatepost.engines.scripted import ScriptedOptions
from gatepost.engines.transformers import TransformersOptions
from gatepost.engines.vllm_options import VLLMOptions
from gatepost.errors import EngineError
from gatepost.verdict import JSON

_READERS = {"scripted": ScriptedOptions.read, "transformers": TransformersOptions.read, "vllm": VLLMOptions.read}


def refuse_impossible(kind: str, options: Mapping[str, JSON], *, adapter: bool = False) -> None:
    """Raise ``EngineError`` (``refused``) for options that a known engine does not take, and for a misspelt name.

    Args:
        adapter: whether one is registered too.
    """
    if kind in _READERS:
        _READERS[kind](options)
        if adapter:
            refuse_unless_taken(kind, options)
    elif near := difflib.get_close_matches(kind.casefold(), _READERS, n=1, cutoff=0.7):
        expected = f"{near[0]}, or a name unlike that for an engine of your own"
        raise EngineError(f"kind is {kind!r}, expected {expected}", kind="refused")
