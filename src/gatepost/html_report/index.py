"""One page over a folder of archives: which studies there are, how each ended by its receipts, and whether it is whole.

Every byte of every archive is compared with its catalog. Nothing is judged again, which a page of one archive does: ten
thousand receipts would take hours.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gatepost import elsewhere, jsonfile, tree
from gatepost.archive import Archive
from gatepost.errors import DataError, GatepostError, IntegrityError
from gatepost.html_report.markup import document, element, escape, paragraph, table
from gatepost.html_report.model import Table, counted
from gatepost.html_report.page import STYLE, without_paths
from gatepost.integrity import verify_bytes
from gatepost.verdict import JSON


class Entry(NamedTuple):
    """One archive.

    Attributes:
        label: of the decision on record; what is open, where there is none.
        steps: outcome of each finished step, as its receipt has it, in the order in which they ran.
        root: of its catalog.
        problem: in what it is not whole; ``None`` if every byte is the one that its catalog lists.
    """

    name: str
    question: str
    label: str
    selected: str
    steps: tuple[str, ...]
    root: str
    problem: str | None


def entry_of(root: Path) -> Entry:
    """Read one archive. One that is not whole gives an entry that says so.

    Its records are not checked against their schemas, which takes longer than all else; a record that is none is
    refused where something is read from it.
    """
    try:
        catalog_root = _verified_root(root)
        with _naming(root / "protocol.json") as path:
            question = str(jsonfile.read(path)["preregistration"]["question"])
        folders = jsonfile.entries(root / "steps")
        receipts = sorted(_receipt(folder / "receipt.json") for folder in folders)
    except GatepostError as error:
        return Entry(root.name, "", "", "", (), "", without_paths(str(error), root))
    label, selected = (receipts[-1].label, receipts[-1].selected) if receipts else ("no receipt yet", "")
    return Entry(root.name, question, label, selected, tuple(one.said for one in receipts), catalog_root, None)


class _Receipt(NamedTuple):
    """What a receipt says of its step. Sorted, they are in the order in which the steps ran."""

    attempt: int
    said: str
    label: str
    selected: str


def _receipt(path: Path) -> _Receipt:
    with _naming(path):
        document = jsonfile.read(path)
        step, decision = document["step"], document["decision"]
        name = step["stage"] if step["rung"] is None else f"{step['stage']}@{step['rung']}"
        said = f"{name} {', '.join(_outcome(judgement, step['rung']) for judgement in document['judgements'])}"
        label = decision["label"] or f"open: {decision['step']}"
        return _Receipt(int(document["attempt"]), said, str(label), str(decision["rung"] or ""))


def _outcome(judgement: Mapping[str, JSON], rung: str | None) -> str:
    at = judgement["rung"]
    return str(judgement["outcome"]) if at in (None, rung) else f"{judgement['outcome']} at {at}"


def _verified_root(root: Path) -> str:
    """The root of a catalog. Raises ``IntegrityError`` unless the files are those it lists, and no others."""
    found = tree.read(root)
    if elsewhere.RECORD in found.files:
        found, away = elsewhere.accounted(Archive(root), found)
    else:
        away = frozenset()
    with _naming(root / "catalog.json") as path:
        catalog = jsonfile.read(path)
        listed = verify_bytes(root, catalog, found, away)
    if odd := sorted(found.files.keys() - listed.keys()):
        raise IntegrityError(f"{root / odd[0]}: is not in catalog.json")
    return str(catalog["root"])


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[Path]:
    """Have a field that is missing, or of another type, be told as an error of this file."""
    try:
        yield path
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: is not the record that its name says: {type(error).__name__} {error}") from None


def render_index(entries: Iterable[Entry]) -> tuple[bytes, bool]:
    """The page, and whether every archive is whole."""
    found = sorted(entries)
    broken = [entry for entry in found if entry.problem is not None]
    receipts = sum(len(entry.steps) for entry in found)
    labels = Counter(entry.label for entry in found if entry.problem is None)
    title = f"{counted(len(found), 'archive')}, {counted(receipts, 'receipt')}"
    parts = [
        element("a", "Skip to the archives", href="#main", class_="skip"),
        element(
            "header",
            paragraph("gatepost report", class_="eyebrow") + element("h1", escape(title)) + _whole(broken, len(found)),
        ),
        element("main", _labels(labels) + _archives(found), id="main"),
        element("footer", paragraph("Written by gatepost from the receipts alone. No clock, no network, no script.")),
    ]
    return document(title, style=STYLE, body="\n".join(parts)), not broken


def _whole(broken: list[Entry], n: int) -> str:
    if not broken:
        text = "Every byte of every archive is the one in its catalog. Decisions are those on record, not judged again."
        return element("p", element("strong", "Whole.") + f" {text}", class_="faithful")
    lines = "".join(element("li", escape(f"{entry.name}: {entry.problem}")) for entry in broken)
    head = element("strong", "Not whole.") + f" {len(broken)} of {counted(n, 'archive')}:"
    return element("div", head + element("ul", lines), class_="alarm", role="alert")


def _labels(labels: Mapping[str, int]) -> str:
    rows = tuple((label, str(count)) for label, count in sorted(labels.items(), key=lambda one: (-one[1], one[0])))
    if not rows:
        return ""
    return element(
        "section", element("h2", "Decisions") + table(Table("Archives by decision", ("Decision", "n"), rows))
    )


def _archives(found: list[Entry]) -> str:
    head = ("Archive", "Decision", "Selected", "Receipts", "Steps", "Question", "Catalog root")
    rows = tuple(
        (
            entry.name,
            "not whole" if entry.problem is not None else entry.label,
            entry.selected,
            str(len(entry.steps)),
            "; ".join(entry.steps),
            entry.question,
            entry.root,
        )
        for entry in found
    )
    return element(
        "section", element("h2", "Archives") + table(Table("Archives, as their receipts have it", head, rows))
    )
