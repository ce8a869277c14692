"""Pages in a real browser: nothing in the console, every drawing is there, and no page scrolls sideways.

Needs chromium; skipped by name where there is none. A page outside holds the report in frames of two widths and
measures it, which takes a browser that lets one local file look into another.
"""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from gatepost.html_report.model import Figure
from tests.report.conftest import page, report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (360, 1280)
NAMES = ("native-seam-replicated", "verified-macro-gpu", "engine-geometry-too-wide")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium found")

MEASURE = """
<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">%s<pre id="found"></pre><script>
onload = () => {
  document.getElementById("found").textContent = JSON.stringify([...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement;
    page.querySelectorAll("details").forEach(one => { one.open = true; });
    const boxes = [...page.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
    const said = [...page.querySelectorAll("svg text")].map(text => text.getBoundingClientRect().height);
    const region = page.querySelector(".scroll");
    region.focus();
    return {
      width: root.clientWidth, scroll: root.scrollWidth, background: frame.contentWindow.getComputedStyle(page.body)
        .backgroundColor, drawings: boxes.map(box => [box.width, box.height]), least_text: Math.min(...said),
      focused: page.activeElement === region,
      outside: [...page.querySelectorAll("body *")].filter(one => !one.parentElement.closest(".scroll, .skip, svg"))
        .filter(one => one.getBoundingClientRect().right > root.clientWidth + 1 && one.className !== "skip")
        .map(one => one.outerHTML.slice(0, 120)),
    };
  }));
};
</script>
"""


def browse(tmp_path: Path, text: str, *options: str) -> tuple[list[dict[str, Any]], list[str]]:
    """What each frame measures, and what the console said."""
    (tmp_path / "report.html").write_text(text)
    frames = "".join(
        f'<iframe src="report.html" style="border:0;width:{width}px;height:2000px"></iframe>' for width in WIDTHS
    )
    (tmp_path / "outside.html").write_text(MEASURE % frames)
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=1700,2200",
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}",
        *options,
        "--virtual-time-budget=5000",
        "--dump-dom",
        (tmp_path / "outside.html").as_uri(),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180)
    found = re.search('<pre id="found">(.*?)</pre>', result.stdout, re.DOTALL)
    assert found, result.stderr
    return json.loads(unescape(found[1])), [line for line in result.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_on_a_phone_and_on_a_desk(tmp_path: Path, name: str) -> None:
    measured, console = browse(tmp_path, page(name))
    assert console == []
    drawings = 1 + sum(isinstance(figure, Figure) for figure in report(name).figures)
    for width, frame in zip(WIDTHS, measured, strict=True):
        assert frame["outside"] == []
        assert (frame["width"], frame["scroll"]) == (width, width), "the page scrolls sideways"
        assert len(frame["drawings"]) == drawings
        assert all(box[0] >= 250 and box[1] >= 30 for box in frame["drawings"])
        assert frame["least_text"] >= 9, "text of a drawing is too small to read"
        assert frame["focused"], "a table that scrolls cannot be reached by keyboard"


def test_the_theme_follows_the_reader(tmp_path: Path) -> None:
    backgrounds = []
    for at in (0, 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        measured, console = browse(folder, page(NAMES[0]), f"--blink-settings=preferredColorScheme={at}")
        assert console == []
        backgrounds.append({frame["background"] for frame in measured})
    assert backgrounds == [{"rgb(20, 23, 27)"}, {"rgb(251, 251, 249)"}]


@pytest.mark.parametrize(
    "more", ["<script>alert(1)</script>", '<img src="http://127.0.0.1:9/x.png">', '<p onclick="x()"></p>']
)
def test_what_a_page_forbids_shows_in_the_console(tmp_path: Path, more: str) -> None:
    """The control of the tests above: a page that ran or fetched something would be refused by its own policy."""
    _, console = browse(tmp_path, page(NAMES[0]).replace("</main>", f"{more}</main>"))
    assert console
    assert all("Content Security Policy" in line for line in console)


def test_a_page_that_scrolls_sideways_is_found(tmp_path: Path) -> None:
    wide = '<div style="width: 500px">wide</div></main>'
    measured, _ = browse(tmp_path, page(NAMES[0]).replace("</main>", wide))
    assert [frame["scroll"] > frame["width"] for frame in measured] == [True, False]
