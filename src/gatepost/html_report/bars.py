"""Drawings with a bar per row: shares of samples, cache, widths, seconds. Labels stand above their bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gatepost.html_report.canvas import (
    ALARM,
    GRID,
    MUTED,
    SERIES,
    SURFACE,
    TEXT,
    Canvas,
    fill,
    line,
    rectangles,
    swatch,
    whole_numbers,
)
from gatepost.html_report.model import Demand, Duration, ShareBar, ShareBars, Width, number, percent
from gatepost.html_report.sections import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def share_bars(drawing: ShareBars) -> bytes:
    rows = sum(1.5 + len(bars) for _, bars in drawing.groups)
    top, height = 26, 17 * rows
    canvas = Canvas(top + height + 24)
    axes = canvas.axes(top, height)
    _share_axis(axes, rows)
    y, some_limit = 0.0, False
    for label, bars in drawing.groups:
        axes.text(0, y + 0.95, label, fontweight="bold", va="center")
        y += 1.5
        for bar in bars:
            _share_bar(axes, y, bar)
            some_limit |= bar.limit is not None
            y += 1
    entries = [(swatch(**fill(at)), name) for at, name in enumerate(drawing.series)]
    if some_limit:
        entries.append((line(color=TEXT, linewidth=2, marker="|", markersize=9, linestyle=""), "limit"))
    canvas.legend(entries)
    return canvas.bytes()


def _share_axis(axes: "Axes", rows: float) -> None:
    axes.set(xlim=(0, 142), ylim=(rows, 0), xticks=range(0, 101, 25), yticks=[])
    axes.set_xticklabels([f"{at} %" for at in range(0, 101, 25)])
    axes.spines["bottom"].set_bounds(0, 100)
    axes.tick_params(length=0)
    for at in range(0, 101, 25):
        axes.axvline(at, color=GRID, linewidth=0.8, zorder=0)


def _share_bar(axes: "Axes", y: float, bar: ShareBar) -> None:
    share, (low, high) = 100 * bar.k / bar.n, interval(bar.k, bar.n)
    style = fill(bar.series)
    if bar.claimed:
        style |= {"alpha": 0.5, "linestyle": (0, (3, 2))}
    if share:
        rectangles(axes, [(0, y + 0.16, share, 0.68)], **style)
    for ink, linewidth in ((SURFACE, 4), (TEXT, 1.3)):  # the first sets the second off from the bar
        axes.plot([100 * low, 100 * high], [y + 0.5] * 2, color=ink, linewidth=linewidth, solid_capstyle="butt")
    if bar.limit is not None:
        axes.plot([100 * bar.limit] * 2, [y + 0.02, y + 0.98], color=TEXT, linewidth=2.2, solid_capstyle="butt")
    claimed = " claimed" if bar.claimed else ""
    right = max(100 * high, share, 100 * (bar.limit or 0))
    said = f"{percent(bar.k, bar.n)} · {bar.k}/{bar.n}{claimed}"
    axes.text(right + 2, y + 0.53, said, va="center", fontsize=10)


def demands(rows: Sequence[Demand]) -> bytes:
    top, each = 26, 46
    canvas = Canvas(top + each * len(rows) + 42)
    axes = canvas.axes(top, each * len(rows))
    most = max(100.0, *(100 * row.needed / max(row.available, 1) for row in rows))
    axes.set(xlim=(0, most * 1.02), ylim=(len(rows), 0), yticks=[], xlabel="% of live capacity")
    axes.tick_params(length=0)
    for at, row in enumerate(rows):
        share, spare = 100 * row.needed / max(row.available, 1), row.available - row.needed
        said = f"margin {number(spare)}" if spare >= 0 else f"{number(-spare)} too many"
        axes.text(0, at + 0.25, row.label, fontweight="bold", va="center")
        axes.text(most, at + 0.25, f"{said} {row.unit}", va="center", ha="right", color=ALARM if spare < 0 else TEXT)
        rectangles(axes, [(0, at + 0.46, 100, 0.36)], facecolor=SURFACE, edgecolor=MUTED, linewidth=1)
        rectangles(axes, [(0, at + 0.46, min(share, 100), 0.36)], facecolor=SERIES[0], edgecolor="none")
        if share > 100:
            style = {"facecolor": SURFACE, "edgecolor": ALARM, "hatch": "////", "linewidth": 1}
            rectangles(axes, [(100, at + 0.46, share - 100, 0.36)], **style)
    canvas.legend(
        [
            (swatch(facecolor=SERIES[0]), "needed at the longest"),
            (swatch(facecolor=SURFACE, edgecolor=MUTED), "live capacity"),
        ]
    )
    return canvas.bytes()


def widths(rows: Sequence[Width]) -> bytes:
    top, each = 26, 42
    canvas = Canvas(top + each * len(rows) + 42)
    axes = canvas.axes(top, each * len(rows), left_pt=18)
    most = max(max(row.widest, row.captured) for row in rows)
    axes.set(xlim=(-0.02 * most, most * 1.05), ylim=(len(rows), 0), yticks=[], xlabel="tokens in a decode step")
    whole_numbers(axes.xaxis)
    axes.grid(axis="x")
    axes.tick_params(length=0)
    for at, row in enumerate(rows):
        y = at + 0.66
        gap = "every width covered" if not row.uncovered else f"{len(row.uncovered)} widths without a graph"
        axes.text(0, at + 0.25, row.label, fontweight="bold", va="center")
        ink = ALARM if row.uncovered else TEXT
        axes.text(most * 1.05, at + 0.25, gap, va="center", ha="right", color=ink, fontsize=10)
        axes.plot([0, row.captured], [y, y], color=SERIES[0], linewidth=5, solid_capstyle="butt")
        if row.uncovered:
            start = max(row.captured, min(row.uncovered) - 1)
            axes.plot([start, row.widest], [y, y], color=ALARM, linewidth=2.4, linestyle=(0, (1.2, 1)))
        axes.plot([row.captured], [y], marker="s", markersize=9, color=SERIES[0], linestyle="")
        style: dict[str, Any] = {"markerfacecolor": SURFACE, "markeredgecolor": ink, "markeredgewidth": 2}
        axes.plot([row.widest], [y], marker="o", markersize=8, linestyle="", **style)
    ring = {"marker": "o", "markersize": 7, "markerfacecolor": SURFACE, "markeredgecolor": TEXT, "markeredgewidth": 2}
    canvas.legend(
        [
            (line(linestyle="", marker="s", color=SERIES[0], markersize=8), "largest captured size"),
            (line(linestyle="", **ring), "widest decode step"),
        ]
    )
    return canvas.bytes()


def durations(rows: Sequence[Duration]) -> bytes:
    top, each = 26, 46
    canvas = Canvas(top + each * len(rows) + 42)
    axes = canvas.axes(top, each * len(rows))
    most = max((row.other_seconds or 0) + row.generation_seconds for row in rows)
    axes.set(xlim=(0, most * 1.02), ylim=(len(rows), 0), yticks=[], xlabel="seconds")
    axes.grid(axis="x")
    axes.tick_params(length=0)
    start = {"facecolor": SURFACE, "edgecolor": MUTED, "hatch": "////", "linewidth": 1}
    for at, row in enumerate(rows):
        other = row.other_seconds or 0
        axes.text(0, at + 0.25, row.label, fontweight="bold", va="center")
        claimed = ", claimed" if row.claimed else ""
        axes.text(most * 1.02, at + 0.25, f"{number(row.rate)} tokens/s{claimed}", va="center", ha="right")
        if other:
            rectangles(axes, [(0, at + 0.46, other, 0.36)], **start)
        style = fill(0) | ({"alpha": 0.5, "linestyle": (0, (3, 2))} if row.claimed else {})
        rectangles(axes, [(other, at + 0.46, row.generation_seconds, 0.36)], **style)
    canvas.legend([(swatch(**start), "start and all else"), (swatch(**fill(0)), "generation")])
    return canvas.bytes()
