"""The registered loop detector at speed: the answers of ``gatepost.periodicity``, from arrays of ids.

With numpy alone, or compiled where the extra ``compiled`` is installed: the same answers either way. A gate in a replay
does not come here, so that a replay needs neither.
"""

import math
from functools import cache, lru_cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatepost.audit import loops_numpy
from gatepost.audit.onset import Ids, LoopCertificate, certify_period, check_certificate
from gatepost.audit.reuse import max_ngram_count, tail_unique_ratio
from gatepost.errors import DataError, MissingExtraError
from gatepost.periodicity import LoopRule, Period

__all__ = [
    "LoopCertificate",
    "LoopFound",
    "LoopRule",
    "TraceAudit",
    "audit_trace",
    "certify",
    "check_certificate",
    "find_loop",
    "find_period",
    "max_ngram_count",
    "tail_unique_ratio",
]


class LoopFound(NamedTuple):
    """The detector's answer.

    Attributes:
        period: as ``gatepost.periodicity.tail_period`` tells it.
        smallest_period: smallest period that holds; below a rate of one the best is often a multiple of it.
    """

    period: Period
    smallest_period: int | None


class TraceAudit(NamedTuple):
    """What the audit says of one trace, in plain numbers; what was not found, or not asked for, is ``None``.

    Attributes:
        tokens: ids of the trace.
        period, match_rate: the best period that holds over the tail, and its rate there.
        smallest_period: the smallest that holds.
        nearest_period, nearest_match_rate: where none holds, the best below the rate.
        loop_start, loop_end, wasted_tokens: see ``LoopCertificate``.
        unique_ratio: distinct ids over all ids of the tail.
        max_trigram_count: how often the commonest trigram of the whole trace occurs.
    """

    tokens: int
    period: int | None
    match_rate: float | None
    smallest_period: int | None
    nearest_period: int | None
    nearest_match_rate: float | None
    loop_start: int | None
    loop_end: int | None
    wasted_tokens: int | None
    unique_ratio: float | None
    max_trigram_count: int


def find_loop(ids: Ids, rule: LoopRule, *, compiled: bool | None = None, nearest: bool = False) -> LoopFound:
    """Search the last ids of a trace, a 1-D array of int32, for a period.

    Args:
        compiled: by the compiled path, or without it; ``None`` takes it where it is installed.
        nearest: where no period holds, count every one to name the nearest. That costs far more than to know that
            none holds; without it such an answer says 0 matches of 0 compared.

    Raises ``DataError`` for another array or for a rule out of range, and ``MissingExtraError`` if the compiled path is
    asked for and not installed.
    """
    return _search(_checked(ids), rule, _path(compiled), nearest)


def find_period(ids: Ids, rule: LoopRule, *, compiled: bool | None = None) -> Period:
    """What ``gatepost.periodicity.tail_period`` tells, the nearest period too. Raises as ``find_loop``."""
    return find_loop(ids, rule, compiled=compiled, nearest=True).period


def certify(ids: Ids, rule: LoopRule, *, compiled: bool | None = None) -> LoopCertificate | None:
    """Certify the loop at the end of a trace over the whole of it; ``None`` without one. Raises as ``find_loop``."""
    array, path = _checked(ids), _path(compiled)
    period = _search(array, rule, path, False).period.period
    return None if period is None else certify_period(array, period, tail_tokens=rule.tail_tokens, find=path.stretch)


def audit_trace(ids: Ids, rule: LoopRule, compiled: bool | None = None, *, nearest: bool = False) -> TraceAudit:
    """Audit one trace: its loop, what that cost, and what is said again. Arguments and errors as in ``find_loop``."""
    array, path = _checked(ids), _path(compiled)
    found, smallest = _search(array, rule, path, nearest)
    loop, near, rate = None, None, None
    if found.period is not None:
        rate, loop = (
            found.match_rate,
            certify_period(array, found.period, tail_tokens=rule.tail_tokens, find=path.stretch),
        )
    elif found.compared:
        near = rule.tail_tokens - found.compared
    return TraceAudit(
        tokens=len(array),
        period=found.period,
        match_rate=rate,
        smallest_period=smallest,
        nearest_period=near,
        nearest_match_rate=None if near is None else found.match_rate,
        loop_start=loop.start if loop else None,
        loop_end=loop.end if loop else None,
        wasted_tokens=loop.wasted_tokens if loop else None,
        unique_ratio=tail_unique_ratio(array, rule.tail_tokens),
        max_trigram_count=max_ngram_count(array),
    )


def mismatch_budgets(rule: LoopRule) -> NDArray[np.int64]:
    """How many compared ids may differ, by period from 1 on. Raises ``DataError`` for a rule that is none."""
    return _prepared(_checked_rule(rule))[0]


def _checked_rule(rule: LoopRule) -> LoopRule:
    for name, value in (("tail_tokens", rule.tail_tokens), ("max_period_tokens", rule.max_period_tokens)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise DataError(f"loop rule: {name} is {value!r}, expected a whole number from 1 on")
    rate = rule.min_match_rate
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
        raise DataError(f"loop rule: min_match_rate is {rate!r}, expected a number above 0, up to 1")
    return rule


@lru_cache(maxsize=64)
def _prepared(rule: LoopRule) -> tuple[NDArray[np.int64], int]:
    """Budgets, and how many words the screen looks at."""
    tail, max_period, rate = rule
    compared = (tail - period for period in range(1, min(max_period, tail - 1) + 1))
    budgets = np.array([math.floor(count * (1 - rate) + 1e-12) for count in compared], np.int64)
    budgets.flags.writeable = False
    return budgets, loops_numpy.screen_words(int(budgets.max(initial=0)))


def _search(array: Ids, rule: LoopRule, path: ModuleType, nearest: bool) -> LoopFound:
    (tail, max_period, _), (budgets, words) = rule, _prepared(_checked_rule(rule))
    if len(array) < tail:
        return LoopFound(Period(None, max_period, None, 0, 0), None)
    window = array[len(array) - tail :]
    period, matches, smallest = path.search(window, budgets, words)
    if period:
        return LoopFound(Period(tail, max_period, period, matches, tail - period), smallest)
    if nearest:
        period, matches = path.nearest(window, len(budgets))
    return LoopFound(Period(tail, max_period, None, matches, tail - period if period else 0), None)


def _checked(ids: Ids) -> Ids:
    """The same ids in one piece of memory."""
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype != np.int32:
        found = f"{ids.ndim}-D array of {ids.dtype}" if isinstance(ids, np.ndarray) else type(ids).__name__
        raise DataError(f"token ids: found {found}, expected a 1-D array of int32")
    return np.ascontiguousarray(ids)


def _path(compiled: bool | None) -> ModuleType:
    """A module with ``search``, ``nearest`` and ``stretch``: two have them, and answer alike."""
    if compiled is False:
        return loops_numpy
    path = _compiled_path()
    if compiled and path is None:
        raise MissingExtraError("numba", needed_for="the compiled loop detector", extra="compiled")
    return path or loops_numpy


@cache
def _compiled_path() -> ModuleType | None:
    try:
        from gatepost.audit import loops_compiled
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        return None
    return loops_compiled
