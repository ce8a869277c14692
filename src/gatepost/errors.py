"""The errors a user can meet.

Every message names the file or object, the field, what was found and what was expected, so that it can be
printed without a traceback. Anything else that escapes is a bug in gatepost.
"""

MAX_SHOWN = 2_000
"""Longer lines of a message are shown by both their ends: what they quote may be as long as a file."""


class GatepostError(Exception):
    """Base of every error with a message meant for the user."""

    def __init__(self, message: str = "") -> None:
        super().__init__("\n".join(map(shortened, message.split("\n"))))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what was raised, whatever a subclass is made of: it comes back from another process as it is."""
        return _again, (type(self), self.args, self.__dict__)


class RegistrationError(GatepostError):
    """A draft cannot be frozen: the plan itself is incomplete, contradictory or cannot be failed."""


class DataError(GatepostError):
    """A file is malformed: not strict JSON, not schema valid, or not the shape that its format demands."""


class IntegrityError(DataError):
    """A file is well formed but is not the file that was bound: changed, added, missing or replaced by a link."""


class ElsewhereError(GatepostError):
    """Evidence that a question takes lies elsewhere and is not at hand: nothing contradicts the record, or bears it."""


class OrderError(GatepostError):
    """A step was asked for that the ladder does not authorise now."""


class ApprovalError(GatepostError):
    """A step waits for a reviewer's GO, or what was to be one is none."""


class EngineError(GatepostError):
    """The engine's process crashed, hung, ran out of memory or spoke garbage.

    Attributes:
        kind: one of ``crash``, ``timeout``, ``out_of_memory``, ``garbage``, ``refused``.
    """

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class UserCodeError(GatepostError):
    """A gate or a task domain raised, or gave something of another type than it promises; ``__cause__`` says more."""


class MissingExtraError(GatepostError):
    """An optional dependency is not installed; the message ends in the command that installs it."""

    def __init__(self, package: str, *, needed_for: str, extra: str) -> None:
        super().__init__(f"{needed_for} needs {package}, which is not installed: pip install 'gatepost[{extra}]'")


def shortened(text: str, at_most: int = MAX_SHOWN) -> str:
    """A text without the middle of it where it is longer than so many characters."""
    half = at_most // 2
    return text if len(text) <= at_most else f"{text[:half]} … {text[-half:]}"


def _again(kind: type[GatepostError], args: tuple[object, ...], attributes: dict[str, object]) -> GatepostError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error
