"""What a run that was cut off leaves in an archive, and how the next one settles it.

Until then each such file is explained by an attempt that is open, or by an event that is itself newer than the catalog.
"""

from collections.abc import Collection, Sequence

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.journal import Event
from gatepost.ladder import steps_of
from gatepost.refusal import ending


def recover(archive: Archive) -> None:
    """Finish or close what an earlier invocation left open. It is dead, since this one holds the lock."""
    for leftover in archive.root.rglob(f"{jsonfile.TEMPORARY_PREFIX}*"):
        leftover.unlink()
    for name in untold_approvals(archive, archive.journal.read()):
        (archive.root / name).unlink()  # it never counted, and its reviewer can give it again
    for event in archive.open_attempts():
        step = next(step for step in steps_of(archive.protocol) if str(step) == event.step)
        number = event.attempt or 0
        if archive.step_folder(step).exists():
            archive.settle(step, number)
        else:
            folder = archive.root / str(event.attempt_folder)
            said, detail = ending(folder, step, "interrupted: the run ended without a word")
            archive.close(said, step, number, detail)
    if unsettled(archive, {entry["path"] for entry in archive.catalog()["files"]}):
        archive.select()
        archive.write_catalog()


def unsettled(archive: Archive, catalogued: Collection[str]) -> tuple[str, ...]:
    """Path prefixes of what a run may have left outside the catalog when it was cut off, or has there now."""
    events = archive.journal.read()
    late = [event for event in events if event.path not in catalogued]
    explained = [*untold_approvals(archive, events), *(event.path for event in late)]
    explained += [event.approval_path for event in late if event.approval_path]
    for event in (*archive.open_attempts(events), *late):
        if event.attempt is not None:
            explained += [f"{event.attempt_folder}/", f"steps/{event.step}/"]
    return (*explained, "selection.json") if explained else ()


def untold_approvals(archive: Archive, events: Sequence[Event]) -> list[str]:
    """Approvals that were cut off before their event, relative to the archive."""
    written = (f"approvals/{path.name}" for path in jsonfile.entries(archive.root / "approvals"))
    return [name for name in written if name.startswith(f"approvals/{len(events) + 1:04}-")]
