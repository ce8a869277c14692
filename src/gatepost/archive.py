"""One protocol's archive: a self-contained directory that only grows.

    protocol.json              the frozen plan
    bound/                     the files that it binds
    log/0001.json …            what happened, chained
    approvals/0002-design.json a reviewer's signed GO for a step
    attempts/0002-selection/   an attempt that did not finish, with every id that was sampled
    steps/selection/           an attempt that did: evidence, rows.json (its manifest), receipt.json
    selection.json             which rung was selected, once that is decided
    catalog.json               the digest of all of the above, the one file that is replaced
    elsewhere.json             which large files need not be here, once some were moved out (``gatepost.elsewhere``)
    .lock                      while a run is at work; no part of the record

A step is committed by one rename of its attempt's folder, so that half of one can never be taken for whole.
"""

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from gatepost import jsonfile, runlock, schema, tree
from gatepost.errors import DataError, IntegrityError, OrderError
from gatepost.fingerprint import tree_root
from gatepost.folders import is_archive
from gatepost.freeze import FrozenPlan
from gatepost.journal import Clock, Event, Journal, utc_now
from gatepost.ladder import Judgement, Step, steps_of
from gatepost.lockfile import read_pins
from gatepost.protocol import Protocol
from gatepost.roots import refuse_forbidden
from gatepost.selection import selection_of
from gatepost.studyfiles import TaskDocument
from gatepost.taskfile import read_tasks
from gatepost.verdict import JSON

FOLDERS = ("attempts", "bound", "log", "steps")
CLOSING_EVENTS = ("preflight", "refused", "failed", "finished")


class Archive:
    """The archive in one directory. Opening it reads the protocol; ``integrity.verify`` looks at everything."""

    def __init__(self, root: Path, *, clock: Clock = utc_now, evidence: Path | None = None) -> None:
        """Args: evidence: folder in which large files are looked for that lie elsewhere, see ``gatepost.elsewhere``."""
        self.root, self.clock, self.evidence = root, clock, evidence
        path = root / "protocol.json"
        document, digest = jsonfile.read_frozen(path)
        schema.validate(document, kind="protocol", source=str(path))
        self.protocol = Protocol.from_json(document, digest=digest)
        self.journal = Journal(root / "log", self.protocol.digest)

    @classmethod
    def create(cls, parent: Path, plan: FrozenPlan, *, clock: Clock = utc_now, event: str = "frozen") -> Self:
        """Write a frozen plan as a new archive under ``parent``. Refuses if its name is taken."""
        root = parent / plan.protocol.id
        refuse_forbidden(plan.protocol, [root], near=root)
        if root.exists():
            raise IntegrityError(f"{root}: exists already; a frozen protocol is never overwritten, choose another id")
        building = parent / f"{jsonfile.TEMPORARY_PREFIX}{plan.protocol.id}"
        try:
            building.mkdir()
        except FileExistsError:
            raise IntegrityError(f"{building}: left by an interrupted freeze; remove it and freeze again") from None
        try:
            for folder in FOLDERS:
                (building / folder).mkdir()
            for name, data in plan.bound.items():
                jsonfile.write_new(building / "bound" / name, data)
            jsonfile.write_new(building / "protocol.json", plan.data)
            archive = cls(building, clock=clock)
            archive.journal.append(event, at=clock(), detail=plan.protocol.digest)
            archive.write_catalog()
            building.rename(root)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        jsonfile.sync_folder(parent)
        return cls(root, clock=clock)

    def tasks(self, split: str) -> list[TaskDocument]:
        """The tasks of a split, from the bound file, its digest verified."""
        return self._bound_tasks(self.protocol.splits, split)

    def parent_tasks(self, name: str) -> list[TaskDocument]:
        """The tasks of a registered parent corpus."""
        return self._bound_tasks(self.protocol.parents, name)

    def locked_packages(self) -> dict[str, dict[str, str]]:
        """Package -> version, for each bound lock of the environment by its path."""
        for path in self.protocol.locks:
            self.verify_bound(path)
        return {path: read_pins(self.root / "bound" / path) for path in self.protocol.locks}

    def _bound_tasks(self, files: Mapping[str, str], name: str) -> list[TaskDocument]:
        if name not in files:
            raise IntegrityError(f"{self.root / 'protocol.json'}: {name!r} is not one of {', '.join(sorted(files))}")
        self.verify_bound(files[name])
        return read_tasks(self.root / "bound" / files[name])

    def verify_bound(self, name: str) -> None:
        """Raise ``IntegrityError`` unless a bound file is the one that was frozen."""
        entry = next((entry for entry in self.protocol.bound if entry.path == name), None)
        if entry is None:
            bound = ", ".join(entry.path for entry in self.protocol.bound)
            raise IntegrityError(f"{self.root / 'protocol.json'}: file {name!r} is not bound; bound are {bound}")
        path = self.root / "bound" / name
        data = jsonfile.read_bytes(path)
        found = hashlib.sha256(data).hexdigest()
        if found != entry.sha256:
            cause = of_line_endings(data, entry.sha256)
            raise IntegrityError(f"{path}: SHA-256 is {found}, the protocol bound {entry.sha256}{cause}")

    def step_folder(self, step: Step) -> Path:
        """Where a finished step lies."""
        return self.root / "steps" / str(step)

    def finished_steps(self) -> list[Step]:
        """Steps with a folder, in ladder order. A folder that names no possible step is refused."""
        possible = {str(step): step for step in steps_of(self.protocol)}
        names = {path.name for path in jsonfile.entries(self.root / "steps")}
        if strangers := sorted(names - set(possible)):
            raise IntegrityError(f"{self.root / 'steps' / strangers[0]}: is not a step of protocol {self.protocol.id}")
        return [step for name, step in possible.items() if name in names]

    def receipt(self, step: Step) -> dict[str, JSON]:
        """A step's receipt: canonical, schema valid, and for this protocol and step."""
        path = self.step_folder(step) / "receipt.json"
        receipt = jsonfile.read_canonical(path)
        schema.validate(receipt, kind="receipt", source=str(path))
        for field, expected in (("protocol", self.protocol.digest), ("step", step.to_json())):
            if receipt[field] != expected:
                raise IntegrityError(f"{path}: field {field} is {receipt[field]!r}, expected {expected!r}")
        return dict(receipt)

    def judgements(self) -> dict[Step, list[Judgement]]:
        """What the receipts on record say."""
        return {
            step: [Judgement.from_json(document) for document in self.receipt(step)["judgements"]]
            for step in self.finished_steps()
        }

    def attempt_folders(self) -> list[Path]:
        """Folders of attempts that did not finish."""
        return jsonfile.entries(self.root / "attempts")

    def open_attempts(self, events: Sequence[Event] | None = None) -> list[Event]:
        """Attempts that were started and never closed: running now, or interrupted without a word."""
        events = self.journal.read() if events is None else events
        closed = {event.attempt for event in events if event.event in CLOSING_EVENTS}
        return [event for event in events if event.event == "started" and event.attempt not in closed]

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the archive for one live invocation. Raises ``OrderError`` if another one holds it, or may do."""
        with runlock.hold(self.root, self.clock):
            yield

    def approve(self, step: Step, envelope: bytes, reviewer: str) -> None:
        """Record a signed GO: first the envelope, then the event that makes it count. The lock has to be held."""
        number = len(self.journal.read()) + 1
        jsonfile.make_folder(self.root / "approvals")
        jsonfile.write_new(self.root / "approvals" / f"{number:04}-{step}.json", envelope)
        detail = f"{reviewer} {jsonfile.digest(envelope)}"
        self.journal.append("approved", at=self.clock(), step=str(step), detail=detail)
        self.write_catalog()

    def begin(self, step: Step) -> tuple[int, Path]:
        """Open the next attempt at a step; returns its number and its folder."""
        number = 1 + sum(event.event == "started" for event in self.journal.read())
        event = self.journal.append("started", at=self.clock(), step=str(step), attempt=number)
        folder = self.root / str(event.attempt_folder)
        jsonfile.make_folder(folder)
        self.write_catalog()
        return number, folder

    def close(self, event: str, step: Step, number: int, detail: str) -> None:
        """Record that an attempt ended without a receipt. Its folder stays as it is."""
        self.journal.append(event, at=self.clock(), step=str(step), attempt=number, detail=detail)
        self.write_catalog()

    def commit(self, step: Step, number: int, folder: Path) -> None:
        """Turn a complete attempt, its receipt written, into the finished step."""
        jsonfile.make_folder(self.root / "steps")
        folder.rename(self.step_folder(step))
        for parent in ("attempts", "steps"):
            jsonfile.sync_folder(self.root / parent)
        self.settle(step, number)

    def settle(self, step: Step, number: int) -> None:
        """Record that a committed step is finished, and what follows from it."""
        detail = outcome_of(self.receipt(step))
        self.journal.append("finished", at=self.clock(), step=str(step), attempt=number, detail=detail)
        self.select()
        self.write_catalog()

    def select(self) -> None:
        """Record the selection that follows from the receipts, once there is one."""
        selection = self.expected_selection()
        if selection is None:
            return
        if not (self.root / "selection.json").exists():
            jsonfile.write_canonical(self.root / "selection.json", selection)
        if not any(event.event == "selected" for event in self.journal.read()):
            self.journal.append("selected", at=self.clock(), detail=selection_detail(selection))

    def expected_selection(self) -> dict[str, JSON] | None:
        """The selection that follows from the receipts on record, or ``None`` while the rungs are open.

        Raises ``OrderError`` for a receipt of a step that the ladder never asked for.
        """
        judgements = self.judgements()
        paths = {step: self.step_folder(step) / "receipt.json" for step in judgements}
        receipts = {step: jsonfile.digest(jsonfile.read_bytes(path)) for step, path in paths.items()}
        try:
            return selection_of(self.protocol, judgements, receipts)
        except OrderError as error:
            raise OrderError(f"{self.root}: {error}") from None

    def write_catalog(self) -> None:
        """Replace the catalog by one of the tree as it is, but for what an interrupted write left: that will go."""
        found = tree.read(self.root).files
        sizes = {path: size for path, size in found.items() if jsonfile.TEMPORARY_PREFIX not in path}
        if "elsewhere.json" in sizes:  # a new catalog could not list what is away
            raise IntegrityError(
                f"{self.root / 'elsewhere.json'}: its evidence lies elsewhere, so nothing can be added"
            )
        digests = {path: jsonfile.sha256_of(self.root / path) for path in sizes}
        document = {
            "schema": "gatepost/catalog/1",
            "protocol": self.protocol.digest,
            "root": tree_root(digests),
            "files": [
                {"path": path, "sha256": digests[path], "size_bytes": size} for path, size in sorted(sizes.items())
            ],
        }
        jsonfile.replace(self.root / "catalog.json", jsonfile.canonical(document))

    def catalog(self) -> dict[str, JSON]:
        """The catalog on record."""
        path = self.root / "catalog.json"
        document = jsonfile.read_canonical(path)
        schema.validate(document, kind="catalog", source=str(path))
        return dict(document)


def of_line_endings(data: bytes, sha256: str) -> str:
    """The end of a sentence about bytes that have another digest: what rewrote them, if it was version control."""
    if hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest() != sha256:
        return ""
    return "; only line endings differ: mark frozen files as -text in .gitattributes and check out again"


def outcome_of(receipt: Mapping[str, JSON]) -> str:
    """What the history says of a finished step: the label that ended the study, else where the ladder stands."""
    decision = receipt["decision"]
    return str(decision["label"] or decision["reason"])


def selection_detail(selection: Mapping[str, JSON]) -> str:
    """What the history says of a selection: its label, and the rung if one was selected."""
    return f"{selection['label']} {selection['selected']}"


def find_archives(path: Path) -> list[Path]:
    """Archives at or below a folder, one level deep. Raises ``DataError`` if there is none."""
    candidates = [path, *(child for child in jsonfile.entries(path) if not child.name.startswith("."))]
    found = [folder for folder in candidates if (folder / "protocol.json").is_file() or is_archive(folder)]
    if not found:
        raise DataError(f"{path}: holds no archive, expected a folder with protocol.json")
    return [path] if path in found else found
