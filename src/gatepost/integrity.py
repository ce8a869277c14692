"""Is the record whole? Every byte of an archive accounted for, before anything is judged."""

from collections.abc import Iterator
from pathlib import Path

from gatepost import approval, elsewhere, growth, history, jsonfile, layout, recovery, runlock, schema, tree
from gatepost.archive import Archive, of_line_endings
from gatepost.errors import IntegrityError
from gatepost.fingerprint import tree_root
from gatepost.journal import Event
from gatepost.tree import Tree
from gatepost.verdict import JSON


def verify(archive: Archive, *, expected_root: str | None = None) -> list[str]:
    """Verify the tree against its catalog, its layout, the bound files, the selection and the history.

    Args:
        expected_root: catalog root noted elsewhere (a paper, a commit); shows a rollback, which nothing inside
            the archive can. The root of now pins every file, so that nothing may lie outside the catalog, as a run in
            progress may leave it else. One of earlier is taken if all that it pinned is there unchanged.

    Returns notes on what is unfinished, and on what came after the expected root. Raises ``IntegrityError`` or
    ``DataError`` naming the first file at fault.
    """
    (found, away), catalog = elsewhere.accounted(archive, tree.read(archive.root)), archive.catalog()
    listed = verify_bytes(archive.root, catalog, found, away)
    if catalog["protocol"] != archive.protocol.digest:
        raise IntegrityError(
            f"{archive.root / 'catalog.json'}: field protocol is {catalog['protocol']}, "
            f"expected {archive.protocol.digest}"
        )
    absent = elsewhere.verify(archive, away)
    pinned = catalog["root"] == expected_root
    unsettled = recovery.unsettled(archive, listed) if not pinned else ()
    for name in sorted(set(found.files) - set(listed)):
        if pinned or not (name.startswith(unsettled) or layout.is_leftover(name)):
            raise IntegrityError(f"{archive.root / name}: is not in catalog.json; it was added afterwards")
    events = archive.journal.read()
    history.verify_events(archive, events)
    grown = [] if expected_root is None or pinned else [_growth(archive, events, catalog, expected_root)]
    layout.verify(archive, events, found)
    approval.verify(archive, events, listed)
    for entry in archive.protocol.bound:
        archive.verify_bound(entry.path)
    _verify_selection(archive, unfinished=bool(unsettled))
    history.verify_receipts(archive, events)
    history.verify_order(archive, events, unfinished=bool(unsettled))
    return [*grown, *absent, *_notes(archive, found, unfinished=bool(unsettled))]


def _growth(archive: Archive, events: list[Event], catalog: JSON, noted: str) -> str:
    last = growth.grown_since(noted, events, {entry["path"]: entry["sha256"] for entry in catalog["files"]})
    if last is None:
        raise IntegrityError(
            f"{archive.root / 'catalog.json'}: root is {catalog['root']}, expected {noted}, which it had at none of "
            f"its {len(events)} events: the archive was rolled back to before that root, or rewritten since"
        )
    step = f" {last.step}" if last.step else ""
    return (
        f"extended since the expected root: {last.path} ({last.event}{step}, {last.at}) was the last event then, "
        f"{len(events) - last.sequence} came after it; every file that it pinned is as it was"
    )


def verify_bytes(root: Path, catalog: JSON, found: Tree, away: frozenset[str]) -> dict[str, JSON]:
    """Bytes first: a changed file is named for what it is before anything is read from it.

    Args:
        root: of the archive.
        away: files that the archive says lie elsewhere, which have no bytes here.

    Returns the entries of the catalog by path. Raises ``IntegrityError`` for the first that is not there as listed;
    files that no entry lists are for others.
    """
    path, listed = root / "catalog.json", {entry["path"]: entry for entry in catalog["files"]}
    if len(listed) < len(catalog["files"]):
        raise IntegrityError(f"{path}: lists a file twice")
    if list(listed) != sorted(listed):
        raise IntegrityError(f"{path}: field files is not in the order of the paths, which is the one form it has")
    if (given := tree_root({name: entry["sha256"] for name, entry in listed.items()})) != catalog["root"]:
        raise IntegrityError(f"{path}: field root is {catalog['root']}, its own entries give {given}")
    for name, entry in sorted(listed.items()):
        file = root / name
        if name not in found.files:
            raise IntegrityError(f"{file}: is missing, but catalog.json lists it{_strangers(name, listed, found)}")
        if found.files[name] != (size_bytes := entry["size_bytes"]):
            rewritten = size_bytes < found.files[name] <= 2 * size_bytes  # a line has at least one byte, and gains one
            cause = of_line_endings(jsonfile.read_bytes(file), entry["sha256"]) if rewritten else ""
            raise IntegrityError(f"{file}: is {found.files[name]} bytes long, catalog.json lists {size_bytes}{cause}")
        if name not in away and (sha256 := jsonfile.sha256_of(file)) != entry["sha256"]:
            raise IntegrityError(f"{file}: SHA-256 is {sha256}, catalog.json lists {entry['sha256']}")
    return listed


def _strangers(name: str, listed: dict[str, JSON], found: Tree) -> str:
    """What lies beside a missing file and is not listed, spelt out: a name in another case or script looks the same."""
    folder = name.rpartition("/")[0]
    others = [ascii(other) for other in sorted(set(found.files) - set(listed)) if other.rpartition("/")[0] == folder]
    return f"; found instead: {', '.join(others[:3])}" if others else ""


def _verify_selection(archive: Archive, *, unfinished: bool) -> None:
    path = archive.root / "selection.json"
    expected = archive.expected_selection()
    found = jsonfile.read_canonical(path) if path.exists() else None
    if found is not None:
        schema.validate(found, kind="selection", source=str(path))
    if not jsonfile.same(found, expected) and not (found is None and unfinished):
        raise IntegrityError(f"{path}: does not follow from the receipts; found {found}, expected {expected}")


def _notes(archive: Archive, found: Tree, *, unfinished: bool) -> Iterator[str]:
    if (lock := runlock.told(archive.root)) is not None:
        yield lock
    attempts = archive.open_attempts()
    for event in attempts:
        yield f"attempt {event.attempt} at {event.step} was started at {event.at} and never closed"
    if unfinished and not attempts:
        yield "a run was cut off before it wrote the catalog; the next live run will"
    yield from (f"{name}: was left by an interrupted write" for name in sorted(filter(layout.is_leftover, found.files)))
