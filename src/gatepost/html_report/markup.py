"""HTML, written out. Whatever comes from an archive goes through ``escape``."""

import html
import re

from gatepost.html_report.model import Table

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
_NUMERIC = re.compile("[<>]?[-\u2212]?[0-9][0-9.,\u202f]*(/[0-9]+)?(\u202f?%)?")
_OUTCOME = re.compile("(?P<icon>[\u2713\u2715?]) (?P<word>pass|fail|inconclusive)(?P<rest> .*)?")


def escape(text: str) -> str:
    """Text for an element or an attribute. What nobody sees, and what turns the direction of others, is spelt out."""
    return html.escape(_UNSEEN.sub(lambda found: f"\u27e8U+{ord(found[0]):04X}\u27e9", text))


def element(tag: str, content: str = "", /, **attributes: str) -> str:
    """An element. ``content`` is markup; the values of ``attributes`` are text."""
    told = "".join(f' {name.rstrip("_")}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{told}>{content}</{tag}>"


def paragraph(text: str, **attributes: str) -> str:
    """A paragraph of text."""
    return element("p", escape(text), **attributes)


def table(data: Table) -> str:
    """A table in a box of its own, in which it scrolls where the screen is narrower. Columns of numbers end flush."""
    numeric = [all(_NUMERIC.fullmatch(row[at]) for row in data.rows if row[at]) for at in range(len(data.head))]
    head = "".join(
        element("th", escape(cell), scope="col", **_numbers(at > 0 and is_numeric))
        for at, (cell, is_numeric) in enumerate(zip(data.head, numeric, strict=True))
    )
    rows = "".join(
        element("tr", element("th", escape(row[0]), scope="row") + "".join(map(_cell, row[1:], numeric[1:])))
        for row in data.rows
    )
    inside = element("caption", escape(data.caption)) + element("thead", element("tr", head)) + element("tbody", rows)
    box = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": data.caption}
    return element("div", element("table", inside), **box)


def _cell(text: str, is_numeric: bool) -> str:
    if outcome := _OUTCOME.fullmatch(text):
        icon = element("span", outcome["icon"], **{"class": "icon", "aria-hidden": "true"})
        return element("td", f"{icon} {outcome['word']}{escape(outcome['rest'] or '')}", class_=outcome["word"])
    return element("td", escape(text), **_numbers(is_numeric))


def _numbers(are_numbers: bool) -> dict[str, str]:
    return {"class": "number"} if are_numbers else {}


def details(summary: str, content: str, *, is_open: bool = False, **attributes: str) -> str:
    """A part that opens on demand; printed, it is open."""
    opened = {"open": ""} if is_open else {}
    return element("details", element("summary", escape(summary)) + content, **opened, **attributes)


def terms(pairs: tuple[tuple[str, str], ...]) -> str:
    """Terms and what they are."""
    rows = (element("dt", escape(term)) + element("dd", escape(text)) for term, text in pairs if text)
    return element("dl", "".join(element("div", row) for row in rows))


def document(title: str, *, style: str, body: str) -> bytes:
    """A whole page that takes nothing from anywhere else, and may not."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = (
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="generator" content="gatepost">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n"
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}\n</body>\n</html>\n'.encode()
