"""What lies under an archive's folder: regular files and folders, by relative POSIX path. Nothing is read."""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from gatepost.errors import IntegrityError


@dataclass(frozen=True)
class Tree:
    """``files`` maps a path to its size in bytes. The catalog, which lists the files, is not one of them."""

    files: dict[str, int]
    folders: frozenset[str]


def read(root: Path) -> Tree:
    """Walk an archive. Raises ``IntegrityError`` for links, devices and whatever else is neither file nor folder."""
    files: dict[str, int] = {}
    folders: set[str] = set()
    for parent, names_of_folders, names in os.walk(root):
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
                elif relative != "catalog.json":
                    files[relative] = status.st_size
    return Tree(files, frozenset(folders))
