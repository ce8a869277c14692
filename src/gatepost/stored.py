"""Is the evidence what the receipts bound, down to pages and ids? Read as a stream, however large, and not judged.

``integrity`` compares bytes with the catalog, and whoever changes bytes can write a catalog. What is asked here is
whether the files agree with one another: the receipt binds the manifest, the manifest binds the bytes of each file and,
whatever wrote them, the ids in it; each page has a checksum of its own. A replay asks the same, and reads all of a step
at once.
"""

from collections.abc import Mapping
from pathlib import Path

from gatepost import elsewhere, jsonfile, schema
from gatepost.archive import Archive
from gatepost.audit.parquet import verify_pages
from gatepost.audit.sums import sums_of
from gatepost.errors import IntegrityError
from gatepost.ladder import Step
from gatepost.verdict import JSON

ROWS = "rows.parquet"


def verify(archive: Archive) -> None:
    """Raise ``IntegrityError`` or ``DataError`` for the first file that is not what the receipts say.

    ``integrity.verify`` comes before: that the bytes are those in the catalog is taken for granted. Evidence that is
    not at hand is passed over; ``elsewhere.not_at_hand`` names it.
    """
    listed = {entry["path"]: entry["sha256"] for entry in archive.catalog()["files"]}
    for name in listed:
        path = archive.root / name
        if path.suffix == ".parquet" and path.name != ROWS and path.exists():
            verify_pages(path)
    for step in archive.finished_steps():
        _verify_step(archive, step, listed)


def _verify_step(archive: Archive, step: Step, listed: Mapping[str, str]) -> None:
    folder, bound = archive.step_folder(step), archive.receipt(step)["manifest"]
    path = folder / "rows.json"
    manifest, digest = jsonfile.read_frozen(path)
    if digest != bound:
        raise IntegrityError(f"{path}: digest is {digest}, the receipt bound {bound}")
    schema.validate(manifest, kind="rows", source=str(path))
    for entry in manifest["files"]:
        found = listed.get(f"steps/{step}/{entry['path']}")
        if found != entry["sha256"]:
            raise IntegrityError(f"{folder / entry['path']}: SHA-256 is {found}, rows.json bound {entry['sha256']}")
    rows = elsewhere.locate(archive, folder, [ROWS]).here.get(ROWS)
    if rows is not None:
        _verify_rows(rows, path, manifest)


def _verify_rows(rows: Path, path: Path, manifest: Mapping[str, JSON]) -> None:
    for field, value in sums_of(rows)._asdict().items():
        if manifest[field] != value:
            raise IntegrityError(f"{path}: field {field} is {manifest[field]!r}, {rows} gives {value!r}")
