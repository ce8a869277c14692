"""Find ``gates/``, ``schemas/`` and ``studies/``: beside the package in a wheel, at the root of a checkout else."""

from pathlib import Path

from gatepost.errors import DataError

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The shipped folder of that name. Raises ``DataError`` if the installation is incomplete."""
    for root in (_PACKAGE, _PACKAGE.parent.parent):
        if (root / name).is_dir():
            return root / name
    raise DataError(f"{_PACKAGE}: no folder {name!r} in the package or the checkout; the installation is incomplete")
