"""How fast engines sampled, from their archives: `python -m bench.speed ARCHIVE…`, the first one being the measure.

Each run of an archive is one engine in one process, whose session tells the sampled ids and the seconds from the first
request to the last id, so that loading, compiling and capturing stay out.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from gatepost import jsonfile
from gatepost.archive import Archive


def rates(archive: Archive) -> list[float]:
    """Sampled tokens per second of every run, in the order of the ladder."""
    found = []
    for step in archive.finished_steps():
        folder = archive.step_folder(step)
        manifest, session = (jsonfile.read_canonical(folder / name) for name in ("rows.json", "session.json"))
        found.append(manifest["sampled_tokens"] / session["generation_seconds"])
    return found


def main(paths: Sequence[str]) -> None:
    """Print the rates of each archive, and how many times as fast the first one was, run by run and in the median."""
    archives = [Archive(Path(path)) for path in paths]
    measured = [rates(archive) for archive in archives]
    print("sampled tokens/s   median   lowest  highest   first archive / this one: median (lowest to highest)")
    for archive, found in zip(archives, measured, strict=True):
        ratios = [first / other for first, other in zip(measured[0], found, strict=True)]
        spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{archive.protocol.id:<18} {median(found):>7.0f}  {min(found):>7.0f}  {max(found):>7.0f}   {spread}")


if __name__ == "__main__":
    main(sys.argv[1:])
