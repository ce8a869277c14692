"""What a gate says: checks with the counts behind them, and the outcome they add up to.

The logic is Kleene's three-valued conjunction. A check whose observation is unknown is inconclusive; a failed
check decides its verdict whatever the unknown ones would have said; a verdict without checks says nothing.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeVar

Item = TypeVar("Item")
JSON = Any  # a value that RFC 8785 can carry: None, bool, int, float, str, list or dict of these


class Outcome(StrEnum):
    """The three answers of a check, a gate, a stage. Only ``PASS`` opens anything."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


def conjunction(outcomes: Iterable[Outcome]) -> Outcome:
    """Kleene's AND. An empty conjunction is inconclusive: nothing was looked at."""
    seen = set(outcomes)
    if Outcome.FAIL in seen:
        return Outcome.FAIL
    return Outcome.PASS if seen == {Outcome.PASS} else Outcome.INCONCLUSIVE


_ORDERINGS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_RELATIONS = ("==", *_ORDERINGS, "in")


@dataclass(frozen=True)
class Check:
    """One comparison: ``observed relation limit``, with the counts behind the observation.

    Attributes:
        name: what was observed, with its unit where it has one (``margin_tokens``).
        observed: the value, or ``None`` when the evidence cannot tell. Tuples are kept as lists, as JSON has them.
        relation: one of ``== <= >= < > in``.
        limit: the registered value. A limit of ``None`` is unknown too, never "no limit".
        k, n: numerator and denominator where the observation is a share, in rows.
        note: why an observation is unknown, or which rows broke the rule.
    """

    name: str
    observed: JSON
    relation: str
    limit: JSON
    k: int | None = None
    n: int | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        if self.relation not in _RELATIONS:
            raise ValueError(f"check {self.name}: relation {self.relation!r}, expected one of {' '.join(_RELATIONS)}")
        # A check read back from a receipt has lists, and must equal the one that is recomputed.
        for side in ("observed", "limit"):
            object.__setattr__(self, side, _without_tuples(getattr(self, side)))

    @property
    def outcome(self) -> Outcome:
        """Unknown and non-finite values are inconclusive, and so are values that cannot be compared."""
        holds = _holds(self.observed, self.relation, self.limit)
        if holds is None:
            return Outcome.INCONCLUSIVE
        return Outcome.PASS if holds else Outcome.FAIL

    def __str__(self) -> str:
        counts = "" if self.n is None else f" ({self.k}/{self.n})"
        note = "" if self.note is None else f": {self.note}"
        return f"{self.name} {_plain(self.observed)} {self.relation} {_plain(self.limit)}{counts}{note}"

    def to_json(self) -> dict[str, JSON]:
        return {
            "name": self.name,
            "observed": self.observed,
            "relation": self.relation,
            "limit": self.limit,
            "k": self.k,
            "n": self.n,
            "note": self.note,
            "outcome": str(self.outcome),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, JSON]) -> Self:
        return cls(**{key: document[key] for key in ("name", "observed", "relation", "limit", "k", "n", "note")})


def share(name: str, k: int | None, n: int, relation: str, limit: JSON, *, note: str | None = None) -> Check:
    """A check on the share ``k / n``; an empty sample has no share and neither has an unknown count."""
    if k is None or not n:
        return Check(name, None, relation, limit, k, n, note or ("not recorded" if k is None else "empty sample"))
    return Check(name, k / n, relation, limit, k, n, note)


def every(name: str, items: Sequence[Item], holds: Callable[[Item], bool]) -> Check:
    """A check that all of the items hold. The note names the first that does not; of no items nothing is known."""
    broken = [item for item in items if not holds(item)]
    note = f"first: {broken[0]}" if broken else None
    return share(name, len(items) - len(broken), len(items), "==", 1.0, note=note)


@dataclass(frozen=True)
class Verdict:
    """A gate's answer.

    Attributes:
        gate, version: which rule judged.
        role: ``validity`` (is the evidence sound?) or ``adequacy`` (is the rung good enough?).
        checks: the comparisons. No checks means inconclusive.
        elsewhere: which evidence it takes that is not at hand, in a replay; a receipt can never hold such a verdict.
    """

    gate: str
    version: int
    role: str
    checks: tuple[Check, ...]
    elsewhere: str | None = None

    @property
    def outcome(self) -> Outcome:
        return conjunction(check.outcome for check in self.checks)

    def to_json(self) -> dict[str, JSON]:
        document = {
            "gate": self.gate,
            "version": self.version,
            "role": self.role,
            "outcome": str(self.outcome),
            "checks": [check.to_json() for check in self.checks],
        }
        return document if self.elsewhere is None else {**document, "elsewhere": self.elsewhere}

    @classmethod
    def from_json(cls, document: Mapping[str, JSON]) -> Self:
        return cls(
            gate=document["gate"],
            version=document["version"],
            role=document["role"],
            checks=tuple(Check.from_json(check) for check in document["checks"]),
            elsewhere=document.get("elsewhere"),
        )


def _holds(observed: JSON, relation: str, limit: JSON) -> bool | None:
    """Whether the relation holds; ``None`` when either side is unknown, or when they cannot be compared."""
    if not (_known(observed) and _known(limit)):
        return None
    if relation == "==":
        return _same(observed, limit)
    if relation == "in":
        return any(_same(observed, item) for item in limit) if isinstance(limit, list) else None
    return bool(_ORDERINGS[relation](observed, limit)) if _is_number(observed) and _is_number(limit) else None


def _known(value: JSON) -> bool:
    """Whether a value and everything in it is there, and finite where it is a number."""
    if isinstance(value, list):
        return all(map(_known, value))
    if isinstance(value, dict):
        return all(map(_known, value.values()))
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _same(a: JSON, b: JSON) -> bool:
    """Equality as JSON has it: to Python, true is also 1."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_tuples(value: JSON) -> JSON:
    if isinstance(value, list | tuple):
        return [_without_tuples(item) for item in value]
    return {key: _without_tuples(item) for key, item in value.items()} if isinstance(value, dict) else value


def _plain(value: JSON) -> str:
    if value is None:
        return "unknown"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
