"""The command ``gatepost init``: a study of one's own that runs at once."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("name", help="of the new folder, of the study in it and of its protocol")
    parser.add_argument(
        "--model", type=Path, metavar="PATH", help="local folder of a model (default: the embedded one of a checkout)"
    )


def run(options: argparse.Namespace) -> int:
    """Write the study and say what comes next."""
    from gatepost.new_study import create

    name = options.name
    create(name, Path.cwd(), model=options.model)
    print(
        f"written: {name}/, a study with a gate of your own and its test; {name}/README.md tells what is where\n"
        f"next, in it (cd {name}):\n"
        "  pytest                                     tests the gate, on both sides of its boundaries\n"
        f"  gatepost freeze studies/{name}/protocol.toml\n"
        f"                                             checks the plan as a whole and freezes it to receipts/{name}\n"
        f"  pytest -m cpu receipts/{name} --gatepost-live\n"
        "                                             runs the next step; again for each step, until the ladder ends"
    )
    return 0
