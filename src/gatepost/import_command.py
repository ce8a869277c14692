"""The command ``gatepost import``: a published run as an archive that replays."""

import argparse
from pathlib import Path

from gatepost.arguments import folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("source", type=Path, help="folder of the published experiment")
    parser.add_argument("--into", type=Path, default=Path("receipts"), help="folder of archives (default: receipts)")
    parser.add_argument("--rows", type=folder, help="folder of rows that were not published, as <step>.jsonl each")


def run(options: argparse.Namespace) -> int:
    """Write the archive. Raises ``GatepostError`` for rows that the run did not lack."""
    from gatepost.audit import native_seam, verified_macro
    from gatepost.errors import GatepostError

    if verified_macro.is_run(options.source):
        archive = verified_macro.import_run(options.source, options.into, rows=options.rows)
    elif options.rows is None:
        archive = native_seam.import_run(options.source, options.into)
    else:
        raise GatepostError(f"--rows: {options.source} is no published run that lacks its rows")
    print(f"imported: {archive.root}\nprotocol: {archive.protocol.digest}")
    return 0
