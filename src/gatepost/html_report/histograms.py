"""Drawings over token positions: histograms, and a strip per sample."""

from typing import TYPE_CHECKING

from gatepost.html_report.canvas import (
    LABEL_PT,
    QUIET,
    SERIES,
    TEXT,
    TICKS_PT,
    WIDTH_PT,
    Canvas,
    fill,
    line,
    rectangles,
    swatch,
    whole_numbers,
)
from gatepost.html_report.model import Histograms, Panel, StripPanel, Strips, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def histograms(drawing: Histograms) -> bytes:
    top, each, head = 22, 92, 42
    canvas = Canvas(top + (head + each + TICKS_PT) * len(drawing.panels) + LABEL_PT)
    for at, panel in enumerate(drawing.panels):
        axes = canvas.axes(top + head + at * (head + each + TICKS_PT), each, left_pt=42)
        if drawing.log:
            axes.set_yscale("log")
            axes.set_ylim(0.5, 2 * max(map(max, panel.counts)))
            axes.yaxis.set_major_formatter(lambda count, _: number(count) if count >= 1 else "")
        else:
            axes.set_ylim(0, 1.06 * max(map(sum, zip(*panel.counts, strict=True))))
            whole_numbers(axes.yaxis, 4)
        axes.set_xlim(panel.edges[0], panel.edges[-1] + panel.bar_width)
        axes.set_xlabel(drawing.x_label if panel is drawing.panels[-1] else "")
        axes.grid(axis="y")
        axes.tick_params(length=0, which="both")
        axes.minorticks_off()
        _panel_bars(axes, panel, drawing.log)
        axes.annotate(
            f"{panel.label}: {drawing.y_label}", (0, 1), (-30, 26), "axes fraction", textcoords="offset points",
            fontweight="bold",
        )  # fmt: skip
        _marks(axes, panel)
    canvas.legend([(swatch(**fill(at)), name) for at, name in enumerate(drawing.series)])
    return canvas.bytes()


def _panel_bars(axes: "Axes", panel: Panel, log: bool) -> None:
    """Stacked; on a logarithmic axis, where heights do not add up, beside one another."""
    bottoms = [0.0] * len(panel.edges)
    for series, counts in enumerate(panel.counts):
        boxes = []
        for at, (edge, count) in enumerate(zip(panel.edges, counts, strict=True)):
            if log:
                inside = [one for one in range(len(panel.counts)) if panel.counts[one][at]]
                width = 0.84 * panel.bar_width / max(len(inside), 1)
                left = edge + 0.08 * panel.bar_width + width * (inside.index(series) if series in inside else 0)
                boxes.append((left, 0.5, width, max(count - 0.5, 0)))
            else:
                boxes.append((edge + 0.06 * panel.bar_width, bottoms[at], 0.88 * panel.bar_width, float(count)))
                bottoms[at] += count
        if any(counts):
            rectangles(axes, boxes, **fill(series))


def _marks(axes: "Axes", panel: Panel) -> None:
    """Lines with their labels above the axes, on two levels where they would touch."""
    low, high = panel.edges[0], panel.edges[-1] + panel.bar_width
    texts: dict[float, list[str]] = {}
    for mark in panel.marks:
        texts.setdefault(mark.at, []).append(mark.text)
    last = [-1.0, -1.0]
    for at in sorted(texts):
        axes.axvline(at, color=TEXT, linewidth=1.3, linestyle=(0, (4, 2)))
        said, place = ", ".join(texts[at]), (at - low) / (high - low)
        width = len(said) * 5.6 / (WIDTH_PT - 54)
        align = "left" if place < width / 2 else "right" if place > 1 - width / 2 else "center"
        start = place - {"left": 0, "center": width / 2, "right": width}[align]
        level = 0 if start > last[0] else 1
        last[level] = start + width + 0.02
        axes.annotate(
            said, (at, 1), (0, 4 + 11 * level), ("data", "axes fraction"), textcoords="offset points", ha=align,
            fontsize=10, color=TEXT,
        )  # fmt: skip


def strips(drawing: Strips) -> bytes:
    pitches = [max(2.5, min(7.0, 220 / max(len(panel.strips), 1))) for panel in drawing.panels]
    heights = [pitch * len(panel.strips) for pitch, panel in zip(pitches, drawing.panels, strict=True)]
    top, head = 26, 24
    canvas = Canvas(top + sum(heights) + (head + TICKS_PT) * len(heights) + LABEL_PT)
    y = float(top)
    for panel, height in zip(drawing.panels, heights, strict=True):
        axes = canvas.axes(y + head, height)
        _strip_axes(axes, panel)
        axes.set_xlabel("thinking tokens" if panel is drawing.panels[-1] else "")
        y += head + height + TICKS_PT
    loop = {"facecolor": SERIES[1], "edgecolor": "none"}
    canvas.legend(
        [
            (swatch(facecolor=QUIET), "thinking"),
            (swatch(**loop), "only repeats"),
            (line(linestyle="", marker="|", color=TEXT, markersize=8), "loop starts"),
        ]
    )
    return canvas.bytes()


def _strip_axes(axes: "Axes", panel: StripPanel) -> None:
    axes.set(xlim=(0, panel.cap), ylim=(len(panel.strips), 0), yticks=[])
    whole_numbers(axes.xaxis)
    axes.tick_params(length=0)
    axes.annotate(
        f"{panel.label}, {len(panel.strips)} of {panel.of} samples", (0, 1), (0, 7), "axes fraction",
        textcoords="offset points", fontweight="bold",
    )  # fmt: skip
    thinking, repeats = [], []
    for at, strip in enumerate(panel.strips):
        start = strip.tokens - strip.wasted
        thinking.append((0.0, at + 0.12, float(start), 0.76))
        repeats.append((float(start), at + 0.12, float(strip.wasted), 0.76))
    if any(width for _, _, width, _ in thinking):
        rectangles(axes, thinking, facecolor=QUIET, edgecolor="none")
    if any(width for _, _, width, _ in repeats):
        rectangles(axes, repeats, facecolor=SERIES[1], edgecolor="none")
        starts = [(s.loop_start, at + 0.5) for at, s in enumerate(panel.strips) if s.loop_start is not None]
        size = min(axes.get_window_extent().height / len(panel.strips), 6) * 0.9
        axes.plot(*zip(*starts, strict=True), linestyle="", marker="|", color=TEXT, markersize=size)
