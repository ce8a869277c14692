"""How a gate is written: one decorated function from evidence and thresholds to checks.

    from gatepost.gate import Checks, Evidence, gate, share

    @gate(version=1, reads=["completions"], reach=...)
    def natural_close(evidence: Evidence, *, min_natural_close_rate: float) -> Checks:
        ...

Keyword-only parameters without defaults *are* the thresholds: a protocol that names one too many or too few is
refused when it is frozen. A changed meaning is a new ``version`` beside the old one.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_type_hints

from packaging.utils import canonicalize_name, canonicalize_version

from gatepost.absence import AbsentRows
from gatepost.counts import count_of, counts_of
from gatepost.engine import FINISH_REASONS
from gatepost.errors import ElsewhereError, RegistrationError
from gatepost.evidence import (
    AFTER_GENERATION,
    CONTENT_CHANNELS,
    UNKNOWN_FACTS,
    Evidence,
    Grade,
    Plan,
    Record,
    Row,
    Sample,
    Score,
)
from gatepost.fingerprint import RowKey
from gatepost.periodicity import Period, loop_certificate, tail_period
from gatepost.reach import Reach, SampleSize, counts_in_band, maximum_count, minimum_count
from gatepost.seeds import SEED_LIMIT, child_seed
from gatepost.stats import LOWER_BOUNDS
from gatepost.thinking import Ending
from gatepost.usercode import all_of, blamed
from gatepost.verdict import JSON, Check, Outcome, Verdict, conjunction, every, share

__all__ = [
    "FINISH_REASONS",
    "JSON",
    "LOWER_BOUNDS",
    "SEED_LIMIT",
    "UNKNOWN_FACTS",
    "Check",
    "Checks",
    "Ending",
    "Evidence",
    "Gate",
    "Grade",
    "Outcome",
    "Period",
    "Plan",
    "Reach",
    "Row",
    "RowKey",
    "Sample",
    "SampleSize",
    "Score",
    "canonicalize_name",
    "canonicalize_version",
    "child_seed",
    "conjunction",
    "count_of",
    "counts_in_band",
    "counts_of",
    "every",
    "gate",
    "loop_certificate",
    "maximum_count",
    "minimum_count",
    "share",
    "tail_period",
]

Checks = Iterable[Check]
ROLES = ("validity", "adequacy")
_ACCEPTED: Mapping[type, set[type]] = {bool: {bool}, int: {int}, float: {int, float}, str: {str}}

_OF_ROWS = frozenset({"completions", "token_ids"})

ReachFunction = Callable[..., Iterable[Reach]]


@dataclass(frozen=True)
class Gate:
    """A registered rule. ``judge`` is the only way to run it, live and in replay."""

    name: str
    version: int
    role: str
    reads: frozenset[str]
    thresholds: tuple[str, ...]
    function: Callable[..., Checks]
    reach: ReachFunction | None

    @property
    def reads_content(self) -> bool:
        """Whether a blind stage must refuse it."""
        return bool(self.reads & CONTENT_CHANNELS)

    @property
    def question(self) -> str:
        """What it asks: the first paragraph of its file, in one line; nothing where the file says nothing."""
        said = inspect.getdoc(inspect.getmodule(self.function)) or ""
        return " ".join(said.partition("\n\n")[0].split())

    @property
    def before_generation(self) -> bool:
        """Whether it can judge before anything is sampled."""
        return not self.reads & AFTER_GENERATION

    def require_thresholds(self, thresholds: Mapping[str, JSON], *, where: str) -> None:
        """Raise ``RegistrationError`` unless exactly this gate's thresholds are given, each of its declared type."""
        missing = sorted(set(self.thresholds) - set(thresholds))
        unknown = sorted(set(thresholds) - set(self.thresholds))
        if missing or unknown:
            found = ", ".join(sorted(thresholds)) or "none"
            expected = ", ".join(self.thresholds) or "none"
            problem = " and ".join(
                [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
            )
            raise RegistrationError(f"{where}: {problem}; found {found}, expected {expected}")
        declared = get_type_hints(self.function)
        for name, value in thresholds.items():
            # A number written as text would be frozen, and then compare with nothing.
            for kind, accepted in _ACCEPTED.items():
                if declared.get(name) is kind and type(value) not in accepted:
                    raise RegistrationError(f"{where}: {name} is {value!r}, expected {kind.__name__}")

    def judge(self, record: Record, thresholds: Mapping[str, JSON]) -> Verdict:
        """Run the rule over a record, through a view that holds only the declared channels.

        A rule that comes upon evidence which is not at hand has said nothing, whatever it made of the rest.

        Raises ``UserCodeError`` for a rule that raises, or yields anything but checks.
        """
        evidence = Evidence(record, sorted(self.reads), gate=self.name)
        stage, rung = record.plan.stage, record.plan.rung
        doing = f"judging stage {stage.name}" if rung is None else f"judging stage {stage.name} at {rung.name}"
        try:
            with blamed(str(self), doing):
                checks = self.function(evidence, **thresholds)
            made = all_of(Check, checks, name=str(self), doing=doing)
        except ElsewhereError as absent:
            return Verdict(self.name, self.version, self.role, (), str(absent))
        if record.absent_rows is not None and self.reads & _OF_ROWS:
            made = tuple(_naming(record.absent_rows, check) for check in made)
        return Verdict(self.name, self.version, self.role, made)

    def reaches(self, size: SampleSize, thresholds: Mapping[str, JSON], *, where: str) -> tuple[Reach, ...]:
        """What its ``reach`` says of a sample size. Raises ``UserCodeError`` as ``judge`` does."""
        if self.reach is None:
            return ()
        name = f"reach of {self}"
        with blamed(name, where):
            reaches = self.reach(size, **thresholds)
        return all_of(Reach, reaches, name=name, doing=where)

    def __str__(self) -> str:
        return f"gate {self.name} (version {self.version}, {inspect.getfile(self.function)})"


def _naming(absent: AbsentRows, check: Check) -> Check:
    """The check; if it is open, its note names the rows that would decide it."""
    if check.outcome is not Outcome.INCONCLUSIVE:
        return check
    return replace(check, note=str(absent) if check.note is None else f"{check.note}: {absent}")


def gate(
    *, version: int, reads: Sequence[str], role: str = "adequacy", reach: ReachFunction | None = None
) -> Callable[[Callable[..., Checks]], Gate]:
    """Declare a gate.

    Args:
        version: of the rule's meaning.
        reads: channels, out of ``Evidence.CHANNELS``.
        role: ``validity`` if a failure means that the evidence is unsound, ``adequacy`` if it means that the rung
            is not good enough. Only an adequacy failure rejects a rung; a validity failure halts the ladder.
        reach: ``reach(size, **thresholds)`` yields one ``Reach`` per threshold that a sample can meet or miss. A
            gate that judges samples by thresholds has to have one, or no protocol can freeze it.
    """

    def declare(function: Callable[..., Checks]) -> Gate:
        name = function.__name__
        unknown = sorted(set(reads) - Evidence.CHANNELS)
        if unknown:
            known = ", ".join(sorted(Evidence.CHANNELS))
            raise TypeError(f"gate {name}: unknown channel {', '.join(unknown)}, expected some of {known}")
        if role not in ROLES:
            raise TypeError(f"gate {name}: role {role!r}, expected one of {', '.join(ROLES)}")
        parameters = list(inspect.signature(function).parameters.values())[1:]
        for parameter in parameters:
            if parameter.kind is not parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
                raise TypeError(f"gate {name}: {parameter.name} must be keyword-only and without a default")
        thresholds = tuple(parameter.name for parameter in parameters)
        return Gate(name, version, role, frozenset(reads), thresholds, function, reach)

    return declare
