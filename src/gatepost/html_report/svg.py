"""Turn what the plotting library writes into an image that belongs to the page: its colours, its fonts, its language.

Colours of the drawing are names, written as hex digits that no design would use; the page gives each a light and a dark
value. Text stays text: it can be read aloud, searched and scaled, and takes a tenth of the bytes of its outlines.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

SVG = "http://www.w3.org/2000/svg"
XLINK = "{http://www.w3.org/1999/xlink}href"

INKS = {
    "text": "#000001",
    "muted": "#000002",
    "grid": "#000003",
    "surface": "#000004",
    "quiet": "#000005",
    "alarm": "#000006",
    "series-0": "#000010",
    "series-1": "#000011",
    "series-2": "#000012",
}
"""Name of a colour on the page -> how a drawing writes it."""

_COLOUR = re.compile("#[0-9a-f]{6}")
_NAMES = {digits: f"var(--{name})" for name, digits in INKS.items()}
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FAMILY = re.compile("font-family:[^;]*(; )?")
_FONT = re.compile(r"font:\s*(?:(?P<weight>bold|\d+)\s+)?(?P<size>[\d.]+px)[^;]*")

ElementTree.register_namespace("", SVG)


def inline(drawn: bytes, *, name: str, title: str, description: str) -> str:
    """An ``svg`` element to put into a page.

    Args:
        drawn: a whole SVG file, as matplotlib writes it.
        name: of the figure, unique in the page: every identifier in the image starts with it.
        title, description: what is read aloud in place of the image.
    """
    root = ElementTree.fromstring(drawn)
    for element in [root.find(f"{{{SVG}}}metadata"), root.find(f"{{{SVG}}}defs/{{{SVG}}}style")]:
        parent = next((one for one in root.iter() if element is not None and element in list(one)), None)
        if parent is not None and element is not None:
            parent.remove(element)
    referenced = set(_referenced(root))
    for element in root.iter():
        _tidy(element, name, referenced)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-desc", "class": "chart"}
    for at, (tag, text) in enumerate((("title", title), ("desc", description))):
        told = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        told.text = text
        root.insert(at, told)
    return ElementTree.tostring(root, encoding="unicode")


def _referenced(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter():
        for value in element.attrib.values():
            yield from _REFERENCE.findall(value)
        if XLINK in element.attrib:
            yield element.attrib[XLINK].removeprefix("#")


def _tidy(element: ElementTree.Element, name: str, referenced: set[str]) -> None:
    """Identifiers that nothing refers to go; colours become names; coordinates are rounded to a hundredth."""
    if XLINK in element.attrib:
        element.attrib["href"] = f"#{name}-{element.attrib.pop(XLINK).removeprefix('#')}"
    identifier = element.attrib.pop("id", None)
    for key, value in element.attrib.items():
        value = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
        value = _COLOUR.sub(lambda found: _NAMES.get(found[0], found[0]), value)
        element.attrib[key] = _REFERENCE.sub(lambda found: f"url(#{name}-{found[1]})", value)
    if identifier in referenced:
        element.attrib["id"] = f"{name}-{identifier}"
    if "style" in element.attrib:
        element.attrib["style"] = _FAMILY.sub("", _FONT.sub(_font, element.attrib["style"]))
    if element.tag == f"{{{SVG}}}text":
        element.attrib = {k: v for k, v in element.attrib.items() if k != "transform" or "rotate(-0 " not in v}
    for text in ("text", "tail"):  # line breaks between elements, never those inside words
        value = getattr(element, text)
        if value is not None and not value.strip():
            setattr(element, text, None)
    if "d" in element.attrib:
        element.attrib["d"] = " ".join(element.attrib["d"].split())


def _font(found: re.Match[str]) -> str:
    weight = f"font-weight: {found['weight']}; " if found["weight"] else ""
    return f"{weight}font-size: {found['size']}"
