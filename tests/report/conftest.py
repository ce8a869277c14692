"""Reports of the archives in the repository, made once, and what tests read out of a page."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gatepost.gatefiles import Gates
from gatepost.html_report import Report, render, report_of
from gatepost.replay import replay

ROOT = Path(__file__).resolve().parents[2]
RECEIPTS = ROOT / "receipts"
ARCHIVES = sorted(path.name for path in RECEIPTS.iterdir())
VOID = {"meta", "link", "br", "hr", "img", "input", "path", "rect", "use"}


@pytest.fixture(autouse=True)
def extra() -> None:
    """What draws is an extra; without it these tests are skipped by name."""
    pytest.importorskip("matplotlib", reason="needs the extra report: matplotlib")


@cache
def report(name: str) -> Report:
    """The report of an archive in the repository."""
    gates = Gates()
    return report_of(replay(RECEIPTS / name, gates=gates, studies=[]), gates)


@cache
def page(name: str) -> str:
    """Its page."""
    return render(report(name)).decode()


class Page(HTMLParser):
    """The elements of a page in order, with their attributes, and the text of it. Raises for tags that do not pair."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in VOID or "svg" in self.open, tag
        self.elements.append((tag, {name: value or "" for name, value in attributes}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All that is read, with single spaces."""
        return re.sub(r"[ \n\t]+", " ", " ".join(self.words))

    def all(self, tag: str) -> list[dict[str, str]]:
        """Attributes of each element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]
