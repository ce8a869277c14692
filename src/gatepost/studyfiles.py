"""Find a study's task domain: the one file of a study that is code.

A domain is a module with the names below. It is looked up by the study's folder name, in the project's own
``studies/`` first and in the shipped ones after, and never in an archive: replaying somebody else's archive does
not run somebody else's code.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from gatepost import bundled
from gatepost.errors import RegistrationError, UserCodeError
from gatepost.gatefiles import load_module, read_code
from gatepost.scoring import Scorer
from gatepost.usercode import blamed
from gatepost.verdict import JSON

TaskDocument = Mapping[str, JSON]


MORE_FOLDERS = "--studies DIR searches another folder, under pytest --gatepost-studies=DIR"


class Domain(Protocol):
    """What a study says of its tasks. All functions are pure."""

    NAME: str
    VERSION: int
    ANSWER_TEXTS: tuple[str, ...]
    """Texts of the possible answers as they are sampled, leading space and all; each should be one token id."""

    def answers(self, task: TaskDocument) -> tuple[str, ...]:
        """Every answer consistent with the task's visible examples, by exhaustive enumeration."""
        ...

    def family(self, task: TaskDocument) -> str:
        """The class over which a split is balanced."""
        ...

    def record_fingerprint(self, task: TaskDocument) -> str:
        """Digest of the record as published."""
        ...

    def content_fingerprint(self, task: TaskDocument) -> str:
        """Digest of the content after normalisation: order, spelling of numbers, white space, ids."""
        ...

    def program_fingerprint(self, task: TaskDocument) -> str:
        """Digest of the program behind the examples."""
        ...

    def messages(self, task: TaskDocument, arm: str | None) -> Sequence[Mapping[str, str]]:
        """The chat messages that pose the task in one arm of the study (``None`` in a study without arms)."""
        ...

    def parse(self, text: str) -> str | None:
        """The answer in a text, or ``None``."""
        ...

    def grade(self, task: TaskDocument, parsed: str | None) -> bool:
        """Whether a parsed answer is right."""
        ...


class ScoringDomain(Domain, Scorer, Protocol):
    """What a study also says of its tasks if one of its stages scores others; see ``gatepost.scoring``."""


def load_domain(study: str, version: int, folders: Iterable[Path], *, where: str) -> Domain:
    """The task domain of a study, each of its functions held to what it promises.

    Raises ``RegistrationError`` if it is missing, incomplete or another version, and if a later folder has another
    domain of that study and version: what is on record could then have been derived by either.
    """
    searched = [*folders, bundled.folder("studies")]
    found = [path for root in searched if (path := root / study / "domain.py").is_file()]
    if not found:
        places = ", ".join(str(root) for root in searched)
        raise RegistrationError(f"{where}: study {study!r} has no domain.py; searched {places}; {MORE_FOLDERS}")
    path, *others = found
    domain = _load_checked(path)
    if version != domain.VERSION:
        raise RegistrationError(f"{path}: VERSION is {domain.VERSION}, {where} registered {version}")
    for other in others:
        if read_code(other) != read_code(path) and domain.VERSION == _load_checked(other).VERSION:
            raise RegistrationError(
                f"{path}: VERSION {version} of study {study} is defined in {other} too, and the files differ; "
                f"change {path}: another domain takes another VERSION, a copy is the same in every byte"
            )
    return domain


def _load_checked(path: Path) -> Domain:
    module = load_module(path, prefix="gatepost_domain")
    _require_names(module, Domain, str(path))
    return cast(Domain, _CheckedDomain(module, path))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple | list | set | frozenset) and all(map(_is_text, value))


def _are_messages(value: object) -> bool:
    return isinstance(value, tuple | list) and all(
        isinstance(message, Mapping) and all(map(_is_text, (*message, *message.values()))) for message in value
    )


_PROMISED: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "answers": (_are_texts, "texts"),
    "family": (_is_text, "a text"),
    "record_fingerprint": (_is_text, "a text"),
    "content_fingerprint": (_is_text, "a text"),
    "program_fingerprint": (_is_text, "a text"),
    "messages": (_are_messages, "a list of messages, each from texts to texts"),
    "parse": (lambda value: value is None or _is_text(value), "a text or None"),
    "grade": (lambda value: type(value) is bool, "True or False"),
    "visible_score": (lambda value: type(value) is int, "an integer"),
    "is_valid": (lambda value: type(value) is bool, "True or False"),
    "traits": (_are_texts, "texts"),
}
"""What each function of a domain has to give, as a test and in words."""


class _CheckedDomain:
    """A domain whose functions give what they promise, or raise ``UserCodeError`` naming function, file and task."""

    def __init__(self, module: ModuleType, path: Path) -> None:
        self._module, self._path = module, path

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        return self._checked(name, value) if name in _PROMISED else value

    def _checked(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        keeps, expected = _PROMISED[name]

        @wraps(function)
        def checked(subject: TaskDocument | str, *others: object) -> object:
            blame = f"task domain {self._path}: {name}"
            doing = f"for {subject['task_id']!r}" if isinstance(subject, Mapping) and "task_id" in subject else ""
            with blamed(blame, doing):
                value = function(subject, *others)
            if not keeps(value):
                raise UserCodeError(f"{blame} gave {value!r} {doing}, expected {expected}".replace(" ,", ","))
            return value

        return checked


def scoring_domain(domain: Domain, *, where: str) -> ScoringDomain:
    """The same domain, as one that can score. Raises ``RegistrationError`` naming what it lacks for that."""
    _require_names(domain, Scorer, where)
    return cast(ScoringDomain, domain)


def _require_names(domain: object, kind: type, where: str) -> None:
    wanted = [name for name in (*kind.__annotations__, *vars(kind)) if not name.startswith("_")]
    if missing := [name for name in wanted if not hasattr(domain, name)]:
        raise RegistrationError(f"{where}: task domain lacks {', '.join(missing)}")
