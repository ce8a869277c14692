"""Which files and folders an archive has: those named here and no other, so that nothing can hide in one.

Which evidence a step has follows from its stage:

    samples nothing     tasks, parents
    samples             tasks, parents, prompts, rows, session; text unless it is withheld; grades if it is graded
    scores              tasks, parents, choices, scores

An import has no prompts, and what the task domain says of its tasks only if somebody recorded it; where prompts or rows
were not published, ``STAND_INS`` say what is known of them. An attempt that did not finish has some of the same and no
other.
"""

from collections.abc import Sequence

from gatepost import jsonfile
from gatepost.archive import FOLDERS, Archive
from gatepost.errors import IntegrityError
from gatepost.journal import Event
from gatepost.recovery import untold_approvals
from gatepost.stages import Stage
from gatepost.tree import Tree

TOP_FILES = {"protocol.json", "selection.json"}
RECORDS = {"rows.json", "receipt.json"}
BEFORE_GENERATION = {"tasks.parquet", "parents.parquet", "prompts.parquet"}
COUNTS = {"counts.parquet"}
"""Beside rows; the first archives have none."""

STAND_INS = {
    "prompt_digests.json": {"prompts.parquet"},
    "absent_rows.json": {"rows.parquet", "text.parquet", "grades.parquet"},
}
"""Record of an import -> the evidence that it has not got."""


def is_leftover(name: str) -> bool:
    """A file that an interrupted write left: never read as anything, removed by the next live run."""
    return name.rpartition("/")[2].startswith(jsonfile.TEMPORARY_PREFIX)


def evidence_of(stage: Stage) -> set[str]:
    """The evidence that a live step of a stage leaves, all of it and nothing else."""
    names = {"tasks.parquet", "parents.parquet"}
    if stage.scores:
        names |= {"choices.parquet", "scores.parquet"}
    if stage.samples:
        names |= {"prompts.parquet", "rows.parquet", "session.json"}
        names |= {"text.parquet"} if stage.text != "withheld" else set()
        names |= {"grades.parquet"} if stage.text == "graded" else set()
    return names


def verify(archive: Archive, events: Sequence[Event], found: Tree) -> None:
    """Raise ``IntegrityError`` for the first file or folder that an archive does not have, or lacks.

    Args:
        events: the history, verified: it says which attempts there were.
    """
    may: dict[str, set[str]] = {
        "": set(TOP_FILES),
        "log": {event.path.removeprefix("log/") for event in events},
        "bound": {entry.path for entry in archive.protocol.bound},
    }
    if archive.protocol.approvals is not None:
        approvals = [*untold_approvals(archive, events), *(str(event.approval_path) for event in events)]
        may["approvals"] = {name.removeprefix("approvals/") for name in approvals}
    must: dict[str, set[str]] = {}
    for step in archive.finished_steps():
        stage, folder = archive.protocol.stage(step.stage), f"steps/{step}"
        evidence = evidence_of(stage)
        imported = archive.receipt(step)["origin"] == "imported"
        stand_ins = {name for name in STAND_INS if imported and f"{folder}/{name}" in found.files and stage.samples}
        evidence -= {name for stand_in in stand_ins for name in STAND_INS[stand_in]}
        must[folder] = RECORDS | (evidence - BEFORE_GENERATION if imported else evidence)
        may[folder] = RECORDS | evidence | stand_ins | ({"preflight.json"} if stage.samples and not imported else set())
        may[folder] |= COUNTS if "rows.parquet" in evidence else set()
    finished = {event.attempt for event in events if event.event == "finished"}
    for event in events:
        folder = str(event.attempt_folder)
        if event.event == "started" and event.attempt not in finished:
            stage = archive.protocol.stage(str(event.step).partition("@")[0])
            may[folder] = RECORDS | evidence_of(stage) | COUNTS | {"preflight.json", "stream.jsonl"}
        elif event.event in ("preflight", "refused"):
            may[folder] = must[folder] = BEFORE_GENERATION | {"preflight.json"}
    _verify_names(archive, found, may, must)


def _verify_names(archive: Archive, found: Tree, may: dict[str, set[str]], must: dict[str, set[str]]) -> None:
    for folder in sorted(found.folders - set(may) - set(FOLDERS)):
        raise IntegrityError(f"{archive.root / folder}: is a folder that an archive does not have")
    for name in sorted(found.files):
        folder, _, file = name.rpartition("/")
        if file not in may.get(folder, ()) and not (folder in may and is_leftover(name)):
            raise IntegrityError(f"{archive.root / name}: is not part of an archive, or not of this stage")
    for folder, names in must.items():
        for name in sorted(names):
            if f"{folder}/{name}" not in found.files:
                raise IntegrityError(f"{archive.root / folder / name}: is missing; this stage leaves it")
