"""What every import does: freeze a transcribed plan beside the published evidence, and judge the evidence under it."""

import contextlib
import fcntl
import gzip
import io
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from gatepost import jsonfile
from gatepost.agreement import require_agreement
from gatepost.archive import Archive
from gatepost.errors import DataError, GatepostError, IntegrityError
from gatepost.freeze import plan
from gatepost.gatefiles import Gates
from gatepost.journal import Clock
from gatepost.judge import judge
from gatepost.ladder import Judgement, Step, audit
from gatepost.records import records_of
from gatepost.stepfiles import write_receipt

TRANSCRIBED = (
    "the plan was transcribed after the results were public: this replays a record, it does not preregister one"
)
"""The first limit of every import."""

Fill = Callable[[Archive, Gates], None]


def published_bytes(path: Path) -> bytes:
    """The bytes of a published file, unpacked where it is named ``.gz``.

    Raises ``DataError`` for one that is none, and for more than ``MAX_RECORD_BYTES``, packed or not: a few packed
    bytes can stand for any number.
    """
    data = jsonfile.read_bytes(path, at_most=jsonfile.MAX_RECORD_BYTES)
    if path.suffix != ".gz":
        return data
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            unpacked = stream.read(jsonfile.MAX_RECORD_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable gzip file: {error}") from None
    if len(unpacked) > jsonfile.MAX_RECORD_BYTES:
        raise DataError(f"{path}: unpacks to more than {jsonfile.MAX_RECORD_BYTES} bytes")
    return unpacked


def import_into(
    into: Path, draft: Path, files: Mapping[str, bytes], fill: Fill, *, origins: Mapping[str, Path], clock: Clock
) -> Archive:
    """Freeze a shipped draft with the published files that it binds, and fill the new archive with steps.

    The archive is built aside and renamed when it is whole. What an import left that was killed is removed by the next
    one of the study. Raises ``IntegrityError`` if the archive's name is taken, or if another import is at work.

    Args:
        origins: file of the archive -> published file that it is made from: a refusal names this one, which is there.
    """
    try:
        jsonfile.make_folder(into)
    except OSError as error:
        raise DataError(f"{into}: cannot be the folder of archives: {error.strerror}") from None
    aside = into / f"{jsonfile.TEMPORARY_PREFIX}import-{draft.parent.name}"
    with _alone_in(aside):
        try:
            root = _build(into, aside, draft, files, fill, clock)
        except GatepostError as error:
            error.args = (_of_the_source(str(error), aside, {**origins, draft.name: draft}),)
            raise
    return Archive(root, clock=clock)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """An empty folder while the block runs. A lock, which ends with its process, tells one in use from one left."""
    try:
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise IntegrityError(f"{folder}: cannot be built in: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IntegrityError(f"{folder}: another import is at work here; wait until it has ended") from None
        try:
            for left in folder.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _build(into: Path, aside: Path, draft: Path, files: Mapping[str, bytes], fill: Fill, clock: Clock) -> Path:
    for name, data in {**files, draft.name: draft.read_bytes()}.items():
        with jsonfile.naming(aside / name):
            (aside / name).write_bytes(data)
    gates = Gates()
    frozen = plan(aside / draft.name, gates=gates, studies=[draft.parent.parent], starts_engine=False)
    root = into / frozen.protocol.id
    if root.exists():
        raise IntegrityError(f"{root}: exists already; an import never overwrites an archive")
    archive = Archive.create(aside, frozen, clock=clock, event="imported")
    fill(archive, gates)
    archive.root.rename(root)
    jsonfile.sync_folder(into)
    return root


def _of_the_source(refusal: str, aside: Path, origins: Mapping[str, Path]) -> str:
    """A refusal that names published files for those made from them, which are gone when it is read."""
    made = re.compile(re.escape(f"{aside}/") + r"(?:[^\s:]*/)?([^\s:/]+)")
    return made.sub(lambda found: str(origins.get(found[1], found[1])), refusal)


def commit_step(
    archive: Archive, step: Step, number: int, folder: Path, gates: Gates, *, limits: Sequence[str]
) -> list[Judgement]:
    """Judge what was written of a step, as it reads back, and commit it. Returns the judgements."""
    protocol = archive.protocol
    records = list(records_of(archive, step, folder, gates, recorded_digest=protocol.digest))
    require_agreement(folder, records[0])
    judgements = [judge(record, lambda entry: gates.of(entry, where=protocol.id)) for record in records]
    decision = audit(protocol, {**archive.judgements(), step: judgements})
    write_receipt(
        protocol, step, number, folder, records[0], judgements, decision, origin="imported", limits=list(limits)
    )
    archive.commit(step, number, folder)
    return judgements
