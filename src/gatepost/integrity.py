"""Is the record whole? Every byte of an archive accounted for, before anything is judged."""

from collections.abc import Iterator

from gatepost import approval, history, jsonfile, layout, recovery, schema, tree
from gatepost.archive import Archive, of_line_endings
from gatepost.errors import IntegrityError
from gatepost.fingerprint import tree_root
from gatepost.tree import Tree
from gatepost.verdict import JSON


def verify(archive: Archive, *, expected_root: str | None = None) -> list[str]:
    """Verify the tree against its catalog, its layout, the bound files, the selection and the history.

    Args:
        expected_root: catalog root noted elsewhere (a paper, a commit); shows a rollback, which nothing inside
            the archive can. It pins every file, so that nothing may lie outside the catalog, as a run in progress
            may leave it else.

    Returns notes on what is unfinished. Raises ``IntegrityError`` or ``DataError`` naming the first file at fault.
    """
    found, catalog = tree.read(archive.root), archive.catalog()
    listed = {entry["path"]: entry for entry in catalog["files"]}
    _verify_listed(archive, catalog, listed, found)
    if expected_root is not None and catalog["root"] != expected_root:
        raise IntegrityError(
            f"{archive.root / 'catalog.json'}: root is {catalog['root']}, expected {expected_root}: "
            "the archive was rolled back, extended or rewritten since"
        )
    unsettled = recovery.unsettled(archive, listed) if expected_root is None else ()
    for name in sorted(set(found.files) - set(listed)):
        if expected_root is not None or not (name.startswith(unsettled) or layout.is_leftover(name)):
            raise IntegrityError(f"{archive.root / name}: is not in catalog.json; it was added afterwards")
    events = archive.journal.read()
    history.verify_events(archive, events)
    layout.verify(archive, events, found)
    approval.verify(archive, events, listed)
    for entry in archive.protocol.bound:
        archive.verify_bound(entry.path)
    _verify_selection(archive, unfinished=bool(unsettled))
    history.verify_receipts(archive, events)
    history.verify_order(archive, events, unfinished=bool(unsettled))
    return list(_notes(archive, found, unfinished=bool(unsettled)))


def _verify_listed(archive: Archive, catalog: JSON, listed: dict[str, JSON], found: Tree) -> None:
    """Bytes first: a changed file is named for what it is before anything is read from it."""
    path = archive.root / "catalog.json"
    if len(listed) < len(catalog["files"]):
        raise IntegrityError(f"{path}: lists a file twice")
    root = tree_root({name: entry["sha256"] for name, entry in listed.items()})
    if root != catalog["root"]:
        raise IntegrityError(f"{path}: field root is {catalog['root']}, its own entries give {root}")
    for name, entry in sorted(listed.items()):
        file = archive.root / name
        if name not in found.files:
            raise IntegrityError(f"{file}: is missing, but catalog.json lists it{_strangers(name, listed, found)}")
        if found.files[name] != (size_bytes := entry["size_bytes"]):
            rewritten = size_bytes < found.files[name] <= 2 * size_bytes  # a line has at least one byte, and gains one
            cause = of_line_endings(jsonfile.read_bytes(file), entry["sha256"]) if rewritten else ""
            raise IntegrityError(f"{file}: is {found.files[name]} bytes long, catalog.json lists {size_bytes}{cause}")
        if (sha256 := jsonfile.sha256_of(file)) != entry["sha256"]:
            raise IntegrityError(f"{file}: SHA-256 is {sha256}, catalog.json lists {entry['sha256']}")
    if catalog["protocol"] != archive.protocol.digest:
        raise IntegrityError(f"{path}: field protocol is {catalog['protocol']}, expected {archive.protocol.digest}")


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
    attempts = archive.open_attempts()
    for event in attempts:
        yield f"attempt {event.attempt} at {event.step} was started at {event.at} and never closed"
    if unfinished and not attempts:
        yield "a run was cut off before it wrote the catalog; the next live run will"
    yield from (f"{name}: was left by an interrupted write" for name in sorted(filter(layout.is_leftover, found.files)))
