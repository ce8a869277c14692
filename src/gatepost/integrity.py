"""Is the record whole? Every byte of an archive accounted for, before anything is judged."""

from gatepost import jsonfile
from gatepost.archive import FOLDERS, Archive
from gatepost.errors import IntegrityError
from gatepost.fingerprint import tree_root
from gatepost.verdict import JSON

TOP_FILES = {"protocol.json", "selection.json", "catalog.json"}


def verify(archive: Archive, *, expected_root: str | None = None) -> list[str]:
    """Verify the tree against its catalog, its history, the bound files and the selection.

    Args:
        expected_root: catalog root noted elsewhere (a paper, a commit); shows a rollback, which nothing inside
            the archive can.

    Returns notes on what is unfinished. Raises ``IntegrityError`` or ``DataError`` naming the first file at fault.
    """
    for path in sorted(archive.root.iterdir()):
        if path.name not in TOP_FILES and path.name not in FOLDERS and not _leftover(path.name):
            raise IntegrityError(f"{path}: is not part of an archive")
    catalog = archive.catalog()
    _verify_tree(archive, catalog)
    if expected_root is not None and catalog["root"] != expected_root:
        raise IntegrityError(
            f"{archive.root / 'catalog.json'}: root is {catalog['root']}, expected {expected_root}: "
            "the archive was rolled back, extended or rewritten since"
        )
    bound = {entry.path for entry in archive.protocol.bound}
    if strangers := [path.name for path in jsonfile.entries(archive.root / "bound") if path.name not in bound]:
        raise IntegrityError(f"{archive.root / 'bound' / strangers[0]}: is not bound by the protocol")
    for name in sorted(bound):
        archive.verify_bound(name)
    events = archive.journal.read()
    selection = archive.root / "selection.json"
    if selection.exists() or archive.finished_steps():
        expected = archive.expected_selection()
        found = jsonfile.read_canonical(selection) if selection.exists() else None
        if found != expected:
            raise IntegrityError(f"{selection}: does not follow from the receipts; found {found}, expected {expected}")
    return [
        f"attempt {event.attempt} at {event.step} was started at {event.at} and never closed"
        for event in archive.open_attempts(events)
    ]


def _verify_tree(archive: Archive, catalog: dict[str, JSON]) -> None:
    path = archive.root / "catalog.json"
    if catalog["protocol"] != archive.protocol.digest:
        raise IntegrityError(
            f"{archive.root / 'protocol.json'}: digest is {archive.protocol.digest}, "
            f"the catalog was made for {catalog['protocol']}"
        )
    listed = {entry["path"]: (entry["sha256"], entry["size_bytes"]) for entry in catalog["files"]}
    if len(listed) < len(catalog["files"]):
        raise IntegrityError(f"{path}: lists a file twice")
    root = tree_root({name: sha256 for name, (sha256, _) in listed.items()})
    if root != catalog["root"]:
        raise IntegrityError(f"{path}: field root is {catalog['root']}, its own entries give {root}")
    tree = archive.tree()
    for name in sorted(set(listed) - set(tree)):
        raise IntegrityError(f"{archive.root / name}: is missing, but the catalog lists it")
    unfinished = tuple(f"attempts/{event.attempt:04}-{event.step}/" for event in archive.open_attempts())
    for name in sorted(set(tree) - set(listed)):
        if not name.startswith(unfinished) and not _leftover(name.rpartition("/")[2]):
            raise IntegrityError(f"{archive.root / name}: is not in the catalog; it was added afterwards")
    for name, entry in sorted(listed.items()):
        if tree[name] != entry:
            raise IntegrityError(f"{archive.root / name}: SHA-256 is {tree[name][0]}, the catalog lists {entry[0]}")


def _leftover(name: str) -> bool:
    """A file that an interrupted write left: never read as anything, removed by the next live run."""
    return name.startswith(jsonfile.TEMPORARY_PREFIX)
