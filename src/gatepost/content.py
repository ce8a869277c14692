"""A content fingerprint for task domains: what a task says, whatever its id, order, wrapping or number spelling."""

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from gatepost import jsonfile
from gatepost.errors import RegistrationError
from gatepost.verdict import JSON

Task = Mapping[str, JSON]


def content_fingerprint(task: Task, *, text: Sequence[str], unordered: Sequence[str]) -> str:
    """SHA-256 over the named fields alone, normalised; every other field (an id, a seed) is ignored.

    Text is put into NFC and its white space collapsed. An unordered list becomes the sorted list of its items' RFC 8785
    strings, so that neither the order of items or keys nor the spelling of numbers (1, 1.0) counts. Renamed
    identifiers and reworded statements are not caught: exact after normalisation only.
    """
    content: dict[str, JSON] = {name: " ".join(unicodedata.normalize("NFC", task[name]).split()) for name in text}
    content |= {name: sorted(jsonfile.canonical(item).decode() for item in task[name]) for name in unordered}
    return hashlib.sha256(jsonfile.canonical(content)).hexdigest()


def require_catches_copies(fingerprint: Callable[[Task], str], task: Task, copies: Iterable[Task], new: Task) -> None:
    """The self-test of a freshness check: planted copies have to be caught, and a genuinely new task has to pass.

    Copies that differ only in a field that is ignored anyway cannot fail, so plant one for each kind of change: id,
    order, wrapping, number spelling. Raises ``RegistrationError`` naming the first that slips through.
    """
    planted = fingerprint(task)
    for number, copy in enumerate(copies, start=1):
        if str(copy) == str(task):  # as spelled: 1 and 1.0 are equal, and that is one thing to plant
            raise RegistrationError(
                f"content fingerprint: planted copy {number} is no changed copy but the task itself"
            )
        if fingerprint(copy) != planted:
            raise RegistrationError(f"content fingerprint: planted copy {number} passes for new: {copy}")
    if fingerprint(new) == planted:
        raise RegistrationError(f"content fingerprint: a new task passes for a copy: {new}")
