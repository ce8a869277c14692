"""The published charts of both studies, redrawn from what was imported, and the same charts of the project's own runs.

Study A's shows how samples end at each budget, study B's natural close and cap contact at each cap. Beside each bar the
table has the published share; one that differs makes the comparison fail.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance import native_seam, verified_macro
from gatepost.archive import find_archives
from gatepost.audit.verified_macro import read_run
from gatepost.gatefiles import Gates
from gatepost.html_report.ending_figures import Ends, close_figure, ends_figure, limit_bars, termination_figure
from gatepost.html_report.facts import read_facts
from gatepost.html_report.markup import document, element, escape, paragraph
from gatepost.html_report.model import Figure, Missing, ShareBars
from gatepost.html_report.page import STYLE, figure_markup
from gatepost.replay import Replay, replay

RATES_AT_CAP = ("cap{}.natural_close_rate", "analysis.cap{}.cap_contact_rate")
RATES_AT_BUDGET = ("{}.periodic_loop_rate", "{}.unresolved_cap_contact_rate", "{}.answer_limit_contact_rate")

Published = Mapping[tuple[str, str], Any]
"""(experiment, name of a number) -> the number as published."""


def closes(replayed: Replay, published: Published) -> tuple[Figure, list[str]]:
    """Study B's chart, from its published rows, and which bars are not as published."""
    figure = close_figure(read_facts(replayed, Gates()))
    assert isinstance(figure, Figure), figure
    caps = [rung.name for rung in replayed.archive.protocol.rungs]
    names = [rate.format(cap) for cap in caps for rate in RATES_AT_CAP]
    return _beside(figure, [(native_seam.EXPERIMENT, name) for name in names], published)


def ends(source: Path, replayed: Replay, published: Published) -> tuple[Figure, list[str]]:
    """Study A's chart: both probes, opened by the ladder or not, from the authors' counts: no rows were published."""
    archive, run = replayed.archive, read_run(source)
    (first, *_) = read_facts(replayed, Gates())
    probes = [verified_macro.judged(archive, run, probe) for probe in run.probes]
    groups = [
        Ends(str(probe.published.step), limit_bars(probe.by_claims, claimed=True), first.source) for probe in probes
    ]
    names = [rate.format(probe.published.rung) for probe in probes for rate in RATES_AT_BUDGET]
    return _beside(ends_figure(groups), [(verified_macro.EXPERIMENT, name) for name in names], published)


def own(receipts: Path) -> Iterator[tuple[str, Figure]]:
    """The same charts of each archive that has what they take: the name of the archive, and a figure."""
    for root in find_archives(receipts):
        replayed = replay(root, gates=Gates(), studies=[])
        facts = read_facts(replayed, Gates())
        found: list[Figure | Missing] = [termination_figure(facts), close_figure(facts)]
        yield from ((root.name, one) for one in found if isinstance(one, Figure))


def page(published: Sequence[tuple[str, Figure]], of_the_project: Sequence[tuple[str, Figure]]) -> bytes:
    """All of them on one page."""
    body = [element("header", element("h1", "The published charts, redrawn"))]
    for title, figures in (("As published", published), ("The project's own runs", of_the_project)):
        parts = [element("h2", escape(title))]
        for name, figure in figures:
            parts += [paragraph(name, class_="eyebrow"), figure_markup(figure._replace(name=f"{name}-{figure.name}"))]
        body.append(element("section", "".join(parts)))
    return document("The published charts, redrawn", style=STYLE, body=body[0] + element("main", "".join(body[1:])))


def _beside(figure: Figure, names: Sequence[tuple[str, str]], published: Published) -> tuple[Figure, list[str]]:
    """The figure, its table with the published share of each bar, and the names of those that differ."""
    assert isinstance(figure.drawing, ShareBars)
    bars = [bar for _, group in figure.drawing.groups for bar in group]
    differ = [
        name
        for bar, (experiment, name) in zip(bars, names, strict=True)
        if not math.isclose(bar.k / bar.n, published[experiment, name], rel_tol=1e-12)
    ]
    rows = tuple(
        (*row, f"{published[which]:.10g}", "no" if which[1] in differ else "yes")
        for row, which in zip(figure.table.rows, names, strict=True)
    )
    table = figure.table._replace(head=(*figure.table.head, "Published share", "Equal"), rows=rows)
    return figure._replace(table=table), differ
