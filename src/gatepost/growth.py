"""Has an archive only grown since a root was noted? Its earlier catalogs follow from the files that are there now.

Records are written once, and the history says to which event each file belongs. So the catalog of an earlier day listed
what the events of that day explain, under the digests of today if nothing was touched:

    protocol.json, bound/   from the first event on
    log/, approvals/        each from its own event on
    attempts/NNNN-<step>/   from the event that closed the attempt on, unless that finished the step
    steps/<step>/           from the event that finished it on
    selection.json          from the event that says so on

A root that comes out of this is proof that every file which it pinned is there unchanged. One that does not is that of
a newer state, or of another history: the archive was rolled back, or rewritten.
"""

from collections.abc import Mapping, Sequence

from gatepost.fingerprint import tree_root
from gatepost.journal import Event


def grown_since(root: str, events: Sequence[Event], digests: Mapping[str, str]) -> Event | None:
    """The last event that a root covers, ``None`` if it is no root of this archive at any event.

    Args:
        root: of a catalog, noted elsewhere.
        events: the history, verified.
        digests: path -> SHA-256 of every file that the catalog lists, verified.
    """
    first = _first_events(events, digests)
    for event in reversed(events):
        there = {path: digest for path, digest in digests.items() if first.get(path, 0) <= event.sequence}
        if event.path in digests and tree_root(there) == root:
            return event
    return None


def _first_events(events: Sequence[Event], paths: Mapping[str, str]) -> dict[str, int]:
    """Path -> number of the event since which a catalog lists it; of paths that are there from the first on, none."""
    first: dict[str, int] = {}
    folders: dict[str, int] = {}
    for event in events:
        first[event.path] = event.sequence
        if event.approval_path is not None:
            first[event.approval_path] = event.sequence
        if event.event == "selected":
            first["selection.json"] = event.sequence
        elif event.event == "finished":
            folders[f"steps/{event.step}"] = event.sequence
        elif event.event != "started" and event.attempt_folder is not None:
            folders[event.attempt_folder] = event.sequence
    of_folders = {path: number for path in paths if (number := folders.get(path.rpartition("/")[0]))}
    return first | of_folders
