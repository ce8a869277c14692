"""A page is one file that everybody can read: by eye, by ear, by keyboard, on paper, and without a network."""

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from gatepost.html_report.model import Figure
from tests.report.conftest import ARCHIVES, RECEIPTS, ROOT, Page, page, report

CSS = (ROOT / "src" / "gatepost" / "html_report" / "style.css").read_text()


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_archive_in_the_repository_has_a_page(name: str) -> None:
    parsed, shown = Page(page(name)), report(name)
    assert parsed.all("html") == [{"lang": "en"}]
    assert shown.question in parsed.text
    assert shown.label in parsed.text
    assert "Faithful." in parsed.text
    drawn = [figure.name for figure in shown.figures if isinstance(figure, Figure)]
    assert [svg["aria-labelledby"].split("-title")[0] for svg in parsed.all("svg")] == ["ladder", *drawn]
    for figure in shown.figures:
        assert figure.title in parsed.text
        assert (figure.takeaway if isinstance(figure, Figure) else figure.reason) in parsed.text


@pytest.mark.parametrize("name", ARCHIVES)
def test_nothing_comes_from_elsewhere_and_nothing_runs(name: str) -> None:
    text, parsed = page(name), Page(page(name))
    assert not {"script", "img", "link", "iframe", "object"} & {tag for tag, _ in parsed.elements}
    for tag, attributes in parsed.elements:
        assert not any(attribute.startswith("on") for attribute in attributes), tag
        assert all(attributes.get(key, "#").startswith("#") for key in ("href", "xlink:href", "src")), (tag, attributes)
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert "@import" not in text
    assert "default-src 'none'" in parsed.all("meta")[1]["content"]
    assert str(ROOT) not in text


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_page_can_be_read_aloud_and_walked_by_keyboard(name: str) -> None:
    parsed = Page(page(name))
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for svg in parsed.all("svg"):
        assert svg["role"] == "img"
        assert set(svg["aria-labelledby"].split()) <= set(ids)
    for section in parsed.all("section"):
        assert section.get("aria-labelledby", ids[0]) in ids
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    tables = [at for at, (tag, _) in enumerate(parsed.elements) if tag == "table"]
    assert all(parsed.elements[at + 1][0] == "caption" for at in tables)
    assert all(cell["scope"] in ("col", "row") for cell in parsed.all("th"))
    assert parsed.elements[[tag for tag, _ in parsed.elements].index("body") + 1] == (
        "a",
        {"href": "#main", "class": "skip"},
    )
    assert "main" in ids
    for _, attributes in parsed.elements:
        if attributes.get("class") == "scroll":
            assert (attributes["tabindex"], attributes["role"]) == ("0", "region")


@pytest.mark.parametrize("name", ARCHIVES)
def test_drawings_take_their_colours_and_fonts_from_the_page(name: str) -> None:
    variables = set(re.findall(r"--([a-z0-9-]+):", CSS))
    for svg in re.findall("<svg.*?</svg>", page(name), re.DOTALL):
        assert not re.findall("#[0-9a-f]{6}", svg)
        assert set(re.findall(r"var\(--([a-z0-9-]+)\)", svg)) <= variables
        assert "font-family" not in svg
        assert "DejaVu" not in svg


def test_the_same_archive_gives_the_same_bytes(tmp_path: Path) -> None:
    """In another folder, under another name of it, from another process, with other hashes and another time zone."""
    name = "native-seam-replicated"
    copy = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(RECEIPTS / name, copy)
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.html"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}", "SOURCE_DATE_EPOCH": seed}
        command = [sys.executable, "-m", "gatepost", "report", str(copy), "-o", str(out)]
        subprocess.run(command, check=True, cwd=tmp_path, env=environment, capture_output=True)
        assert out.read_text() == page(name)


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, as WCAG 2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * channel for weight, channel in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first: str, second: str) -> float:
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def theme(at: int) -> dict[str, str]:
    """Colour name -> hex digits of the light (0) or the dark (1) theme."""
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", blocks[at]))


@pytest.mark.parametrize("at", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("name", "least"),
    [
        *((name, 4.5) for name in ("text", "muted", "accent", "alarm", "good", "unsure")),
        *((name, 3.0) for name in ("series-0", "series-1", "series-2")),  # of graphics, WCAG 1.4.11
    ],
)
def test_contrast_is_enough(at: int, name: str, least: float) -> None:
    colours = theme(at)
    for behind in ("page", "surface", "wash"):
        assert contrast(colours[name], colours[behind]) >= least, behind


def test_both_themes_have_the_same_colours() -> None:
    assert theme(0).keys() == theme(1).keys()
