"""What several commands take alike, and the exit statuses that they share."""

import argparse
from pathlib import Path

from gatepost.folders import root_of

FAITHFUL, UNFAITHFUL, NOT_ALL = 0, 1, 3
"""Exit statuses of what reads a record. ``NOT_ALL``: nothing contradicts it, but some evidence lies elsewhere."""


def folder(text: str) -> Path:
    """A folder that is there."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is not a folder")
    return path


def root(text: str) -> str:
    """A catalog root, as it is printed."""
    try:
        return root_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """``--evidence``, for a command that reads an archive."""
    parser.add_argument(
        "--evidence", type=folder, metavar="DIR", help="where evidence is that was moved out of an archive"
    )


def add_own_folders(parser: argparse.ArgumentParser) -> None:
    """``--gates`` and ``--studies``, for a command that judges; see ``own_gates`` and ``own_studies``."""
    for own, what in (("gates", "gates of your own"), ("studies", "your task domains")):
        text = f"folder with {what}, repeatable (default: ./{own})"
        parser.add_argument(f"--{own}", type=folder, action="append", default=[], metavar="DIR", help=text)


def own_gates(options: argparse.Namespace) -> list[Path]:
    """Own gate folders: those named, else ``./gates``; the shipped ones are always there."""
    return options.gates or [Path("gates")]


def own_studies(options: argparse.Namespace) -> list[Path]:
    """Folders of task domains: those named, else ``./studies``."""
    return options.studies or [Path("studies")]
