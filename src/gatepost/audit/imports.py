"""What every import does: freeze a transcribed plan beside the published evidence, and judge the evidence under it."""

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from gatepost import jsonfile
from gatepost.agreement import require_agreement
from gatepost.archive import Archive
from gatepost.errors import DataError, IntegrityError
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
    """The bytes of a published file, unpacked where it is named ``.gz``. Raises ``DataError`` for one that is none."""
    data = jsonfile.read_bytes(path)
    if path.suffix != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable gzip file: {error}") from None


def import_into(into: Path, draft: Path, files: Iterable[tuple[str, bytes]], fill: Fill, *, clock: Clock) -> Archive:
    """Freeze a shipped draft with the published files that it binds, and fill the new archive with steps.

    The archive is built aside and renamed when it is whole. Raises ``IntegrityError`` if its name is taken.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{into}: cannot be the folder of archives: {error.strerror}") from None
    with tempfile.TemporaryDirectory(dir=into, prefix=jsonfile.TEMPORARY_PREFIX) as aside:
        building = Path(aside)
        for name, data in files:
            (building / name).write_bytes(data)
        shutil.copy(draft, building)
        gates = Gates()
        frozen = plan(building / draft.name, gates=gates, studies=[draft.parent.parent], starts_engine=False)
        root = into / frozen.protocol.id
        if root.exists():
            raise IntegrityError(f"{root}: exists already; an import never overwrites an archive")
        archive = Archive.create(building, frozen, clock=clock, event="imported")
        fill(archive, gates)
        archive.root.rename(root)
    return Archive(root, clock=clock)


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
