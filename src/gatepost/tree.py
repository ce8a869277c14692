"""What lies under an archive's folder: regular files and folders, by relative POSIX path. Nothing is read."""

import contextlib
import os
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gatepost import runlock
from gatepost.errors import IntegrityError


@dataclass(frozen=True)
class Tree:
    """``files`` maps a path to its size in bytes. The catalog, which lists them, and a lock are none of them."""

    files: dict[str, int]
    folders: frozenset[str]


def read(root: Path) -> Tree:
    """Walk an archive. Raises ``IntegrityError`` for links, devices and whatever else is neither file nor folder.

    A file that has another name outside the archive can be changed there, so it is refused too. Two names inside it are
    what a write has for a moment, and what one that was cut off leaves; that they are the right names is for others.
    """
    files: dict[str, int] = {}
    folders: set[str] = set()
    linked: dict[Path, int] = {}
    for parent, names_of_folders, names in os.walk(root, onerror=_refuse_unreadable):
        for name in (*names_of_folders, *names):
            path = Path(parent) / name
            relative = path.relative_to(root).as_posix()
            with contextlib.suppress(FileNotFoundError):  # a live run may remove what it has just written
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    raise IntegrityError(f"{path}: is a symbolic link, expected a regular file or a folder")
                if stat.S_ISDIR(status.st_mode):
                    folders.add(relative)
                elif not stat.S_ISREG(status.st_mode):
                    raise IntegrityError(f"{path}: is not a regular file")
                else:
                    if relative not in ("catalog.json", runlock.NAME):
                        files[relative] = status.st_size
                    if status.st_nlink > 1:
                        linked[path] = status.st_ino
    _refuse_other_names(linked)
    return Tree(files, frozenset(folders))


def _refuse_other_names(linked: dict[Path, int]) -> None:
    here = Counter(linked.values())
    for path, number in linked.items():
        with contextlib.suppress(FileNotFoundError):
            if (names := path.lstat().st_nlink) > here[number]:
                raise IntegrityError(
                    f"{path}: is a hard link, of {names} names only {here[number]} in the archive, expected a file of "
                    "its own: copy the archive"
                )


def _refuse_unreadable(error: OSError) -> NoReturn:
    raise IntegrityError(f"{error.filename}: cannot be read: {error.strerror}") from None
