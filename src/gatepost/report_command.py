"""The command ``gatepost report``: a page of one archive, or an index of a folder of them."""

import argparse
from pathlib import Path

from gatepost.arguments import add_evidence, own_gates, own_studies


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes besides folders of gates and task domains."""
    parser.add_argument("archive", type=Path, help="an archive, or a folder of archives, which gives an index")
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="default: report.html")
    add_evidence(parser)


def run(options: argparse.Namespace) -> int:
    """Write the report.

    Returns 0, or 1 for a record that is not faithful or archives that are not all whole, or 3 where not all of it could
    be judged here; the report is written all the same, and says so.
    """
    from gatepost.archive import find_archives
    from gatepost.gatefiles import Gates
    from gatepost.html_report.command import write_index, write_page

    roots = find_archives(options.archive)
    if roots == [options.archive]:
        status, line = write_page(
            options.archive,
            options.output,
            gates=Gates(own_gates(options)),
            studies=own_studies(options),
            evidence=options.evidence,
        )
    else:
        status, line = write_index(roots, options.output)
    print(line)
    return status
