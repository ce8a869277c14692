"""Write a report: of one archive the page, of a folder of them an index."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from gatepost import jsonfile
from gatepost.arguments import FAITHFUL, NOT_ALL, UNFAITHFUL
from gatepost.errors import GatepostError
from gatepost.folders import is_archive
from gatepost.gatefiles import Gates
from gatepost.html_report.index import entry_of, render_index
from gatepost.html_report.page import render, report_of
from gatepost.replay import replay


def write_page(
    root: Path, out: Path, *, gates: Gates, studies: Iterable[Path], evidence: Path | None = None
) -> tuple[int, str]:
    """Replay an archive and write its page. Returns the exit status and a line that says what was written.

    Raises ``GatepostError`` for an archive that is not whole, which has no page, and for a place inside an archive.
    """
    _require_outside(out)
    replayed = replay(root, gates=gates, studies=studies, evidence=evidence)
    jsonfile.replace(out, render(report_of(replayed, gates)))
    if not replayed.faithful:
        return UNFAITHFUL, f"{out}: not faithful in {len(replayed.differences)} places"
    return (NOT_ALL if replayed.unjudged else FAITHFUL), f"{out}: {replayed.decision}"


def write_index(roots: Sequence[Path], out: Path) -> tuple[int, str]:
    """Write the index of archives. Returns the exit status and a line that says what was written."""
    _require_outside(out)
    page, whole = render_index(map(entry_of, roots))
    jsonfile.replace(out, page)
    return (FAITHFUL if whole else UNFAITHFUL), f"{out}: {len(roots)} archives, {'whole' if whole else 'not all whole'}"


def _require_outside(out: Path) -> None:
    """A file more in an archive would make it unfaithful."""
    if out.is_dir():
        raise GatepostError(f"{out}: is a folder, expected the name of a file to write")
    if not out.parent.is_dir():
        raise GatepostError(f"{out.parent}: is not a folder, so no report can be written there")
    for folder in out.resolve().parents:
        if is_archive(folder):
            raise GatepostError(f"{out}: lies in the archive {folder}, to which nothing may be added")
