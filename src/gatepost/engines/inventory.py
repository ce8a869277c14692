"""The installed packages, listed from their metadata and without importing any of them.

Rule: list before the engine is imported; the first entry on the search path wins, as it does for ``import``; two
entries for one name in one folder are a fault, since either may be the code that runs. An engine may extend the search
path with vendored copies, and a package may be upgraded while it runs: both show only against a list taken before.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import DistributionFinder, MetadataPathFinder
from pathlib import Path

from gatepost.errors import EngineError


def installed(path: Sequence[str] | None = None) -> dict[str, str]:
    """Normalised package name -> version, along a search path (default: ``sys.path`` as it is now).

    Raises:
        EngineError: ``refused``, when one folder holds two entries for one name.
    """
    listing = _listing(sys.path if path is None else path)
    for name, (folder, versions) in listing.items():
        if len(versions) > 1:
            raise EngineError(
                f"{folder}: {len(versions)} entries for {name} ({', '.join(versions)}), expected one; reinstall it",
                kind="refused",
            )
    return {name: versions[0] for name, (_, versions) in listing.items()}


def changed(before: Mapping[str, str], path: Sequence[str]) -> dict[str, list[str | None]]:
    """Packages whose version along ``path`` is not what it was: name -> [before, now].

    Never raises: this is asked after a run, whose other facts must not be lost over it.
    """
    now = {name: " and ".join(versions) for name, (_, versions) in _listing(path).items()}
    names = sorted(before.keys() | now.keys())
    return {name: [before.get(name), now.get(name)] for name in names if before.get(name) != now.get(name)}


def _listing(path: Sequence[str]) -> dict[str, tuple[Path, list[str]]]:
    """Name -> the first folder that has it, and the versions there."""
    listing: dict[str, tuple[Path, list[str]]] = {}
    # A folder counts once, however often and under whichever name the search path lists it.
    for folder in dict.fromkeys(Path(entry).resolve() for entry in path):
        for name, version in _entries(folder):
            first, versions = listing.setdefault(name, (folder, []))
            if first == folder:
                versions.append(version)
    return {name: (folder, sorted(versions)) for name, (folder, versions) in sorted(listing.items())}


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    for distribution in MetadataPathFinder.find_distributions(DistributionFinder.Context(path=[str(folder)])):
        headers = distribution.metadata
        if "Name" in headers and "Version" in headers:  # else a folder that an uninstaller left: it names no package
            yield re.sub(r"[-_.]+", "-", headers["Name"]).lower(), headers["Version"]
