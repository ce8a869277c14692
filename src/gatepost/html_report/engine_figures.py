"""Figures of the engine: graphs against widths, cache against demand, and where the seconds went."""

from collections.abc import Iterator, Sequence

from gatepost.counts import count_of, counts_of
from gatepost.html_report.facts import Facts, View
from gatepost.html_report.model import (
    Demand,
    Duration,
    Figure,
    Histograms,
    Mark,
    Missing,
    Panel,
    Table,
    Width,
    counted,
    listed,
    number,
    percent,
)
from gatepost.verdict import JSON

MODES = ("FULL", "PIECEWISE", "NONE")
MODE_NAMES = ("full graph", "piecewise graph", "no graph")

WIDTH = ("width", "Active width and captured graphs")
STEPS = ("graph-steps", "Decode steps by width")
CACHE = ("kv-cache", "KV demand and live capacity")
SPEED = ("throughput", "Throughput, with the start apart")


def width_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """The widest decode step of each engine against the largest size it captured."""
    found = [(one, width) for one in facts if one.views and (width := _width(one)) is not None]
    if not found:
        engines = [one for one in facts if one.engine is not None]
        if not engines:
            return Missing(*WIDTH, "No engine facts are on record, so nobody can say what was captured.")
        return Missing(*WIDTH, f"The engine ({_kinds(engines)}) reports neither captured CUDA graphs nor a width.")
    widths = tuple(width for _, width in found)
    short = [width for width in widths if width.uncovered]
    if short:
        first = short[0]
        which = "Some decode steps" if len(widths) == 1 else f"In {len(short)} of {len(widths)} engines decode steps"
        takeaway = f"{which} have no captured graph: {first.label} decodes up to {first.widest} tokens a step, " + (
            f"and its largest captured size is {first.captured}." if first.captured else "and captured no graph."
        )
    else:
        most = max(widths, key=lambda width: width.widest)
        takeaway = (
            f"Captured graphs cover every decode width: the widest step takes {most.widest} "
            f"{'token' if most.widest == 1 else 'tokens'}, and the largest size captured for it is {most.captured}."
        )
    rows = tuple(
        (w.label, str(w.widest), str(w.captured or "none"), ", ".join(map(str, w.uncovered)) or "none") for w in widths
    )
    head = ("Step", "Widest decode step (tokens)", "Largest captured size", "Widths without a graph")
    table = Table("Active width and largest captured size, per engine", head, rows)
    return Figure(*WIDTH, takeaway, widths, table, tuple(one.source for one, _ in found))


def _width(facts: Facts) -> Width | None:
    view, graphs = facts.views[0], facts.engine.cuda_graphs if facts.engine else None
    sizes = counts_of(graphs, "resolved_capture_sizes")
    widths = view.plan.decode_widths(facts.engine.scheduler if facts.engine else None)
    if graphs is None or sizes is None or widths is None:
        return None
    told, captured = counts_of(graphs, "uncovered_decode_widths") or [], max(sizes, default=0)
    uncovered = tuple(width for width in widths if width > captured or width in told)
    return Width(facts.name, widths[-1], captured, uncovered)


def steps_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """How wide the decode steps were that really ran, and on what they ran."""
    found = [(one, panel) for one in facts if not one.attempt and (panel := _panel(one)) is not None]
    if not found:
        sampled = [one for one in facts if not one.attempt and one.engine is not None]
        why = f"the engine ({_kinds(sampled)}) recorded no histogram of its steps" if sampled else "no step was sampled"
        return Missing(*STEPS, f"What decode steps ran on is unknown: {why}.")
    by_mode = [sum(sum(panel.counts[mode]) for _, panel in found) for mode in range(len(MODES))]
    total = sum(by_mode)
    if by_mode[0] == total:
        takeaway = f"All {counted(total, 'decode step')} ran on a full CUDA graph."
    else:
        takeaway = f"{number(total - by_mode[0])} of {counted(total, 'decode step')} ran without a full CUDA graph."
    rows = tuple(
        (panel.label, f"{edge + panel.bar_width / 2:.0f}", *(number(counts[at]) for counts in panel.counts))
        for _, panel in found
        for at, edge in enumerate(panel.edges)
        if any(counts[at] for counts in panel.counts)
    )
    table = Table(
        "Engine steps by width in tokens, and what they ran on",
        ("Step", "Width (tokens)", *(f"On {name}" for name in MODE_NAMES)),
        rows,
    )
    drawing = Histograms(
        MODE_NAMES, "width of an engine step (tokens)", "engine steps (log scale)", True, tuple(p for _, p in found)
    )
    note = "Steps wider than all active sequences can decode hold prompt ids and are left out, as the gate does."
    return Figure(*STEPS, takeaway, drawing, table, tuple(one.source for one, _ in found), note)


def _panel(facts: Facts) -> Panel | None:
    scheduler, view = facts.engine.scheduler if facts.engine else None, facts.views[0]
    live, registered = view.plan.decode_widths(scheduler), view.plan.decode_widths(view.plan.engine_options)
    entries = (scheduler or {}).get("dispatch")
    if live is None or not isinstance(entries, list):
        return None
    widest = max(live[-1], registered[-1] if registered else 0)
    counts = {mode: [0] * widest for mode in MODES}
    for entry in entries:
        tokens, steps, mode = _entry(entry)
        if tokens is None or steps is None or mode not in MODES:
            return None
        if tokens <= widest:
            counts[mode][tokens - 1] += steps
    if not any(map(any, counts.values())):
        return None
    marks = [Mark(live[-1], f"active width {live[-1]}")]
    captured = max(counts_of(facts.engine.cuda_graphs if facts.engine else None, "resolved_capture_sizes") or [0])
    marks += [Mark(captured, f"largest captured {captured}")] if captured else []
    edges = tuple(at + 0.5 for at in range(widest))
    return Panel(facts.name, edges, 1.0, tuple(tuple(counts[mode]) for mode in MODES), tuple(marks))


def _entry(entry: JSON) -> tuple[int | None, int | None, str | None]:
    mode = entry.get("mode") if isinstance(entry, dict) else None
    return count_of(entry, "tokens", at_least=1), count_of(entry, "steps", at_least=1), mode


def cache_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """What all active sequences need at their longest, against what the running engine holds."""
    found = [(one, demand) for one in facts for view in one.views for demand in _demands(one, view)]
    if not found:
        asked = any(view.verdict("kv_fit") for one in facts for view in one.views)
        why = (
            "prompts, width, block size or cache size are unknown"
            if asked
            else ("no judged step registers the gate kv_fit, which compares them")
        )
        return Missing(*CACHE, f"Cache and demand cannot be compared: {why}.")
    demands = tuple(demand for _, demand in found)
    tightest = max(demands, key=lambda demand: demand.needed / max(demand.available, 1))
    spare = tightest.available - tightest.needed
    name = f"{tightest.label} needs {number(tightest.needed)} of {number(tightest.available)} {tightest.unit}"
    if spare >= 0:
        share = percent(spare, tightest.available)
        takeaway = f"All active sequences fit. The tightest is {name}, a margin of {number(spare)} ({share})."
    else:
        takeaway = f"Not all active sequences fit: {name}, {number(-spare)} too many."
    rows = tuple(
        (d.label, d.unit, number(d.needed), number(d.available), number(d.available - d.needed)) for d in demands
    )
    table = Table("KV cache needed and available", ("Step", "In", "Needed", "Available", "Margin"), rows)
    sources = tuple(dict.fromkeys(one.source for one, _ in found))
    return Figure(*CACHE, takeaway, demands, table, sources, "Available is what the running engine said, not a plan.")


def _demands(facts: Facts, view: View) -> Iterator[Demand]:
    for unit in ("tokens", "blocks"):
        check = view.check("kv_fit", f"required_{unit}")
        if check is not None and type(check.observed) is int and type(check.limit) is int:
            yield Demand(facts.name if facts.attempt else view.label, unit, check.observed, check.limit)


def speed_figure(facts: Sequence[Facts]) -> Figure | Missing:
    """Seconds of generation and of all else, and the rate of sampled tokens in the first alone."""
    found = [(one, duration) for one in facts if not one.attempt and (duration := _duration(one)) is not None]
    if not found:
        timed = any(one.elapsed_seconds is not None for one in facts)
        why = "seconds of generation were not recorded apart" if timed else "no seconds are on record"
        return Missing(*SPEED, f"A rate without the time to start cannot be told: {why}.")
    durations = tuple(duration for _, duration in found)
    low, high = min(d.rate for d in durations), max(d.rate for d in durations)
    rate = number(low) if len(durations) == 1 else f"{number(low)} to {number(high)}"
    takeaway = f"Generation sampled {rate} tokens per second"
    known = [d for d in durations if d.other_seconds is not None]
    if known:
        other = sum(d.other_seconds or 0 for d in known)
        share = round(100 * other / (other + sum(d.generation_seconds for d in known)))
        takeaway += f"; starting engines and all else took {share}\N{NARROW NO-BREAK SPACE}% of the time of these steps"
    claimed = [d.label for d in durations if d.claimed]
    takeaway += f" ({listed(claimed)}: as the authors state it, not recomputed)." if claimed else "."
    rows = tuple(
        (
            d.label,
            "unknown" if d.other_seconds is None else number(d.other_seconds, 1),
            number(d.generation_seconds, 1),
            number(d.sampled_tokens),
            number(d.rate, 1),
        )
        for d in durations
    )
    head = ("Step", "Start and all else (s)", "Generation (s)", "Sampled tokens", "Tokens per second")
    table = Table("Seconds and sampled tokens, per step", head, rows)
    note = "The rate divides sampled tokens by the seconds from the first request to the last id."
    return Figure(*SPEED, takeaway, durations, table, tuple(one.source for one, _ in found), note)


def _duration(facts: Facts) -> Duration | None:
    view, seconds = facts.views[0], facts.generation_seconds
    if view.absent is not None:
        claims = view.absent.claims
        claimed_seconds, tokens = claims.get("generation_seconds"), claims.get("sampled_tokens")
        if not claimed_seconds or tokens is None:
            return None
        return Duration(facts.name, None, claimed_seconds, tokens, claimed=True)
    samples = None if view.samples_away else view.evidence.completions
    if samples is None or not seconds or facts.elapsed_seconds is None:
        return None
    tokens = sum(sample.row.sampled_tokens for sample in samples)
    return Duration(facts.name, facts.elapsed_seconds - seconds, seconds, tokens)


def _kinds(facts: Sequence[Facts]) -> str:
    return ", ".join(dict.fromkeys(one.engine.kind for one in facts if one.engine))
