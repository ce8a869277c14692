"""The table published / recomputed / equal, for one study."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gatepost.replay import Replay

FLOATING_NOISE = 1e-15
"""Below this a published number is rounding noise around zero (Wilson at 0 of 48 was printed as 6.4e-18)."""

ABSENT = object()
"""The recomputed value of a number that nothing here gives."""

Fact = tuple[str, Any, Any]


class Recomputed(NamedTuple):
    """What a study's published evidence gives.

    Attributes:
        replay: of the archive that was imported from it.
        derived: name of a published number -> recomputed value.
        beside: (name, expected, recomputed) of what has no published number of its own.
        notes: what is described there and cannot be derived.
    """

    replay: Replay
    derived: Mapping[str, Any]
    beside: Sequence[Fact]
    notes: Sequence[str]


class Line(NamedTuple):
    """One number. ``status`` is ours; ``expected`` lists those that are right."""

    kind: str
    name: str
    published: Any
    recomputed: Any
    status: str
    expected: tuple[str, ...]
    note: str

    @property
    def right(self) -> bool:
        return self.status in self.expected

    def __str__(self) -> str:
        recomputed = "not derivable" if self.recomputed is ABSENT else _short(self.recomputed)
        note = f"  {self.note}" if self.note and self.status != "match" else ""
        verdict = {"match": "equal", "mismatch": "differs, as it has to", "not_derivable": "-", "elsewhere": "-"}
        shown = verdict[self.status] if self.right else "WRONG"
        return f"{self.name:<60} {_short(self.published):>24} {recomputed:>24}  {shown}{note}"


def lines_of(items: Iterable[Mapping[str, Any]], found: Recomputed) -> list[Line]:
    """A line for each published number of a study, and for each fact beside them."""
    lines = [_line(item, found.derived.get(item["name"], ABSENT)) for item in items]
    published = {line.name for line in lines}
    for name, expected, recomputed in found.beside:
        if name not in published:
            status = "match" if equal(expected, recomputed) else "mismatch"
            lines.append(Line("fact", name, expected, recomputed, status, ("match",), ""))
    return lines


def _line(item: Mapping[str, Any], recomputed: Any) -> Line:
    """A number that is known to differ has to differ, and in the way that is described."""
    expected: tuple[str, ...] = (item["status"],)
    if recomputed is ABSENT:
        status = "not_derivable"
        if item["status"] == "match" and item["archive_file"] is None:
            status, expected = "elsewhere", ("elsewhere",)  # it takes files that are not in this folder
    else:
        status = "match" if equal(item["published"], recomputed) else "mismatch"
        if status == "mismatch" and not equal(item["recomputed"], recomputed):
            expected = ()
    return Line(item["kind"], item["name"], item["published"], recomputed, status, expected, item["note"])


def tally(lines: Iterable[Line]) -> str:
    """How many lines of each kind have which status."""
    counts = Counter((line.kind, line.status) for line in lines)
    kinds = {kind: [] for kind, _ in counts}
    for (kind, status), count in counts.items():
        kinds[kind].append(f"{count} {status.replace('_', ' ')}")
    return "; ".join(f"{kind}: {', '.join(parts)}" for kind, parts in kinds.items())


def equal(expected: Any, recomputed: Any) -> bool:
    """Equality as JSON has it; numbers that were published with a fraction may differ by rounding in the last place."""
    if isinstance(expected, float) and isinstance(recomputed, (int, float)):
        return math.isclose(expected, recomputed, rel_tol=1e-9, abs_tol=FLOATING_NOISE)
    return type(expected) is type(recomputed) and bool(expected == recomputed)


def _short(value: Any) -> str:
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"
