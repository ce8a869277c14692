"""What a report shows, as plain data: tables, and figures that are data until something draws them."""

from collections.abc import Sequence
from typing import NamedTuple

Cells = tuple[str, ...]


class Table(NamedTuple):
    """A table of text. The first cell of a row is its header."""

    caption: str
    head: Cells
    rows: tuple[Cells, ...]


class Source(NamedTuple):
    """The record that a figure is drawn from: its path in the archive, and the digest of its bytes."""

    path: str
    digest: str


class ShareBar(NamedTuple):
    """A share of samples, ``k`` of ``n``, and what was registered of it.

    Attributes:
        series: which of the drawing's series it is.
        limit: registered limit; ``None`` for a share that is only shown.
        relation: of share and limit, such as ``<=``.
        claimed: stated by somebody, and not recomputed here.
    """

    series: int
    k: int
    n: int
    limit: float | None = None
    relation: str | None = None
    claimed: bool = False


class ShareBars(NamedTuple):
    """Groups of shares, each a label with its bars, and the names of the series."""

    series: Cells
    groups: tuple[tuple[str, tuple[ShareBar, ...]], ...]


class Demand(NamedTuple):
    """What is needed of something, and what there is, in one unit."""

    label: str
    unit: str
    needed: int
    available: int


class Width(NamedTuple):
    """The widest decode step and the largest captured size, in tokens a step; ``uncovered`` widths have no graph."""

    label: str
    widest: int
    captured: int
    uncovered: tuple[int, ...]


class Mark(NamedTuple):
    """A line across a histogram."""

    at: float
    text: str


class Panel(NamedTuple):
    """One histogram: left edges, a common width of its bars, and for each series a count per edge."""

    label: str
    edges: tuple[float, ...]
    bar_width: float
    counts: tuple[tuple[int, ...], ...]
    marks: tuple[Mark, ...]


class Histograms(NamedTuple):
    """Histograms one below the other, of the same series, on one axis of the same unit each."""

    series: Cells
    x_label: str
    y_label: str
    log: bool
    panels: tuple[Panel, ...]


class Strip(NamedTuple):
    """The thinking of one sample, in tokens: from ``loop_start`` on it only repeats."""

    sample: str
    tokens: int
    loop_start: int | None
    period: int | None
    wasted: int


class StripPanel(NamedTuple):
    """The strips of one step, of as many samples as ``of``, and the cap in tokens that applies to them."""

    label: str
    cap: int
    of: int
    strips: tuple[Strip, ...]


class Strips(NamedTuple):
    """Where loops start, step by step."""

    panels: tuple[StripPanel, ...]


class Duration(NamedTuple):
    """Where the seconds of a step went. ``other`` is all but generation, the start of the engine included."""

    label: str
    other_seconds: float | None
    generation_seconds: float
    sampled_tokens: int
    claimed: bool = False

    @property
    def rate(self) -> float:
        """Sampled tokens per second of generation."""
        return self.sampled_tokens / self.generation_seconds


Drawing = ShareBars | tuple[Demand, ...] | tuple[Width, ...] | Histograms | Strips | tuple[Duration, ...]


class Figure(NamedTuple):
    """A figure: what it is about, what it shows in a sentence, what to draw, the same as a table, and its sources."""

    name: str
    title: str
    takeaway: str
    drawing: Drawing
    table: Table
    sources: tuple[Source, ...]
    note: str = ""


class Missing(NamedTuple):
    """A figure that the archive does not have what it takes for, and what that is."""

    name: str
    title: str
    reason: str


def number(value: float, decimals: int = 0) -> str:
    """A number for people: thousands apart by a narrow space."""
    return f"{value:,.{decimals}f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(k: int, n: int) -> str:
    """A share as a percentage, exact where it is 0 or 1 and nowhere else."""
    text = f"{100 * k / n:.1f}".removesuffix(".0")
    if text == "0" and k:
        text = "<0.1"
    if text == "100" and k < n:
        text = ">99.9"
    return f"{text}\N{NARROW NO-BREAK SPACE}%"


def listed(parts: Sequence[str], most: int = 4) -> str:
    """Parts as the middle of a sentence, none as nothing; those beyond ``most`` are counted."""
    shown = [*parts[:most], *([f"{len(parts) - most} more"] if len(parts) > most else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{number(n)} {one if n == 1 else many or one + 's'}"
