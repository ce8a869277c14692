"""Figures say what the evidence says, at both sides of every boundary, and what they lack where it lacks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatepost.audit.verified_macro import import_run
from gatepost.evidence import Evidence, Plan, Record
from gatepost.gatefiles import Gates
from gatepost.html_report import ending_figures, engine_figures, plots
from gatepost.html_report.facts import READS, Facts, View
from gatepost.html_report.model import (
    Demand,
    Duration,
    Figure,
    Histograms,
    Mark,
    Missing,
    Panel,
    ShareBar,
    ShareBars,
    Source,
    Strips,
    Table,
    Width,
    percent,
)  # fmt: skip
from gatepost.html_report.page import report_of
from gatepost.ladder import Judgement
from gatepost.replay import replay
from gatepost.stages import GateEntry
from gatepost.verdict import Check, Verdict
from tests.gates.builders import closed, facts, forced, plan, prompts_of, row, rows_of
from tests.published_macro import documents, write
from tests.report.conftest import report

SOURCE = Source("steps/stage/receipt.json", "sha256:" + "0" * 64)


def step(
    registered: Plan, *checks: Check, gate: str = "kv_fit", engine: Any = None, rows: Any = None, **seconds: Any
) -> Facts:
    """A step with one view, judged by one gate."""
    record = Record(
        registered,
        engine=engine,
        scheduler=engine.scheduler if engine else None,
        rows=rows,
        prompts=prompts_of(registered),
    )
    rung = None if registered.rung is None else registered.rung.name
    judgement = Judgement(rung, (Verdict(gate, 1, "adequacy", checks),))
    view = View(registered.step, Evidence(record, READS, gate="report"), judgement, None, None)
    return Facts(str(registered.step), (view,), SOURCE, False, engine, **seconds)


def drawn(figure: Figure | Missing) -> Figure:
    assert isinstance(figure, Figure), figure
    assert plots.draw(figure).startswith("<svg")
    return figure


@pytest.mark.parametrize(
    ("sizes", "told", "uncovered"),
    [
        ([1, 2, 4], None, ()),
        ([1, 2, 4, 8], None, ()),
        ([1, 2], None, (3, 4)),
        ([1, 2, 3], None, (4,)),
        ([], None, (1, 2, 3, 4)),
        ([1, 2, 4], [3], (3,)),
    ],
)
def test_widths_without_a_graph(sizes: list[int], told: list[int] | None, uncovered: tuple[int, ...]) -> None:
    graphs = {"resolved_capture_sizes": sizes, "uncovered_decode_widths": told}
    engine = facts(cuda_graphs=graphs, scheduler={"max_num_seqs": 9})  # four samples are registered
    figure = drawn(engine_figures.width_figure([step(plan(), engine=engine)]))
    assert figure.drawing == (Width("stage", 4, max(sizes, default=0), uncovered),)
    assert ("cover every decode width" in figure.takeaway) is (not uncovered)


@pytest.mark.parametrize("graphs", [None, {}, {"resolved_capture_sizes": None}, {"resolved_capture_sizes": "1"}])
def test_graphs_that_are_not_known_are_not_drawn(graphs: Any) -> None:
    engine = facts(cuda_graphs=graphs, scheduler={"max_num_seqs": 4})
    assert isinstance(engine_figures.width_figure([step(plan(), engine=engine)]), Missing)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([(4, "FULL", 5)], "All 5 decode steps"),
        ([(4, "FULL", 5), (5, "NONE", 7)], "All 5 decode steps"),  # wider than can be decoded: prompt ids
        ([(4, "FULL", 5), (4, "NONE", 1)], "1 of 6 decode steps"),
        ([(1, "PIECEWISE", 1)], "1 of 1 decode step"),
        ([(5, "FULL", 7)], None),
        ([(4, "OTHER", 5)], None),
        ([(0, "FULL", 5)], None),
        ([(4, "FULL", None)], None),
        (None, None),
    ],
)
def test_decode_steps_by_what_they_ran_on(entries: Any, said: str | None) -> None:
    histogram = entries and [{"tokens": t, "padded_tokens": t, "mode": mode, "steps": n} for t, mode, n in entries]
    engine = facts(scheduler={"max_num_seqs": 4, "dispatch": histogram})
    figure = engine_figures.steps_figure([step(plan(), engine=engine)])
    if said is None:
        assert isinstance(figure, Missing)
    else:
        assert drawn(figure).takeaway.startswith(said)


@pytest.mark.parametrize(
    ("needed", "said"),
    [(99, "margin of 1 (1\u202f%)"), (100, "margin of 0 (0\u202f%)"), (101, "1 too many"), (250, "150 too many")],
)
def test_cache_and_demand(needed: int, said: str) -> None:
    check = Check("required_tokens", needed, "<=", 100)
    figure = drawn(engine_figures.cache_figure([step(plan(), check)]))
    assert figure.drawing == (Demand("stage at 16", "tokens", needed, 100),)
    assert said in figure.takeaway
    assert ("Not all" in figure.takeaway) is (needed > 100)


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ((Check("required_tokens", None, "<=", 100),), "unknown"),
        ((Check("required_tokens", 1, "<=", None),), "unknown"),
        ((Check("other", 1, "<=", 2),), "unknown"),
    ],
)
def test_a_cache_that_is_not_known_is_not_drawn(checks: tuple[Check, ...], said: str) -> None:
    figure = engine_figures.cache_figure([step(plan(), *checks)])
    assert isinstance(figure, Missing)
    assert said in figure.reason


def test_throughput_leaves_the_start_out() -> None:
    registered = plan()
    rows = rows_of(registered, [4, 4, 4, None])
    figure = drawn(
        engine_figures.speed_figure([step(registered, rows=rows, elapsed_seconds=8.0, generation_seconds=2.0)])
    )
    sampled = sum(len(one.token_ids) for one in rows)
    assert figure.drawing == (Duration("stage", 6.0, 2.0, sampled),)
    assert figure.table.rows[0][-1] == f"{sampled / 2:.1f}"
    assert "75\u202f%" in figure.takeaway


@pytest.mark.parametrize(
    ("elapsed", "generation", "said"),
    [(None, None, "no seconds"), (8.0, None, "not recorded apart"), (8.0, 0.0, "not recorded apart")],
)
def test_a_rate_that_is_not_known_is_not_made_up(elapsed: Any, generation: Any, said: str) -> None:
    registered = plan()
    made = step(registered, rows=rows_of(registered, [4] * 4), elapsed_seconds=elapsed, generation_seconds=generation)
    figure = engine_figures.speed_figure([made])
    assert isinstance(figure, Missing)
    assert said in figure.reason


@pytest.mark.parametrize(
    ("k", "relation", "limit", "exceeds"),
    [(1, "<", 0.25, True), (1, "<=", 0.25, False), (0, "<", 0.25, False), (2, "<=", 0.25, True)],
)
def test_shares_against_their_limits(k: int, relation: str, limit: float, exceeds: bool) -> None:
    check = Check("loop_share", k / 4, relation, limit, k, 4)
    figure = drawn(ending_figures.termination_figure([step(plan(), check, gate="termination")]))
    assert ("exceeds a limit" in figure.takeaway) is exceeds
    assert figure.table.rows == (("stage at 16", "in a loop", f"{k} of 4", percent(k, 4), f"{relation} 25 %"),)


def test_a_share_that_is_not_known_is_not_zero() -> None:
    check = Check("loop_share", None, "<=", 0.25, None, 4)
    assert isinstance(ending_figures.termination_figure([step(plan(), check, gate="termination")]), Missing)


@pytest.mark.parametrize(
    ("steps", "closes", "contacts"),
    [((16, 16, 16, 16), 4, 0), ((16, 16, 16, None), 3, 1), ((None,) * 4, 0, 4), ((1, 2, 3, 4), 4, 0)],
)
def test_closes_and_contacts(steps: tuple[int | None, ...], closes: int, contacts: int) -> None:
    registered = plan()
    made = step(registered, gate="other", rows=rows_of(registered, steps))
    figure = drawn(ending_figures.close_figure([made]))
    assert figure.drawing.groups == (("stage at 16", (ShareBar(0, closes, 4), ShareBar(1, contacts, 4))),)  # type: ignore[union-attr]


def test_a_row_that_is_missing_neither_closed_nor_touched_the_cap() -> None:
    registered = plan()
    made = step(registered, gate="other", rows=rows_of(registered, [4, 4, None, None])[:3])
    figure = drawn(ending_figures.close_figure([made]))
    assert isinstance(figure.drawing, ShareBars)
    ((_, bars),) = figure.drawing.groups
    assert [(bar.k, bar.n) for bar in bars] == [(2, 4), (1, 4)]


def test_lengths_fall_into_bins_up_to_the_cap() -> None:
    registered = plan(caps=(8, 96), cap=96)
    keys = registered.keys
    rows = (
        row(keys[0], closed(1)), row(keys[1], closed(5)), row(keys[2], closed(96)),
        row(keys[3], [30] * 96, finish="length"),
    )  # fmt: skip
    figure = drawn(ending_figures.length_figure([step(registered, rows=rows)]))
    assert isinstance(figure.drawing, Histograms)
    (panel,) = figure.drawing.panels
    assert (panel.bar_width, len(panel.edges), panel.edges[-1]) == (4.0, 24, 92.0)
    assert [at for at, count in enumerate(panel.counts[0]) for _ in range(count)] == [0, 1, 23]
    assert [at for at, count in enumerate(panel.counts[1]) for _ in range(count)] == [23]
    assert panel.marks == (Mark(96, "96"),)


def looping(registered: Plan) -> Plan:
    """With the loop detector of the gate registered for the stage."""
    thresholds = {"tail_tokens": 8, "max_period_tokens": 3, "min_match_rate": 1.0, "contact_margin_tokens": 1}
    stage = replace(registered.stage, gates=(GateEntry("termination", 1, thresholds),))
    return replace(registered, stage=stage)


def test_loops_are_certified_where_they_start() -> None:
    registered = looping(plan(thinking="force_close"))
    keys = registered.keys
    loop = [31, 32, 33, 34, *[40, 41] * 6]
    rows = (
        forced(keys[0], loop), forced(keys[1], list(range(30, 46))), row(keys[2], closed(4)), row(keys[3], closed(9)),
    )  # fmt: skip
    check = Check("loop_share", 0.25, "<=", 0.25, 1, 4)
    figure = drawn(ending_figures.loop_figure([step(registered, check, gate="termination", rows=rows)]))
    assert isinstance(figure.drawing, Strips)
    (panel,) = figure.drawing.panels
    assert [(one.tokens, one.loop_start, one.period, one.wasted) for one in panel.strips] == [
        (16, 4, 2, 10), (16, None, None, 0), (8, None, None, 0), (3, None, None, 0),
    ]  # fmt: skip
    assert "1 of 4 samples: 10 of 43 thinking tokens" in figure.takeaway
    assert len(figure.table.rows) == 1


def test_without_a_detector_nobody_knows_of_loops() -> None:
    figure = ending_figures.loop_figure([step(plan(), gate="other", rows=rows_of(plan(), [4] * 4))])
    assert isinstance(figure, Missing)
    assert "no loop detector is registered" in figure.reason


def test_what_was_not_published_is_claimed_or_missing(tmp_path: Path) -> None:
    archive = import_run(write(tmp_path / "source", documents()), tmp_path / "receipts")
    shown = report_of(replay(archive.root, gates=Gates(), studies=[]), Gates())
    figures = {figure.name: figure for figure in shown.figures}
    ends, speed = drawn(figures["termination"]), drawn(figures["throughput"])
    assert isinstance(ends.drawing, ShareBars)
    assert all(bar.claimed for _, bars in ends.drawing.groups for bar in bars)
    assert [(bar.k, bar.n) for _, bars in ends.drawing.groups for bar in bars] == [(38, 48), (10, 48), (6, 48)]
    assert ends.takeaway.startswith("By the authors' counts")
    assert "claimed" in plots.draw(ends)
    assert isinstance(speed.drawing, tuple)
    assert speed.drawing == (Duration("probe@49152", None, 4809.081014, 2363163, claimed=True),)
    for name in ("natural-close", "thinking", "loops", "graph-steps"):
        assert isinstance(figures[name], Missing), name
    assert any("termination" in said and "not published" in said for said in shown.unknowns)


def test_the_figures_of_a_gpu_run() -> None:
    figures = {figure.name: figure for figure in report("verified-macro-gpu").figures}
    assert all(isinstance(figure, Figure) for figure in figures.values())
    assert drawn(figures["graph-steps"]).takeaway == "All 2\u202f163 decode steps ran on a full CUDA graph."
    ends = drawn(figures["termination"])
    assert (
        ends.takeaway == "probe@56 exceeds a limit: 12.5\u202f% in a loop, 25\u202f% unresolved, 2.1\u202f% answer cut."
    )
    assert ends.sources[0].path == "steps/probe@56/receipt.json"


@pytest.mark.parametrize("panels", [1, 7])
@pytest.mark.parametrize("log", [True, False])
def test_histograms_of_any_number_are_drawn(panels: int, log: bool) -> None:
    panel = Panel("a", (0.0, 1.0), 1.0, ((3, 0), (0, 1000)), (Mark(0.0, "0"), Mark(0.1, "close by"), Mark(2.0, "end")))
    table = Table("t", ("h",), (("r",),))
    figure = Figure("f", "t", "s", Histograms(("one", "two"), "x", "y", log, (panel,) * panels), table, ())
    text = plots.draw(figure)
    assert text.count("close by") == panels
    assert text == plots.draw(figure)
