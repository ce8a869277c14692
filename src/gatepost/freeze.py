"""From a draft that people write (TOML) to a frozen protocol (RFC 8785 bytes) in a new archive."""

import hashlib
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gatepost import jsonfile, registration, schema
from gatepost.engines.model_folder import Source
from gatepost.errors import DataError, RegistrationError
from gatepost.fingerprint import tree_root
from gatepost.gatefiles import Gates
from gatepost.protocol import Protocol
from gatepost.roots import refuse_forbidden, starts_near
from gatepost.studyfiles import TaskDocument, load_domain, scoring_domain
from gatepost.taskfile import read_tasks
from gatepost.verdict import JSON


@dataclass(frozen=True)
class FrozenPlan:
    """A protocol that passed every check, and the files that it binds, not written yet."""

    protocol: Protocol
    data: bytes
    bound: Mapping[str, bytes]


def plan(draft: Path, *, gates: Gates, studies: Iterable[Path]) -> FrozenPlan:
    """Read a draft, resolve what it refers to, and check it as a whole.

    Args:
        studies: folders in which the task domain is looked up before the shipped ones.

    Raises ``RegistrationError`` or ``DataError`` naming the draft, the field, what was found and what was expected.
    """
    source = str(draft)
    document = _read_toml(draft)
    bound = _Bound(draft.parent)
    document = {"schema": "gatepost/protocol/1", **document}
    try:
        document["model"] = _model(document["model"], draft)
        document["stages"] = [_stage(stage) for stage in document["stages"]]
        document["rungs"] = [{"engine": {}, **rung} for rung in document["rungs"]]
        document["splits"] = bound.add_all(document["splits"], role="split")
        document["parents"] = bound.add_all(document.get("parents", {}), role="parent")
        for extra in document.pop("bound", []):
            bound.add(extra["path"], role=extra["role"])
        document["bound"] = bound.entries
    except (KeyError, TypeError, AttributeError) as error:
        raise RegistrationError(f"{source}: {_shape_problem(error)}") from None
    data = jsonfile.canonical(document, source=source)
    document = jsonfile.loads(data, source=source)
    schema.validate(document, kind="protocol", source=source)
    protocol = Protocol.from_json(document, digest=jsonfile.digest(data))
    tasks = {name: bound.tasks[path] for name, path in protocol.splits.items()}
    ids = {name: [task["task_id"] for task in split] for name, split in tasks.items()}
    try:
        registration.check(protocol, lambda entry: gates.of(entry, where=f"gate {entry.name}"), ids)
        folders = [*studies, draft.resolve().parent.parent]
        domain = load_domain(protocol.study, protocol.domain_version, folders, where="draft")
        if any(stage.scores for stage in protocol.stages):
            scoring_domain(domain, where=f"study {protocol.study} scores")
        model = protocol.model.path
        models = [] if model is None else [find_model(model, starts_near(draft))]
        refuse_forbidden(protocol, [*bound.sources, *models], near=draft)
    except RegistrationError as error:
        raise RegistrationError(f"{source}: {error}") from None
    return FrozenPlan(protocol, data, bound.files)


class _Bound:
    """Files named by a draft, read once and bound by digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[dict[str, JSON]] = []
        self.files: dict[str, bytes] = {}
        self.tasks: dict[str, Sequence[TaskDocument]] = {}
        self.sources: list[Path] = []

    def add(self, path: str, *, role: str) -> str:
        """Bind one file under its own name, which must be the only one."""
        name = PurePosixPath(path).name
        source = self.folder / path
        data = jsonfile.read_bytes(source)
        self.sources.append(source)
        if self.files.get(name, data) != data:
            raise RegistrationError(f"{source}: another bound file is called {name!r} too; rename one of them")
        if role in ("split", "parent") and name not in self.tasks:
            self.tasks[name] = read_tasks(source)
        if name not in self.files:
            self.files[name] = data
            sha256 = hashlib.sha256(data).hexdigest()
            self.entries.append({"path": name, "role": role, "sha256": sha256, "size_bytes": len(data)})
        return name

    def add_all(self, table: Mapping[str, str], *, role: str) -> dict[str, JSON]:
        """Bind a table of name -> path."""
        return {name: self.add(path, role=role) for name, path in table.items()}


def _read_toml(path: Path) -> dict[str, Any]:
    data = jsonfile.read_bytes(path)
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    _refuse_odd_values(document, str(path))
    return document


def _refuse_odd_values(value: object, where: str) -> None:
    """TOML has values that JSON has not: dates, nan and inf."""
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_odd_values(item, f"{where}: {key}" if ":" not in where else f"{where}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_odd_values(item, f"{where}[{index}]")
    elif not isinstance(value, (str, int, float, bool)) or (isinstance(value, float) and not math.isfinite(value)):
        raise RegistrationError(f"{where} is {value}, expected a string, a finite number, a boolean, a list or a table")


def _stage(stage: Mapping[str, Any]) -> dict[str, JSON]:
    """TOML has no null: an optional field that is absent means none. Thresholds stand beside the version."""
    gates = {
        name: {
            "version": entry["version"],
            "thresholds": {key: value for key, value in entry.items() if key != "version"},
        }
        for name, entry in stage["gates"].items()
    }
    absent = dict.fromkeys(("arm", "max_tasks", "max_think_tokens", "base_seed", "scores"))
    return {**absent, **stage, "gates": gates}


def _model(model: Mapping[str, Any], draft: Path) -> dict[str, JSON]:
    """A repository is pinned by commits; a local folder by the digest of the files that loading reads."""
    pinned = {"path": None, **model, "files": {}}
    if pinned["path"] is None:
        return pinned
    folder = find_model(pinned["path"], starts_near(draft))
    pinned["files"] = Source(folder, folder, None, None).digests()
    found = tree_root(pinned["files"])
    for field in ("revision", "tokenizer_revision"):
        if pinned[field] != found:
            raise RegistrationError(
                f"{draft}: model.{field} is {pinned[field]!r}, but the files in {folder} have the digest {found}: "
                "the pin is dirty"
            )
    return pinned


def find_model(path: str, starts: Iterable[Path]) -> Path:
    """Look a registered model folder up from several places; its digests, not its place, say that it is the one."""
    tried = []
    for start in starts:
        folder = start / path
        if folder.is_dir():
            return folder
        tried.append(str(folder))
    raise DataError(f"model.path {path!r}: no such folder; tried {', '.join(tried[:4])}")


def _shape_problem(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"field {error.args[0]!r} is missing"
    return f"a table or list has the wrong shape: {error}"
