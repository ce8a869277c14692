"""What the engines of an archive rendered: the prompts of each finished step, and of each preflight that passed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from gatepost import integrity
from gatepost.archive import Archive, find_archives
from gatepost.audit import rows as tables
from gatepost.errors import DataError, RegistrationError
from gatepost.ladder import steps_of
from gatepost.promptfile import record_digests
from gatepost.prompts import PromptIdentity, identity_of
from gatepost.records import plan_of
from gatepost.stages import Stage


def rendered_prompts(roots: Iterable[Path]) -> list[PromptIdentity]:
    """One identity for each task in each arm, in the order in which archives and their history have them.

    Args:
        roots: archives, or folders of them.

    Raises:
        IntegrityError: an archive is not whole.
        DataError: there is none, one holds no rendered prompt, or its prompts are not those of its tasks.
        RegistrationError: a task was rendered to two different prompts in one arm.
    """
    first: dict[tuple[str, str | None], tuple[PromptIdentity, Path]] = {}
    for root in (archive for given in roots for archive in find_archives(given)):
        archive = Archive(root)
        integrity.verify(archive)
        folders = list(_folders(archive))
        if not folders:
            raise DataError(
                f"{root}: holds no rendered prompts, expected a finished step that sampled or a preflight that passed: "
                f"pytest {root} --gatepost-preflight"
            )
        for stage, folder in folders:
            path = folder / "prompts.parquet"
            for found in _identities(archive, stage, path):
                known, source = first.setdefault(found.posed, (found, path))
                if known != found:
                    where = found.task_id if found.arm is None else f"{found.task_id} in arm {found.arm}"
                    raise RegistrationError(f"{path}: task {where} has another prompt than in {source}")
    return [identity for identity, _ in first.values()]


def _folders(archive: Archive) -> Iterator[tuple[Stage, Path]]:
    """In the order of the history. A preflight that was refused shows what the engine should not have rendered."""
    steps = {str(step): archive.protocol.stage(step.stage) for step in steps_of(archive.protocol)}
    for event in archive.journal.read():
        folder = {"preflight": event.attempt_folder, "finished": f"steps/{event.step}"}.get(event.event)
        if folder is not None and (archive.root / folder / "prompts.parquet").exists():
            yield steps[str(event.step)], archive.root / folder


def _identities(archive: Archive, stage: Stage, path: Path) -> Iterator[PromptIdentity]:
    records = record_digests(archive.tasks(stage.splits[0]))
    registered = plan_of(archive, stage, None, recorded_digest=archive.protocol.digest).task_ids
    prompts = tables.read_prompts(path)
    if sorted(prompt.task_id for prompt in prompts) != sorted(registered):
        raise DataError(f"{path}: prompts of {[prompt.task_id for prompt in prompts]}, expected {list(registered)}")
    for prompt in prompts:
        yield identity_of(prompt, stage.arm, records[prompt.task_id])
