"""The border to code that projects write, gates and task domains: what goes wrong there is one error that names it."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TypeVar

from gatepost.errors import GatepostError, UserCodeError

T = TypeVar("T")


@contextlib.contextmanager
def blamed(name: str, doing: str) -> Iterator[None]:
    """Raise what comes out of a block as ``UserCodeError``: ``gate … raised ZeroDivisionError: … judging step …``."""
    try:
        yield
    except (GatepostError, KeyboardInterrupt):
        raise  # has its message already; is the user's
    except BaseException as error:  # SystemExit and the outcomes of pytest too: a gate must not skip a replay
        raise UserCodeError(f"{name} raised {type(error).__name__}: {error} {doing}".rstrip()) from error


def all_of(kind: type[T], values: object, *, name: str, doing: str) -> tuple[T, ...]:
    """Everything that user code yields; raises ``UserCodeError`` for what is not of that kind."""
    with blamed(name, doing):
        listed = tuple(values) if isinstance(values, Iterable) else None
    if listed is None:
        raise UserCodeError(f"{name} gave {values!r} {doing}, expected one {kind.__name__} after the other")
    for value in listed:
        if not isinstance(value, kind):
            raise UserCodeError(f"{name} gave {value!r} {doing}, expected a {kind.__name__}")
    return listed
