"""The ladder as a picture: a box for each stage at each rung, an arrow to each that was opened, else a lock."""

from collections.abc import Iterator

from gatepost.html_report.climb import STATES, Climb, Edge, Node, Place
from gatepost.html_report.markup import element, escape

LABEL, BOX_HEIGHT, ROW, GAP, MARGIN = 80, 42, 72, 22, 14
LEAST_BOX, MOST_BOX, WIDTH = 116, 140, 420
CHARACTER = 6.1
"""Width of a letter of a box's text, at most."""

ICONS = {
    "pass": '<path d="M-5 0l4 4 7-8"/>',
    "fail": '<path d="M-4.5-4.5l9 9m0-9l-9 9"/>',
    "halt": '<path d="M-3-5v10m6-10v10"/>',
    "open": '<path d="M-3-5l6 5-6 5"/>',
    "locked": '<path d="M-4.5-.5h9v6h-9zM-2.7-.5v-2.2a2.7 2.7 0 0 1 5.4 0v2.2"/>',
    "unused": '<path d="M-4 0h8"/>',
}


class _Places:
    """Where boxes are."""

    def __init__(self, climb: Climb) -> None:
        columns = max(len(row.nodes) for row in climb.rows)
        room = (WIDTH - LABEL - MARGIN - GAP * (columns - 1)) / columns
        self.box = max(LEAST_BOX, min(MOST_BOX, room))
        self.width = max(WIDTH, LABEL + columns * self.box + (columns - 1) * GAP + MARGIN)
        self.height = ROW * len(climb.rows) - (ROW - BOX_HEIGHT) + 8

    def corner(self, place: Place) -> tuple[float, float]:
        row, column = place
        return LABEL + column * (self.box + GAP), 4 + row * ROW


def picture(climb: Climb, *, name: str, title: str, description: str) -> str:
    """An ``svg`` element. ``title`` and ``description`` are read aloud in place of it."""
    places = _Places(climb)
    parts = [
        element("title", escape(title), id=f"{name}-title"),
        element("desc", escape(description), id=f"{name}-desc"),
    ]
    if climb.selected is not None:
        band = f'y="{climb.selected * ROW - 7:g}" width="{places.width:g}" height="{BOX_HEIGHT + 22}" rx="8"'
        parts.append(f'<rect class="chosen" x="0" {band}/>')
    parts += [_arrow(edge, places) for edge in climb.edges]
    for at, row in enumerate(climb.rows):
        y = places.corner((at, 0))[1]
        parts.append(f'<text class="row" x="8" y="{y + 18:g}">{escape(row.label)}</text>')
        parts.append(f'<text class="unit" x="8" y="{y + 33:g}">{escape(row.detail)}</text>')
        for place, node in enumerate(row.nodes):
            parts.append("".join(_box(node, *places.corner((at, place)), places.box)))
    return element(
        "svg",
        "".join(parts),
        **{
            "class": "ladder",
            "viewBox": f"0 0 {places.width:g} {places.height:g}",
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-desc",
            "style": f"min-width: {places.width * 0.68:.0f}px; max-width: {places.width * 1.35:.0f}px",
        },
    )


def _box(node: Node, x: float, y: float, width: float) -> Iterator[str]:
    yield f'<g class="node {node.state}">'
    yield f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX_HEIGHT}" rx="6"/>'
    yield f'<g class="icon" transform="translate({x + 14:g} {y + 15:g})">{ICONS[node.state]}</g>'
    yield f'<text class="stage" x="{x + 25:g}" y="{y + 19:g}">{escape(_fit(node.stage, width - 29))}</text>'
    said = STATES[node.state] + (f": {', '.join(node.why)}" if node.why else "")
    if len(node.why) > 1 and _fit(said, width - 14) != said:
        said = f"{STATES[node.state]}: {node.why[0]} +{len(node.why) - 1}"
    yield f'<text class="state" x="{x + 9:g}" y="{y + 34:g}">{escape(_fit(said, width - 14))}</text></g>'


def _fit(text: str, width: float) -> str:
    most = int(width / CHARACTER)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _arrow(edge: Edge, places: _Places) -> str:
    """To the right within a row; else down, around the rows between where there are any."""
    (x, y), (to_x, to_y) = places.corner(edge.start), places.corner(edge.end)
    half, box = BOX_HEIGHT / 2, places.box
    if edge.start[0] == edge.end[0]:
        line, tip = f"M{x + box:g} {y + half:g}H{to_x - 6:g}", f"M{to_x - 1:g} {y + half:g}l-7-4v8z"
    else:
        middle = to_y - (ROW - BOX_HEIGHT) / 2
        if edge.end[0] == edge.start[0] + 1:
            down = f"M{x + box / 2:g} {y + BOX_HEIGHT:g}V{middle:g}"
        else:
            down = f"M{x + box:g} {y + half:g}H{places.width - 5:g}V{middle:g}"
        line = f"{down}H{to_x + box / 2:g}V{to_y - 6:g}"
        tip = f"M{to_x + box / 2:g} {to_y - 1:g}l-4-7h8z"
    kind = "passed" if edge.passed else "failed"
    return f'<g class="edge {kind}"><path class="line" d="{line}"/><path class="tip" d="{tip}"/></g>'
