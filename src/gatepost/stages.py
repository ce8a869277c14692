"""What a plan runs, as typed data: its stages, the gates that each of them lists, and the rungs that they climb."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from gatepost.verdict import JSON


class Scope(StrEnum):
    """When a stage runs, and over which rungs it is judged."""

    ONCE = "once"  # before the ladder; judged once, at no rung
    NESTED = "nested"  # sampled once at the top rung, judged at every rung by right-censoring
    RUNG = "rung"  # sampled at a rung, judged at that rung
    SELECTED = "selected"  # only after a selection, at the selected rung, on a split nothing else may open


@dataclass(frozen=True)
class Rung:
    """A budget to try. ``engine`` overrides engine options for this rung alone."""

    max_think_tokens: int
    engine: Mapping[str, JSON]

    @property
    def name(self) -> str:
        return str(self.max_think_tokens)


@dataclass(frozen=True)
class GateEntry:
    """One registered gate: name, version and every threshold it takes."""

    name: str
    version: int
    thresholds: Mapping[str, JSON]


@dataclass(frozen=True)
class Stage:
    """One phase of the study.

    Attributes:
        scope: when it runs and where it is judged.
        splits: task splits it uses. A stage that samples uses exactly one.
        samples_per_task: continuations per prompt; 0 for a stage that starts no engine.
        max_tasks: how many tasks of the split to sample, from its start; ``None`` for all.
        max_think_tokens: fixed length for a stage outside the ladder (the model smoke); else the rung decides.
        arm: the condition compared, as the task domain knows it; ``None`` in a study without arms.
        base_seed: root of the stage's child seeds.
        text: ``withheld`` (never stored), ``sealed`` (stored apart, for a stage after selection to open) or ``graded``.
        gates: what is judged.
        scores: the ladder stages whose text it opens and scores, at the selected rung; empty for any other stage.
        adapter: which samples use the adapter: ``on``, ``off``, or ``contrast``: without, with, and with it again, all
            three of a task under one seed; ``None`` where no adapter is registered, or nothing is sampled.
    """

    name: str
    scope: Scope
    arm: str | None
    splits: tuple[str, ...]
    samples_per_task: int
    max_tasks: int | None
    max_think_tokens: int | None
    base_seed: int | None
    text: str
    gates: tuple[GateEntry, ...]
    scores: tuple[str, ...] = ()
    adapter: str | None = None

    @property
    def blind(self) -> bool:
        """Whether gates of this stage may see nothing that was said."""
        return self.text != "graded"

    @property
    def samples(self) -> bool:
        """Whether this stage starts an engine."""
        return self.samples_per_task > 0

    def uses_adapter(self, sample_index: int) -> bool:
        """Whether a sample is drawn with the adapter."""
        return self.adapter == "on" or (self.adapter == "contrast" and sample_index > 0)

    def draw(self, sample_index: int) -> int:
        """The sample whose seeds a sample takes: itself, but the first of its task in a contrast."""
        return 0 if self.adapter == "contrast" else sample_index

    @classmethod
    def from_json(cls, document: Mapping[str, JSON]) -> Self:
        gates = tuple(
            GateEntry(name, entry["version"], entry["thresholds"]) for name, entry in sorted(document["gates"].items())
        )
        return cls(
            name=document["name"],
            scope=Scope(document["scope"]),
            arm=document["arm"],
            splits=tuple(document["splits"]),
            samples_per_task=document["samples_per_task"],
            max_tasks=document["max_tasks"],
            max_think_tokens=document["max_think_tokens"],
            base_seed=document["base_seed"],
            text=document["text"],
            gates=gates,
            scores=tuple(document["scores"] or ()),
            adapter=document.get("adapter"),
        )
