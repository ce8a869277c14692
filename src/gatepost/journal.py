"""An archive's history: numbered, write-once events, each chained to the one before by digest."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gatepost import jsonfile, schema
from gatepost.errors import IntegrityError
from gatepost.verdict import JSON

Clock = Callable[[], datetime]

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def utc_now() -> datetime:
    """The clock of live runs; tests pass their own."""
    return datetime.now(UTC)


def time_of(at: datetime) -> str:
    """A time as records have it."""
    return at.astimezone(UTC).strftime(TIME_FORMAT)


@dataclass(frozen=True)
class Event:
    """One thing that happened. ``step`` and ``attempt`` are ``None`` for what concerns the whole protocol."""

    sequence: int
    at: str
    event: str
    step: str | None
    attempt: int | None
    detail: str

    @property
    def path(self) -> str:
        """Where it is stored, relative to the archive."""
        return f"log/{self.sequence:04}.json"

    @property
    def attempt_folder(self) -> str | None:
        """Where the attempt that it is about keeps its files until it finishes, relative to the archive."""
        return None if self.attempt is None else f"attempts/{self.attempt:04}-{self.step}"

    @property
    def approval_path(self) -> str | None:
        """Where the envelope of an approval is stored, relative to the archive."""
        return f"approvals/{self.sequence:04}-{self.step}.json" if self.event == "approved" else None

    def __str__(self) -> str:
        attempt = "" if self.attempt is None else f" (attempt {self.attempt})"
        return f"{self.at}  {self.event:<9} {self.step or ''}{attempt} {self.detail}".rstrip()


class Journal:
    """The events of one protocol, in ``log/0001.json`` and so on."""

    def __init__(self, folder: Path, protocol: str) -> None:
        self.folder, self.protocol = folder, protocol

    def read(self) -> list[Event]:
        """All events, the chain verified. Raises ``IntegrityError`` for a gap or a broken link."""
        events, previous = [], None
        names = [path.name for path in jsonfile.entries(self.folder) if not path.name.startswith(".")]
        for number, name in enumerate(names, start=1):
            path = self.folder / name
            if name != f"{number:04}.json":
                raise IntegrityError(f"{path}: expected {number:04}.json; the history has a gap or a stranger in it")
            document, digest = jsonfile.read_frozen(path)
            schema.validate(document, kind="event", source=str(path))
            for field, expected in (("sequence", number), ("previous", previous), ("protocol", self.protocol)):
                if document[field] != expected:
                    raise IntegrityError(f"{path}: field {field} is {document[field]!r}, expected {expected!r}")
            previous = digest
            events.append(Event(**{key: document[key] for key in Event.__dataclass_fields__}))
        return events

    def append(
        self, event: str, *, at: datetime, step: str | None = None, attempt: int | None = None, detail: str = ""
    ) -> Event:
        """Write the next event."""
        events = self.read()
        number = len(events) + 1
        previous = jsonfile.digest(jsonfile.read_bytes(self.folder / f"{number - 1:04}.json")) if events else None
        fields: dict[str, JSON] = {
            "sequence": number,
            "at": time_of(at),
            "event": event,
            "step": step,
            "attempt": attempt,
            "detail": detail,
        }
        document = {"schema": "gatepost/event/1", "protocol": self.protocol, "previous": previous, **fields}
        jsonfile.write_canonical(self.folder / f"{number:04}.json", document)
        return Event(**fields)
