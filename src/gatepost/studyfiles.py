"""Find a study's task domain: the one file of a study that is code.

A domain is a module with the names below. It is looked up by the study's folder name, in the project's own
``studies/`` first and in the shipped ones after, and never in an archive: replaying somebody else's archive does
not run somebody else's code.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from gatepost import bundled
from gatepost.errors import RegistrationError
from gatepost.gatefiles import load_module
from gatepost.scoring import Scorer
from gatepost.verdict import JSON

TaskDocument = Mapping[str, JSON]


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
    """The task domain of a study. Raises ``RegistrationError`` if it is missing, incomplete or another version."""
    searched = [*folders, bundled.folder("studies")]
    path = next((found for root in searched if (found := root / study / "domain.py").is_file()), None)
    if path is None:
        places = ", ".join(str(root) for root in searched)
        raise RegistrationError(f"{where}: study {study!r} has no domain.py; searched {places}")
    module = load_module(path, prefix="gatepost_domain")
    _require_names(module, Domain, str(path))
    domain = cast(Domain, module)
    if version != domain.VERSION:
        raise RegistrationError(f"{path}: VERSION is {domain.VERSION}, {where} registered {version}")
    return domain


def scoring_domain(domain: Domain, *, where: str) -> ScoringDomain:
    """The same domain, as one that can score. Raises ``RegistrationError`` naming what it lacks for that."""
    _require_names(domain, Scorer, where)
    return cast(ScoringDomain, domain)


def _require_names(domain: object, kind: type, where: str) -> None:
    wanted = [name for name in (*kind.__annotations__, *vars(kind)) if not name.startswith("_")]
    if missing := [name for name in wanted if not hasattr(domain, name)]:
        raise RegistrationError(f"{where}: task domain lacks {', '.join(missing)}")
