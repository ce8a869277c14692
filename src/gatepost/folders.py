"""How archives are recognised and named by people. Every pytest run with the plugin imports it, so it stays light."""

import re
from pathlib import Path


def root_of(text: str) -> str:
    """A catalog root with the name of its hash, which people may leave out. Raises ``ValueError`` for other text."""
    digits = text.removeprefix("sha256:")
    if not re.fullmatch("[0-9a-f]{64}", digits):
        raise ValueError(f"{text!r} is not a catalog root, expected 64 hex digits")
    return f"sha256:{digits}"


def is_archive(folder: Path) -> bool:
    """Whether a folder has parts that only an archive has: one that lost its protocol has to fail, not to be missed.

    Other projects have a ``protocol.json`` too, so that file says nothing.
    """
    return sum((folder / part).exists() for part in ("bound", "catalog.json", "log/0001.json", "steps")) >= 2
