"""The picture of the ladder shows what the fold decides, for every way through it."""

import itertools
from collections.abc import Iterator

import pytest

from gatepost.html_report.climb import STATES, climb_of, climb_table
from gatepost.html_report.picture import picture
from gatepost.ladder import Decision, Judgement, Judgements, decide, judged_rungs
from gatepost.protocol import Protocol
from gatepost.verdict import Check, Verdict
from tests.protocols import protocol, stage

PROTOCOLS = (
    protocol(stage("checks", "once"), stage("selection", "nested"), stage("confirmation", "selected")),
    protocol(stage("probe", "rung"), stage("base", "rung")),
    protocol(stage("checks", "once"), stage("probe", "rung"), stage("more", "selected"), stage("last", "selected")),
)
KINDS = ("pass", "fail", "halt")


def judgement(kind: str, rung: str | None) -> Judgement:
    sound, good = {"pass": (1, 1), "fail": (1, 0), "halt": (None, 1)}[kind]
    verdicts = [Verdict("sound", 1, "validity", (Check("sound", sound, "==", 1),))]
    return Judgement(rung, (*verdicts, Verdict("good", 1, "adequacy", (Check("good", good, "==", 1),))))


def ways(of: Protocol) -> Iterator[tuple[Judgements, Decision]]:
    """Every record that the ladder can come to: each open step judged in each way at each of its rungs."""
    waiting: list[Judgements] = [{}]
    while waiting:
        judgements = waiting.pop()
        decision = decide(of, judgements)
        yield judgements, decision
        if decision.state == "run" and decision.step is not None:
            rungs = judged_rungs(of, decision.step)
            for kinds in itertools.product(KINDS, repeat=len(rungs)):
                made = [judgement(kind, rung) for kind, rung in zip(kinds, rungs, strict=True)]
                waiting.append({**judgements, decision.step: made})


@pytest.mark.parametrize("of", PROTOCOLS, ids=["nested", "rungs", "after"])
def test_the_picture_is_the_decision(of: Protocol) -> None:
    seen = set()
    for judgements, decision in ways(of):
        seen.add(decision.state)
        climb = climb_of(of, judgements, decision.rung)
        nodes = [(row, node) for row in climb.rows for node in row.nodes]
        found = {state: [(row.label, node) for row, node in nodes if node.state == state] for state in STATES}
        last = climb.rows[climb.edges[-1].end[0]].nodes[climb.edges[-1].end[1]] if climb.edges else nodes[0][1]
        if decision.state == "run":
            ((_, node),) = found["open"]
            assert decision.step is not None
            assert (node.stage, node) == (decision.step.stage, last)
        else:
            assert not found["open"]
        if decision.state == "halted":
            assert decision.step is not None
            stopped = [*found["halt"], *((row, node) for row, node in found["fail"] if node.stage in ("checks",))]
            assert [node.stage for _, node in stopped] == [decision.step.stage]
        elif decision.state == "exhausted":
            assert {row for row, _ in found["fail"]} == {rung.name for rung in of.rungs}
        elif decision.state == "not_replicated":
            assert last.state == "fail"
        elif decision.state in ("selected", "replicated"):
            assert last.state == "pass"
        assert (climb.selected is not None) is (decision.rung is not None)
    assert seen >= {"run", "halted", "exhausted"}


@pytest.mark.parametrize("of", PROTOCOLS, ids=["nested", "rungs", "after"])
def test_what_was_opened_has_one_arrow_and_what_is_locked_has_none(of: Protocol) -> None:
    for judgements, decision in ways(of):
        climb = climb_of(of, judgements, decision.rung)
        ends = [edge.end for edge in climb.edges]
        assert len(ends) == len(set(ends))
        for at, row in enumerate(climb.rows):
            for place, node in enumerate(row.nodes):
                on_the_way = node.state not in ("locked", "unused")
                assert ((at, place) in ends) is (on_the_way and (at, place) != (0, 0))
        for edge in climb.edges:
            opener = climb.rows[edge.start[0]].nodes[edge.start[1]]
            assert opener.state == ("pass" if edge.passed else "fail")
        assert len(climb_table(climb).rows) == sum(len(row.nodes) for row in climb.rows)


def test_the_picture_draws_every_box_and_every_arrow() -> None:
    of = PROTOCOLS[2]
    for judgements, decision in itertools.islice(ways(of), 40):
        climb = climb_of(of, judgements, decision.rung)
        drawn = picture(climb, name="ladder", title="t", description="d")
        assert drawn.count('class="node ') == sum(len(row.nodes) for row in climb.rows)
        assert drawn.count('class="edge ') == len(climb.edges)
        assert ('class="chosen"' in drawn) is (decision.rung is not None)
