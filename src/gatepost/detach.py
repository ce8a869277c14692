"""Move large evidence of a finished study out of its archive: copied, read back and named first, removed last.

Killed anywhere, an archive is whole: the copies are no part of it, the record says where files *may* lie, and a file
that lies in the archive still counts. Running it again goes on.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from gatepost import elsewhere, jsonfile, tree
from gatepost.archive import Archive
from gatepost.errors import DataError, IntegrityError, OrderError
from gatepost.gatefiles import Gates
from gatepost.recovery import recover
from gatepost.replay import replay

OVER_BYTES = 1_000_000


def detach(
    archive: Archive, into: Path, *, gates: Gates, studies: Iterable[Path], over_bytes: int = OVER_BYTES
) -> list[str]:
    """Move the large evidence of an archive into a folder, each file under its SHA-256. Returns their paths.

    Args:
        over_bytes: what is not longer stays, counts and facts whatever they are.

    Raises:
        OrderError: the ladder has an open step, or another run holds the archive.
        IntegrityError: the archive is not whole and faithful, or the folder has other bytes under one of the names.
        DataError: the folder is none, or lies in the archive.
    """
    _require_outside(archive, into)
    with archive.lock():
        recover(archive)
        replayed = replay(archive.root, gates=gates, studies=studies, evidence=into)
        if problems := (*replayed.differences, *replayed.unjudged):
            raise IntegrityError("\n".join([f"{archive.root}: is not faithful, so nothing is moved:", *problems]))
        if not replayed.decision.terminal:
            step = replayed.decision.step
            raise OrderError(f"{archive.root}: {step} is open; evidence is moved once the ladder has ended")
        listed = {entry["path"]: entry["sha256"] for entry in archive.catalog()["files"]}
        sizes, recorded = tree.read(archive.root).files, elsewhere.entries(archive)
        large = [name for name in listed if sizes.get(name, 0) > over_bytes and _is_large(name)]
        moved = sorted({*large, *(name for name in recorded if name in sizes)})
        for name in moved:
            copy(archive.root / name, into, listed[name])
        if moved:
            record = jsonfile.canonical(elsewhere.record_of(archive, [*recorded, *moved]))
            jsonfile.replace(archive.root / elsewhere.RECORD, record)
        for name in moved:
            (archive.root / name).unlink()
            jsonfile.sync_folder((archive.root / name).parent)
    return moved


def _is_large(name: str) -> bool:
    folder, _, file = name.rpartition("/")
    return file in elsewhere.LARGE and folder.partition("/")[0] in ("steps", "attempts")


def _require_outside(archive: Archive, into: Path) -> None:
    if not into.is_dir():
        raise DataError(f"{into}: is not a folder, expected one for evidence outside the archive")
    if into.resolve().is_relative_to(archive.root.resolve()):
        raise DataError(f"{into}: lies in the archive {archive.root}, expected a folder outside it")


def copy(path: Path, into: Path, sha256: str) -> None:
    """Copy a file to ``into/<sha256>``: durable and read back, or not at all. The same bytes may be there already.

    Raises ``IntegrityError`` for other bytes, here or there.
    """
    target, temporary = into / sha256, into / f"{jsonfile.TEMPORARY_PREFIX}{sha256}"
    temporary.unlink(missing_ok=True)  # of a copy that was cut off
    if not (target.is_symlink() or target.exists()):
        try:
            with jsonfile.open_regular(path) as source, jsonfile.naming(temporary), temporary.open("xb") as sink:
                shutil.copyfileobj(source, sink, 2**20)
                sink.flush()
                os.fsync(sink.fileno())
            _require(temporary, sha256, path)
            os.link(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    _require(target, sha256, path)
    with target.open("rb") as there, jsonfile.naming(target):
        os.fsync(there.fileno())  # an earlier copy may have been cut off before its name was durable
    jsonfile.sync_folder(into)


def _require(copied: Path, sha256: str, path: Path) -> None:
    if (found := jsonfile.sha256_of(copied)) != sha256:
        raise IntegrityError(f"{copied}: SHA-256 is {found}, expected {sha256}, that of {path}")
