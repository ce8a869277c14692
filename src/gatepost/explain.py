"""What one gate asks, reads and needs, as text for people. Reads; never writes."""

import difflib
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

from gatepost import bundled
from gatepost.drafts import read_draft
from gatepost.errors import GatepostError, RegistrationError
from gatepost.gate import Gate
from gatepost.gatefiles import Gates

ROLES = {
    "validity": "a failure means that the evidence is unsound, and halts the ladder",
    "adequacy": "a failure means that the rung is not good enough, and the next one opens",
}


def explain_text(name: str, gates: Gates, studies: Iterable[Path]) -> str:
    """Each installed version of a gate: its question, its rule, its channels, its thresholds and who uses it.

    Args:
        studies: folders of studies whose drafts are looked through, besides the shipped ones.

    Raises ``RegistrationError`` with similar names for a gate that is not installed.
    """
    found = [gate for (known, _), gate in sorted(gates.all.items()) if known == name]
    if not found:
        near = difflib.get_close_matches(name, sorted({known for known, _ in gates.all}), n=3)
        suggestion = f"did you mean {' or '.join(near)}? " if near else ""
        raise RegistrationError(
            f"gate {name:.100} is not installed; {suggestion}gatepost gates lists them, --gates DIR adds a folder"
        )
    folders = [*studies, bundled.folder("studies")]
    return "\n\n".join("\n".join(_lines(gate, folders)) for gate in found)


def _lines(gate: Gate, studies: Iterable[Path]) -> Iterator[str]:
    yield f"{gate.name}  version {gate.version}, {gate.role}"
    yield from _wrapped("asks", gate.question or "nothing that its file says")
    yield from textwrap.indent(inspect.getdoc(gate.function) or "Its function says no more.", "    ").splitlines()
    yield from _wrapped("reads", ", ".join(sorted(gate.reads)) or "the plan alone")
    if gate.reads_content:
        yield from _wrapped("", "what was said is among it, so no blind stage can have this gate")
    kinds = {name: _kind(gate, name) for name in gate.thresholds}
    yield from _wrapped("needs", ", ".join(f"{name} ({kind})" for name, kind in kinds.items()) or "no thresholds")
    if gate.reach is not None:
        yield from _wrapped("", "freezing refuses thresholds that no sample of the registered size could meet or miss")
    yield from _wrapped("judges", "before generation" if gate.before_generation else "after generation")
    yield from _wrapped("role", ROLES[gate.role])
    fields = "".join(f", {name} = <{kind}>" for name, kind in kinds.items())
    yield f"  in a draft: gates.{gate.name} = {{ version = {gate.version}{fields} }}"  # in one line, to be copied
    yield from _wrapped("used by", "; ".join(_users(gate, studies)) or "no study here")
    yield from _wrapped("file", inspect.getfile(gate.function))


def _wrapped(label: str, text: str) -> Iterator[str]:
    """Lines of a labelled text; a word that is longer than a line, such as a path, stays whole."""
    first = f"  {label}:" if label else ""
    yield from textwrap.wrap(
        text,
        width=100,
        initial_indent=f"{first:<14}",
        subsequent_indent=" " * 14,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _kind(gate: Gate, threshold: str) -> str:
    kind = get_type_hints(gate.function).get(threshold)
    return getattr(kind, "__name__", "any value") if kind is not None else "any value"


def _users(gate: Gate, studies: Iterable[Path]) -> Iterator[str]:
    """Each study with the drafts that list this version; drafts that cannot be read are named as such."""
    drafts = {path.resolve() for folder in studies for path in folder.glob("*/*.toml")}
    for folder in sorted({path.parent for path in drafts}):
        users = []
        for path in sorted(path for path in drafts if path.parent == folder):
            try:
                if _lists(read_draft(path), gate):
                    users.append(path.name)
            except GatepostError:
                users.append(f"{path.name}, which cannot be read")
        if users:
            yield f"{folder.name} ({', '.join(users)})"


def _lists(draft: dict[str, Any], gate: Gate) -> bool:
    """Whether a stage of a draft, which nobody checked yet, lists this version of the gate."""
    stages = draft.get("stages")
    for stage in stages if isinstance(stages, list) else ():
        listed = stage.get("gates") if isinstance(stage, dict) else None
        entry = listed.get(gate.name) if isinstance(listed, dict) else None
        if isinstance(entry, dict) and entry.get("version") == gate.version:
            return True
    return False
