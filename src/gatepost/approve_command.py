"""The command ``gatepost approve``: a reviewer's signed GO for one step."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("archive", type=Path)
    parser.add_argument("--step", required=True, help="such as selection, or confirmation@32")
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="the reviewer's private key")
    parser.add_argument("--statement", default="GO", metavar="TEXT", help="one line that is signed too (default: GO)")


def run(options: argparse.Namespace) -> int:
    """Sign, and say where the ladder stands then."""
    from gatepost.approve import approve
    from gatepost.archive import Archive
    from gatepost.status import status_text

    archive = Archive(options.archive)
    reviewer = approve(archive, options.step, options.key, statement=options.statement)
    print(f"approved: {options.step} by {reviewer}\n{status_text(archive)}")
    return 0
