"""What all drawings share: the paper with its margins, the inks, and how matplotlib is set up."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gatepost.errors import MissingExtraError
from gatepost.html_report import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_PT = 380
LEFT_PT, RIGHT_PT, TICKS_PT, LABEL_PT = 12, 12, 24, 16
FONT_PT = 11
TEXT, MUTED, GRID, SURFACE, QUIET, ALARM = (
    svg.INKS[name] for name in ("text", "muted", "grid", "surface", "quiet", "alarm")
)
SERIES = tuple(svg.INKS[f"series-{at}"] for at in range(3))

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gatepost",
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same places on every machine
    "font.size": FONT_PT,
    "text.color": TEXT,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "figure.facecolor": "none",
    "figure.edgecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.4,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
}


@contextmanager
def style() -> Iterator[None]:
    """Set matplotlib up for drawings, and back. Raises ``MissingExtraError`` where it is not installed."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtraError("matplotlib", needed_for="a report", extra="report") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user set up for figures of their own
        parameters: Any = matplotlib.rcParams  # its types list every key, other in every version
        parameters.update(STYLE)
        yield


class Canvas:
    """A figure whose axes are placed in points from its top, so that labels keep their distance at every height."""

    def __init__(self, height_pt: float) -> None:
        from matplotlib.figure import Figure as MatplotlibFigure

        self.height_pt = height_pt
        self.figure = MatplotlibFigure(figsize=(WIDTH_PT / 72, height_pt / 72), dpi=72)

    def axes(self, top_pt: float, height_pt: float, *, left_pt: float = LEFT_PT) -> "Axes":
        """Axes whose top is that far from the figure's."""
        width = (WIDTH_PT - left_pt - RIGHT_PT) / WIDTH_PT
        bottom = 1 - (top_pt + height_pt) / self.height_pt
        return self.figure.add_axes((left_pt / WIDTH_PT, bottom, width, height_pt / self.height_pt))

    def legend(self, entries: Sequence[tuple[Any, str]]) -> None:
        """A legend along the top."""
        handles, names = zip(*entries, strict=True)
        self.figure.legend(
            handles,
            names,
            loc="upper left",
            bbox_to_anchor=(LEFT_PT / WIDTH_PT, 1.0),
            ncols=len(entries),
            frameon=False,
            borderpad=0.1,
            borderaxespad=0.0,
            handlelength=1.4,
            handletextpad=0.5,
            columnspacing=1.2,
            fontsize=FONT_PT - 0.5,
        )

    def bytes(self) -> bytes:
        """The SVG file."""
        stream = io.BytesIO()
        self.figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
        return stream.getvalue()


def rectangles(axes: "Axes", boxes: Sequence[tuple[float, float, float, float]], **style: Any) -> Any:
    """Many rectangles (left, bottom, width, height) as one element."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    paths = [
        Path([(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)], [1, 2, 2, 2, 79], closed=False)
        for x, y, w, h in boxes
        if w and h
    ]
    patch = PathPatch(Path.make_compound_path(*paths), **style)
    axes.add_patch(patch)
    return patch


def fill(series: int) -> dict[str, Any]:
    """Solid, striped or hollow, in the colour of the series."""
    if series == 0:
        return {"facecolor": SERIES[0], "edgecolor": SERIES[0], "linewidth": 0.8}
    return {"facecolor": SURFACE, "edgecolor": SERIES[series], "linewidth": 1.6, "hatch": "////" if series == 1 else ""}


def swatch(**style: Any) -> Any:
    """A patch for a legend."""
    from matplotlib.patches import Patch

    return Patch(**style)


def line(**style: Any) -> Any:
    """A line or a marker for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **style)


def whole_numbers(axis: Any, most: int = 8) -> None:
    """Ticks at whole numbers alone, and not too many."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]))
