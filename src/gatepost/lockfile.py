"""Locks of an environment, in the requirements format: what ``uv pip compile`` and ``pip-compile`` write and pip reads.

A lock is for one platform and one Python: each package once, in one version. So a requirement with a marker is refused,
and so is one that stands for a range, a file or another lock. Extras and hashes say which packages and files get
installed; an installed package shows neither, and they are not compared.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gatepost import jsonfile
from gatepost.errors import DataError

# Each begins at a fixed character: a pattern that begins with a run of spaces takes quadratic time on a long run.
_COMMENT = re.compile(r"(?<!\S)#")
_HASH = re.compile(r"(?<=\s)--hash=[a-z0-9]+:[0-9a-f]+(?!\S)")
_SPACES = re.compile(r"[ \t]{2,}")


def read_pins(path: Path) -> dict[str, str]:
    """Package (by PEP 503) -> version as it is written, in file order.

    Raises:
        DataError: naming file and line, for a line that is no pin and for a package that comes twice; for no pin.
    """
    try:
        text = jsonfile.read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8") from None
    pins: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in _requirements(text):
        package, version = _pin(line, where=f"{path}:{number}")
        if package in pins:
            raise DataError(f"{path}:{number}: {package} is pinned on line {lines[package]} already")
        pins[package], lines[package] = version, number
    if not pins:
        raise DataError(f"{path}: pins nothing, expected one package==version a line")
    return pins


def _requirements(text: str) -> Iterator[tuple[int, str]]:
    """Each requirement with the number of its first line: continued lines joined, comments and hashes taken off."""
    first, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        first = first if parts else number
        comment = _COMMENT.search(line)
        parts.append(line if comment is None else line[: comment.start()].rstrip())
        if parts[-1].endswith("\\"):
            parts[-1] = parts[-1][:-1] + " "
            continue
        if requirement := _SPACES.sub(" ", _HASH.sub("", "".join(parts))).strip():
            yield first, requirement
        parts = []
    if "".join(parts).strip():
        yield first, "".join(parts) + "\\"  # a last line that nothing continues: no pin


def _pin(line: str, *, where: str) -> tuple[str, str]:
    """Package and version of one requirement."""
    expected = "expected package==version"
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        raise DataError(f"{where}: {line[:80]!r} is no pin, {expected}") from None
    if requirement.marker is not None:
        raise DataError(
            f"{where}: {requirement.name} has the marker {str(requirement.marker)!r}, {expected}: "
            "resolve for one platform and one Python"
        )
    pins = [specifier for specifier in requirement.specifier if specifier.operator == "=="]
    if len(pins) != 1 or len(requirement.specifier) != 1 or pins[0].version.endswith(".*"):
        raise DataError(f"{where}: {line[:80]!r} pins no single version, {expected}")
    return canonicalize_name(requirement.name), pins[0].version
