"""Draw tasks, and write the task files of the study, the same bytes every time: `python make_tasks.py [folder]`.

Development is drawn after the probe and leaves out its programs and contents, so the two files share no record, no
content and no program. The tasks that one macro solves are new by content alone: they have six programs in all.
"""

import argparse
import json
import random
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from gatepost.gatefiles import load_module

HERE = Path(__file__).resolve().parent
# By path and not by name: another study's file is called domain.py too.
domain: Any = load_module(HERE / "domain.py", prefix="gatepost_domain")

Program = tuple[str, ...]
Task = dict[str, Any]

LIBRARY: dict[str, Program] = {
    "M0": ("SORT", "REV"),
    "M1": ("ROTL", "ROTL"),
    "M2": ("NEG", "ADD1"),
    "M3": ("SWAP", "DIFF"),
    "M4": ("ZIGZAG", "PREFIX"),
    "M5": ("MUL2", "ADD1"),
    "M6": ("PREFIX", "PREFIX", "REV"),
    "M7": ("DIFF", "NEG", "SWAP"),
}


class Shape(NamedTuple):
    """What a task looks like: whether its program is built from macros, and its depth in primitives."""

    reuse: bool
    depth: int


# One round. Kinds alternate, so that a split cut anywhere stays balanced. Programs of one or two calls come along with
# deeper ones, so that a small model is not at zero in every arm.
SHAPES = (
    Shape(True, 2), Shape(False, 1), Shape(True, 2), Shape(False, 2), Shape(True, 3), Shape(False, 2),
    Shape(True, 3), Shape(False, 3), Shape(True, 4), Shape(False, 3), Shape(True, 5), Shape(False, 4),
)  # fmt: skip

# Two calls or one macro: each macro of two primitives once a round.
ONE_MACRO = (Shape(True, 2),) * 6

EXAMPLES = {"visible": 6, "hidden": 8, "probe": 4}

_MAX_DRAWS_PER_TASK = 10_000


class Split(NamedTuple):
    """One file to write: its name, number of tasks, seed and shapes, and whether its programs have to be new."""

    name: str
    size: int
    seed: int
    shapes: Sequence[Shape] = SHAPES
    new_programs: bool = True


SPLITS = (
    Split("probe", 12, 5101),
    Split("development", 60, 5102),
    Split("one_macro", 12, 5103, ONE_MACRO, new_programs=False),
)


def generate(
    split: str,
    count: int,
    seed: int,
    *,
    shapes: Sequence[Shape] = SHAPES,
    exclude_records: Collection[str] = (),
    exclude_programs: Collection[str] = (),
) -> list[Task]:
    """Draw `count` tasks, the same for the same arguments.

    Shapes are dealt in rounds, and no program occurs twice in a round. `exclude_records` holds record or content
    fingerprints, `exclude_programs` program fingerprints that must not occur. Raises ValueError when the exclusions
    leave no task to draw.
    """
    rng = random.Random(f"{domain.NAME}/{split}/{seed}")
    contents, programs = set(exclude_records), set(exclude_programs)
    tasks: list[Task] = []
    for index in range(count):
        turn = index % len(shapes)
        if turn == 0:
            programs = set(exclude_programs)
        task = _draw_allowed(rng, shapes[turn], contents, programs)
        contents.add(domain.content_fingerprint(task))
        programs.add(domain.program_fingerprint(task))
        tasks.append({"task_id": f"{split}-{index:05d}", **task})
    return tasks


def _draw_allowed(rng: random.Random, shape: Shape, contents: set[str], programs: set[str]) -> Task:
    for _ in range(_MAX_DRAWS_PER_TASK):
        calls = _draw_reuse(rng, shape.depth) if shape.reuse else rng.choices(tuple(domain.PRIMITIVES), k=shape.depth)
        program = _expanded(calls)
        if not _has_shape(program, shape) or domain.signature(program) in programs:
            continue
        task = _draw_examples(rng, program, [call for call in calls if call in LIBRARY])
        identities = domain.record_fingerprint(task), domain.content_fingerprint(task)
        if contents.isdisjoint(identities) and _needs_its_depth(task):
            return task
    raise ValueError(f"no task left of shape {shape}")


def _draw_reuse(rng: random.Random, depth: int) -> list[str]:
    calls = [rng.choice(tuple(LIBRARY))]
    while len(_expanded(calls)) < depth:
        calls.append(rng.choice(tuple(rng.choice((domain.PRIMITIVES, LIBRARY)))))
    rng.shuffle(calls)
    return calls


def _expanded(calls: Iterable[str]) -> Program:
    return tuple(name for call in calls for name in LIBRARY.get(call, (call,)))


def _has_shape(program: Program, shape: Shape) -> bool:
    """Exactly as deep as the shape says, and free of macros where it says so."""
    if len(program) != shape.depth or domain.program_depth(program) != shape.depth:
        return False
    return shape.reuse or not any(_occurs(macro, program) for macro in LIBRARY.values())


def _occurs(macro: Program, program: Program) -> bool:
    starts = range(len(program) - len(macro) + 1)
    return any(program[start : start + len(macro)] == macro for start in starts)


def _draw_examples(rng: random.Random, program: Program, motifs: list[str]) -> Task:
    inputs: list[tuple[int, ...]] = []
    while len(inputs) < sum(EXAMPLES.values()):
        values = tuple(rng.randrange(domain.MODULUS) for _ in range(domain.LENGTH))
        if values not in inputs:
            inputs.append(values)
    pairs = iter([{"input": list(values), "output": list(domain.run(program, values))} for values in inputs])
    return {
        "min_depth": len(program),
        "program": list(program),
        "motifs": motifs,
        "library": {token: list(names) for token, names in LIBRARY.items()},
        **{part: list(islice(pairs, size)) for part, size in EXAMPLES.items()},
    }


def _needs_its_depth(task: Task) -> bool:
    """No shorter program explains what is shown: a depth that only unseen inputs prove would overstate the task."""
    return domain.minimum_depth(domain.examples(task, "visible"), max_depth=task["min_depth"] - 1) is None


def draw_splits() -> dict[str, list[Task]]:
    """All splits by name, disjoint on record and content, and on program where a split says so."""
    drawn: dict[str, list[Task]] = {}
    contents: set[str] = set()
    programs: set[str] = set()
    for split in SPLITS:
        tasks = generate(
            split.name,
            split.size,
            split.seed,
            shapes=split.shapes,
            exclude_records=contents,
            exclude_programs=programs if split.new_programs else (),
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
