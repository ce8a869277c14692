"""Is the record whole? Every byte of an archive accounted for, before anything is judged."""

from collections.abc import Iterator

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
    notes = list(_verify_tree(archive, catalog))
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
    _verify_selection(archive, unfinished=bool(notes))
    return notes


def _verify_selection(archive: Archive, *, unfinished: bool) -> None:
    path = archive.root / "selection.json"
    expected = archive.expected_selection()
    found = jsonfile.read_canonical(path) if path.exists() else None
    if found != expected and not (found is None and unfinished):
        raise IntegrityError(f"{path}: does not follow from the receipts; found {found}, expected {expected}")


def _verify_tree(archive: Archive, catalog: dict[str, JSON]) -> Iterator[str]:
    """Bytes first: a changed file is named for what it is before anything is read from it. Yields notes."""
    path = archive.root / "catalog.json"
    listed = {entry["path"]: entry for entry in catalog["files"]}
    if len(listed) < len(catalog["files"]):
        raise IntegrityError(f"{path}: lists a file twice")
    root = tree_root({name: entry["sha256"] for name, entry in listed.items()})
    if root != catalog["root"]:
        raise IntegrityError(f"{path}: field root is {catalog['root']}, its own entries give {root}")
    tree = archive.tree()
    for name, entry in sorted(listed.items()):
        if name not in tree:
            raise IntegrityError(f"{archive.root / name}: is missing, but {path.name} lists it")
        sha256, size_bytes = tree[name]
        if sha256 != entry["sha256"]:
            raise IntegrityError(f"{archive.root / name}: SHA-256 is {sha256}, {path.name} lists {entry['sha256']}")
        if size_bytes != entry["size_bytes"]:
            raise IntegrityError(f"{path}: {name} is {size_bytes} bytes long, listed with {entry['size_bytes']}")
    if catalog["protocol"] != archive.protocol.digest:
        raise IntegrityError(f"{path}: field protocol is {catalog['protocol']}, expected {archive.protocol.digest}")
    unsettled = archive.unsettled(set(listed))
    for name in sorted(set(tree) - set(listed)):
        if not name.startswith(unsettled) and not _leftover(name.rpartition("/")[2]):
            raise IntegrityError(f"{archive.root / name}: is not in {path.name}; it was added afterwards")
    for event in archive.open_attempts():
        yield f"attempt {event.attempt} at {event.step} was started at {event.at} and never closed"
    if unsettled and not archive.open_attempts():
        yield "a run was cut off before it wrote the catalog; the next live run will"


def _leftover(name: str) -> bool:
    """A file that an interrupted write left: never read as anything, removed by the next live run."""
    return name.startswith(jsonfile.TEMPORARY_PREFIX)
