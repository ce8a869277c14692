"""Whole numbers among facts that came as plain JSON, and ``None`` for anything else."""

from collections.abc import Mapping

from gatepost.verdict import JSON


def count_of(facts: JSON, name: str, *, at_least: int = 0) -> int | None:
    """The number of that name; ``None`` for one that cannot be."""
    value = facts.get(name) if isinstance(facts, Mapping) else None
    return value if type(value) is int and value >= at_least else None


def counts_of(facts: JSON, name: str) -> list[int] | None:
    """The list of numbers of that name."""
    values = facts.get(name) if isinstance(facts, Mapping) else None
    return values if isinstance(values, list) and all(type(value) is int for value in values) else None
