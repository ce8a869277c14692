"""Figures of how samples end: limits touched, thinking closed, how long it took, and where loops begin."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gatepost.audit.claims import termination_by_claims
from gatepost.errors import ElsewhereError
from gatepost.html_report.facts import Facts, View
from gatepost.html_report.model import (
    Figure,
    Histograms,
    Mark,
    Missing,
    Panel,
    ShareBar,
    ShareBars,
    Source,
    Strip,
    StripPanel,
    Strips,
    Table,
    counted,
    listed,
    number,
    percent,
)
from gatepost.periodicity import loop_certificate
from gatepost.verdict import Check, Verdict

LIMITS = (("loop_share", "in a loop"), ("unresolved_share", "unresolved"), ("answer_limit_share", "answer cut"))
BINS = 24
MOST_STRIPS = 120
WHISKERS = "Thin lines are two-sided 95 % Wilson intervals."

ENDS = ("termination", "How samples end, per rung")
CLOSES = ("natural-close", "Natural close and cap contact, per cap")
LENGTHS = ("thinking", "How long thinking takes")
LOOPS = ("loops", "Where loops start")


class Ends(NamedTuple):
    """How the samples of a step end at a rung: the bars of one verdict, and the record they are from."""

    label: str
    bars: tuple[ShareBar, ...]
    source: Source


def termination_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """Shares of samples in a loop, unresolved, and with a cut answer, against their registered limits."""
    asked = [(one, view) for one in facts for view in one.views if view.verdict("termination")]
    groups = [Ends(view.label, bars, one.source) for one, view in asked if (bars := _limit_bars(view))]
    if not groups:
        why = "its evidence is not at hand" if asked else "no judged step registers the gate termination"
        return Missing(*ENDS, f"Loops and cut answers are not counted here: {why}.")
    return ends_figure(groups)


def ends_figure(groups: Sequence[Ends]) -> Figure:
    """The figure of these steps, however their counts came to be known."""
    over = [one for one in groups if any(map(_breaks, one.bars))]
    claimed = [one.label for one in groups if one.bars[0].claimed]
    if over:
        takeaway = f"{listed([one.label for one in over])} {'exceeds a limit' if len(over) == 1 else 'exceed limits'}"
        worst = ", ".join(f"{percent(bar.k, bar.n)} {LIMITS[bar.series][1]}" for bar in over[0].bars if bar.k)
        takeaway += f": {worst}." if len(over) == 1 else f"; in {over[0].label} {worst}."
    else:
        takeaway = f"No limit is exceeded in {listed([one.label for one in groups])}."
    if claimed:
        takeaway = f"By the authors' counts: {takeaway}"
    note = WHISKERS
    if claimed:
        note = f"{listed(claimed)}: the authors' counts, not recomputed, as the rows were not published. {note}"
    drawing = ShareBars(tuple(name for _, name in LIMITS), tuple((one.label, one.bars) for one in groups))
    table = shares_table("Samples that touch a limit, per rung", drawing)
    return Figure(*ENDS, takeaway, drawing, table, tuple(dict.fromkeys(one.source for one in groups)), note)


def _limit_bars(view: View) -> tuple[ShareBar, ...]:
    if view.absent is not None:
        return limit_bars(termination_by_claims(view.plan, view.absent), claimed=True)
    verdict = view.verdict("termination")
    return limit_bars(verdict, claimed=False) if verdict else ()


def limit_bars(verdict: Verdict, *, claimed: bool) -> tuple[ShareBar, ...]:
    """The shares that a verdict of the gate termination knows."""
    checks = {check.name: check for check in verdict.checks}
    bars = [_bar(series, checks.get(name), claimed) for series, (name, _) in enumerate(LIMITS)]
    return tuple(bar for bar in bars if bar is not None)


def _bar(series: int, check: Check | None, claimed: bool) -> ShareBar | None:
    if check is None or check.observed is None or check.k is None or not check.n:
        return None
    return ShareBar(series, check.k, check.n, check.limit, check.relation, claimed)


def _breaks(bar: ShareBar) -> bool:
    if bar.limit is None or bar.relation is None:
        return False
    return str(Check("share", bar.k / bar.n, bar.relation, bar.limit).outcome) == "fail"


def shares_table(caption: str, drawing: ShareBars) -> Table:
    """The bars of a drawing as rows."""
    rows = tuple(
        (
            label,
            drawing.series[bar.series],
            f"{bar.k} of {bar.n}",
            percent(bar.k, bar.n),
            "none" if bar.limit is None else f"{bar.relation} {100 * bar.limit:g} %",
        )
        for label, bars in drawing.groups
        for bar in bars
    )
    return Table(caption, ("Step", "Samples", "Count", "Share", "Registered limit"), rows)


def close_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """At each cap, the share of samples that closed their thinking by it, and of those that ran into it."""
    found = [
        (one, view, bars)
        for one in facts
        for view in one.views
        if view.judgement.rung is not None and not one.attempt and (bars := _close_bars(view))
    ]
    if not found:
        return Missing(*CLOSES, f"Natural closes cannot be counted: {_why_no_closes(facts)}.")
    passing = [view.label for _, view, bars in found if bars[0].limit is not None and not _breaks(bars[0])]
    registered = [view for _, view, bars in found if bars[0].limit is not None]
    said = listed([f"{bars[0].k} of {bars[0].n} at {view.plan.max_think_tokens}" for _, view, bars in found])
    takeaway = f"Thinking closed by itself in {said} tokens."
    if registered:
        takeaway += f" The registered share is met in {listed(passing)}." if passing else " No cap meets the limit."
    drawing = ShareBars(("closed by itself", "still thinking at the cap"), tuple((v.label, b) for _, v, b in found))
    table = shares_table("Natural close and cap contact, per cap", drawing)
    nested = any(view.step.rung is None for _, view, _ in found)
    note = "Caps of one stage are nested views of the same samples, by right-censoring. " * nested + WHISKERS
    return Figure(*CLOSES, takeaway, drawing, table, _sources(one for one, _, _ in found), note)


def _close_bars(view: View) -> tuple[ShareBar, ...]:
    if view.samples_away or not view.plan.keys:
        return ()
    closed, complete, n = view.evidence.closed_samples, view.evidence.complete_samples, len(view.plan.keys)
    if closed is None or complete is None:
        return ()
    check = view.check("natural_close", "natural_close_rate")
    limit, relation = (check.limit, check.relation) if check else (None, None)
    return ShareBar(0, len(closed), n, limit, relation), ShareBar(1, len(complete) - len(closed), n)


def _why_no_closes(facts: Sequence[Facts]) -> str:
    for one in facts:
        for view in one.views:
            if view.absent is not None:
                return f"{view.absent.rows} rows of {one.name} were not published"
            if view.samples_away:
                return view.samples_away
            if view.plan.protocol.thinking == "engine_budget":
                return "the engine closes thinking at a budget of its own, and does not say when it did"
    return "no step of a rung has samples on record"


def length_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """Histogram of thinking tokens for each sampled step, with the caps at which it is judged."""
    found = [(one, panel) for one in facts if not one.attempt and (panel := _length_panel(one)) is not None]
    if not found:
        return Missing(*LENGTHS, f"Lengths of thinking cannot be told: {_why_no_closes(facts)}.")
    said = []
    for _, panel in found:
        n, cut = sum(map(sum, panel.counts)), sum(panel.counts[1])
        said.append(f"{cut} of {n} samples of {panel.label}")
    takeaway = f"Still thinking at the cap: {listed(said)}."
    rows = tuple(
        (panel.label, f"{edge:g} to {edge + panel.bar_width:g}", *(str(counts[at]) for counts in panel.counts))
        for _, panel in found
        for at, edge in enumerate(panel.edges)
        if any(counts[at] for counts in panel.counts)
    )
    series = ("ended by itself", "cut at the cap")
    table = Table("Samples by thinking tokens", ("Step", "Thinking tokens", "Ended by itself", "Cut at the cap"), rows)
    drawing = Histograms(series, "thinking tokens", "samples", False, tuple(panel for _, panel in found))
    return Figure(*LENGTHS, takeaway, drawing, table, _sources(one for one, _ in found))


def _length_panel(facts: Facts) -> Panel | None:
    view = facts.views[-1]
    if view.judgement.rung is None or view.samples_away or view.plan.protocol.thinking in ("engine_budget", "no_think"):
        return None
    samples, cap = view.evidence.complete_samples, view.plan.sampled_think_tokens
    if not samples:
        return None
    bar_width = max(1, -(-cap // BINS))
    edges = tuple(float(edge) for edge in range(0, cap, bar_width))
    counts = [[0] * len(edges), [0] * len(edges)]
    for sample in samples.values():
        tokens = min(sample.continuation.thinking_tokens, cap)
        ended = sample.own_close_step is not None or (sample.stopped and sample.continuation.close_step is None)
        counts[0 if ended else 1][min(tokens // bar_width, len(edges) - 1)] += 1  # the last one holds the cap itself
    caps = [one.plan.max_think_tokens for one in facts.views]
    marks = tuple(Mark(at, number(at)) for at in caps if at is not None)
    return Panel(facts.name, edges, float(bar_width), (tuple(counts[0]), tuple(counts[1])), marks)


def loop_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """A strip per sample over its thinking tokens: where the registered detector certifies a loop, and its cost."""
    asked = [one for one in facts if not one.attempt and one.views[0].verdict("termination")]
    found = [(one, panel) for one in asked if (panel := _strip_panel(one.views[0])) is not None]
    if not found:
        why = "no loop detector is registered (gate termination)"
        if asked:
            ids_away = any(view.evidence.completions for one in asked for view in one.views if not view.samples_away)
            why = "the token ids are not at hand" if ids_away else _why_no_closes(asked)
        return Missing(*LOOPS, f"Where loops start is unknown: {why}.")
    every = [strip for _, panel in found for strip in panel.strips]
    loops = [strip for strip in every if strip.loop_start is not None]
    wasted, tokens = sum(strip.wasted for strip in loops), sum(strip.tokens for strip in every)
    takeaway = f"Thinking ends in a loop in none of {counted(len(every), 'sample')}."
    if loops:
        takeaway = (
            f"Thinking ends in a loop in {number(len(loops))} of {counted(len(every), 'sample')}: {number(wasted)} of "
            f"{number(tokens)} thinking tokens ({percent(wasted, tokens)}) only repeat."
        )
    table = _strip_table([panel for _, panel in found])
    drawing = Strips(tuple(_shown(panel) for _, panel in found))
    hidden = any(len(panel.strips) > MOST_STRIPS for _, panel in found)
    note = "Only samples that touch the budget are searched, as the gate does."
    note += f" Of a step with more samples, the {MOST_STRIPS} that waste most are drawn." * hidden
    return Figure(*LOOPS, takeaway, drawing, table, _sources(one for one, _ in found), note)


def _strip_panel(view: View) -> StripPanel | None:
    samples, cap = None if view.samples_away else view.evidence.registered_samples, view.plan.max_think_tokens
    if not samples or cap is None:
        return None
    entry = next(entry for entry in view.plan.stage.gates if entry.name == "termination")
    rule = {name: entry.thresholds[f"{name}_tokens"] for name in ("tail", "max_period")}
    strips = []
    for key, sample in samples.items():
        try:
            ids, loop = sample.thinking_ids[:cap], None
        except ElsewhereError:  # counts are at hand, and ids are not
            return None
        if sample.touches_budget(cap, entry.thresholds["contact_margin_tokens"]):
            loop = loop_certificate(ids, min_match=entry.thresholds["min_match_rate"], **rule)
        name = f"{key.task_id} #{key.sample_index}"
        where = (loop.start, loop.period, loop.wasted_tokens) if loop else (None, None, 0)
        strips.append(Strip(name, len(ids), *where))
    strips.sort(key=lambda strip: (-strip.wasted, -strip.tokens))  # stable, so that equals stay in registered order
    return StripPanel(view.label, cap, len(view.plan.keys), tuple(strips))


def _shown(panel: StripPanel) -> StripPanel:
    return panel._replace(strips=panel.strips[:MOST_STRIPS])


def _strip_table(panels: Sequence[StripPanel]) -> Table:
    rows = tuple(
        (panel.label, s.sample, number(s.tokens), str(s.period), number(s.loop_start), number(s.wasted))
        for panel in panels
        for s in panel.strips
        if s.loop_start is not None
    )
    head = ("Step", "Sample", "Thinking tokens", "Period", "Loop starts at", "Wasted tokens")
    return Table("Samples that end in a loop", head, rows or (("none", "", "", "", "", ""),))


def _sources(facts: Iterator[Facts]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(one.source for one in facts))
