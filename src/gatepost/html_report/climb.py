"""The ladder as a picture's data: every stage at every rung, what became of it, and what opened what."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from gatepost.html_report.model import Table
from gatepost.ladder import Judgement, Judgements, Step
from gatepost.protocol import Protocol
from gatepost.stages import Scope, Stage
from gatepost.verdict import Outcome

Place = tuple[int, int]

STATES = {
    "pass": "passed",
    "fail": "failed",
    "halt": "halted",
    "open": "open next",
    "locked": "locked",
    "unused": "not needed",
}
"""State of a node -> what is written in it."""


class Node(NamedTuple):
    """A stage where it is judged: its state, and the gates of it that did not pass."""

    stage: str
    state: str
    why: tuple[str, ...] = ()


class Row(NamedTuple):
    """A row of the picture: one rung, or what comes before or after all of them."""

    label: str
    detail: str
    nodes: tuple[Node, ...]


class Edge(NamedTuple):
    """What opened what: (row, place) of two nodes, and whether the first opened the second by passing."""

    start: Place
    end: Place
    passed: bool


class Climb(NamedTuple):
    """The rows from the first to the last that can open, and the way that was taken through them."""

    rows: tuple[Row, ...]
    edges: tuple[Edge, ...]
    selected: int | None


def climb_of(protocol: Protocol, judgements: Judgements, selected: str | None) -> Climb:
    """The ladder of a protocol, as far as it was climbed.

    Args:
        judgements: those that the decision rests on.
        selected: the rung that the decision selects.
    """
    grid = list(_grid(protocol, selected))
    way = list(_way(grid, judgements))
    states = {place: _state(judgement) for place, judgement in way}
    edges = [Edge(start, end, states[start] == "pass") for (start, _), (end, _) in pairwise(way)]
    asked = dict(way)
    rows = []
    for at, (label, detail, rung, stages) in enumerate(grid):
        nodes = []
        for place, stage in enumerate(stages):
            judgement = _judged(judgements, stage, rung)
            off_the_way = "unused" if judgement else "locked"
            state = states.get((at, place), off_the_way)
            nodes.append(Node(stage.name, state, _not_passed(judgement if (at, place) in asked else None)))
        if nodes:
            rows.append(Row(label, detail, tuple(nodes)))
        else:
            edges = [_moved(edge, at) for edge in edges]
    names = [row.label for row in rows]
    return Climb(tuple(rows), tuple(edges), names.index(selected) if selected in names else None)


def _moved(edge: Edge, empty: int) -> Edge:
    """An edge whose rows are counted without one that has no stages."""
    start, end = ((row - (row > empty), place) for row, place in (edge.start, edge.end))
    return Edge(start, end, edge.passed)


_Line = tuple[str, str, str | None, Sequence[Stage]]


def _grid(protocol: Protocol, selected: str | None) -> Iterator[_Line]:
    """Label, detail, rung and stages of each row."""
    once = [stage for stage in protocol.stages if stage.scope is Scope.ONCE]
    after = [stage for stage in protocol.stages if stage.scope is Scope.SELECTED]
    ladder = [stage for stage in protocol.stages if stage.scope in (Scope.NESTED, Scope.RUNG)]
    yield "before", "the ladder", None, once
    for rung in protocol.rungs:
        yield rung.name, "tokens", rung.name, ladder
    yield "after", f"at {selected}" if selected else "a selection", selected, after


def _way(grid: Sequence[_Line], judgements: Judgements) -> Iterator[tuple[Place, Judgement | None]]:
    """The nodes that the ladder asked for, in order, by the rules of ``gatepost.ladder``."""
    for at, (_, _, rung, stages) in enumerate(grid):
        is_rung = 0 < at < len(grid) - 1
        rejected = False
        for place, stage in enumerate(stages):
            judgement = _judged(judgements, stage, rung)
            yield (at, place), judgement
            state = _state(judgement)
            if state == "fail" and is_rung:
                rejected = True
                break
            if state != "pass":
                return
        if is_rung and not rejected:
            _, _, rung, stages = grid[-1]
            for place, stage in enumerate(stages):
                judgement = _judged(judgements, stage, rung)
                yield (len(grid) - 1, place), judgement
                if _state(judgement) != "pass":
                    return
            return
        if at == len(grid) - 2:
            return


def _judged(judgements: Judgements, stage: Stage, rung: str | None) -> Judgement | None:
    step = Step(stage.name, None if stage.scope in (Scope.ONCE, Scope.NESTED) else rung)
    return next((found for found in judgements.get(step, ()) if found.rung == rung), None)


def _state(judgement: Judgement | None) -> str:
    if judgement is None:
        return "open"
    if judgement.sound is Outcome.FAIL or judgement.outcome is Outcome.INCONCLUSIVE:
        return "halt"
    return str(judgement.outcome)


def _not_passed(judgement: Judgement | None) -> tuple[str, ...]:
    verdicts = judgement.verdicts if judgement else ()
    return tuple(verdict.gate for verdict in verdicts if verdict.outcome is not Outcome.PASS)


def climb_table(climb: Climb) -> Table:
    """The picture in words."""
    rows = []
    for at, row in enumerate(climb.rows):
        for place, node in enumerate(row.nodes):
            opener = next((edge for edge in climb.edges if edge.end == (at, place)), None)
            if opener is None:
                opened = "the freeze" if node.state not in ("locked", "unused") else "nothing"
            else:
                before = climb.rows[opener.start[0]]
                name = before.nodes[opener.start[1]].stage
                opened = f"{name} ({before.label}) {'passed' if opener.passed else 'failed'}"
            state = STATES[node.state] + (f": {', '.join(node.why)}" if node.why else "")
            rows.append((f"{row.label} {row.detail}", node.stage, state, opened))
    return Table("Stages, and what opened them", ("Where", "Stage", "State", "Opened by"), tuple(rows))
