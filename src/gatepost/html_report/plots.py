"""Draw a figure with matplotlib. What is drawn is in the figure's data; here are only places, lines and labels.

Everything is drawn for a narrow screen, and nothing relies on colour alone.
"""

from gatepost.html_report import bars, svg
from gatepost.html_report.canvas import style
from gatepost.html_report.histograms import histograms, strips
from gatepost.html_report.model import Demand, Drawing, Duration, Figure, Histograms, ShareBars, Strips, Width


def draw(figure: Figure) -> str:
    """The figure as an ``svg`` element. The same figure gives the same bytes.

    Raises ``MissingExtraError`` without matplotlib.
    """
    with style():
        drawn = _drawn(figure.drawing)
    return svg.inline(drawn, name=figure.name, title=figure.title, description=figure.takeaway)


def _drawn(drawing: Drawing) -> bytes:
    if isinstance(drawing, ShareBars):
        return bars.share_bars(drawing)
    if isinstance(drawing, Histograms):
        return histograms(drawing)
    if isinstance(drawing, Strips):
        return strips(drawing)
    if all(isinstance(row, Demand) for row in drawing):
        return bars.demands([row for row in drawing if isinstance(row, Demand)])
    if all(isinstance(row, Width) for row in drawing):
        return bars.widths([row for row in drawing if isinstance(row, Width)])
    return bars.durations([row for row in drawing if isinstance(row, Duration)])
