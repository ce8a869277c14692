"""Forbidden roots: folders of earlier studies, from which nothing may come and into which nothing may go.

A root is registered relative to the project, or absolute, and looked up wherever a model folder would be. Links are
followed first: what lies under a root by another name lies under it.
"""

from collections.abc import Iterable
from pathlib import Path

from gatepost.errors import RegistrationError
from gatepost.protocol import Protocol


def starts_near(path: Path) -> list[Path]:
    """Where relative paths of a plan are looked up: the working directory, then the folders above the plan."""
    return [Path.cwd(), *path.resolve().parents]


def refuse_forbidden(protocol: Protocol, paths: Iterable[Path], *, near: Path) -> None:
    """Raise ``RegistrationError`` for the first path that lies under a forbidden root.

    Args:
        near: the draft or the archive, from which roots are looked up.
    """
    forbidden = [(root, (start / root).resolve()) for root in protocol.forbidden_roots for start in starts_near(near)]
    for path in paths:
        for root, folder in forbidden:
            if path.resolve().is_relative_to(folder):
                raise RegistrationError(f"{path}: lies under the forbidden root {root!r}")
