"""Write the task files of the study, the same bytes every time: `python make_tasks.py [folder]`.

The evaluation splits are drawn before the development corpus, each with programs of its own; development then takes
what they leave. So no record, no content and no program is shared between any two files.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import domain  # type: ignore[import-not-found]  # found in the script's own folder

HERE = Path(__file__).resolve().parent


class Split(NamedTuple):
    """One file to write: its name, number of tasks, seed, and the effort that its prompts state."""

    name: str
    size: int
    seed: int
    effort: str | None = None


SPLITS = (
    Split("selection", 16, 4101),
    Split("confirmation", 24, 4102),
    Split("confirmation_high_effort", 24, 4103, "high"),
    Split("development", 80, 4104),
)


def draw_splits() -> dict[str, list[domain.Task]]:
    """All splits by name, disjoint on record, content and program."""
    drawn: dict[str, list[domain.Task]] = {}
    contents: set[str] = set()
    programs: set[str] = set()
    for split in SPLITS:
        tasks = domain.generate(
            split.name,
            split.size,
            split.seed,
            exclude_records=contents,
            exclude_programs=programs,
            effort=split.effort,
        )
        contents |= {domain.content_fingerprint(task) for task in tasks}
        programs |= {domain.program_fingerprint(task) for task in tasks}
        drawn[split.name] = tasks
    return drawn


def write_splits(folder: Path) -> None:
    """Write `<split>.jsonl` per split: one compact JSON object a line, keys sorted."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, tasks in draw_splits().items():
        lines = (json.dumps(task, sort_keys=True, separators=(",", ":")) + "\n" for task in tasks)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE / "tasks", help="where the files go")
    write_splits(parser.parse_args().folder)
