"""From a draft that people write (TOML) to a frozen protocol (RFC 8785 bytes) in a new archive."""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.utils import canonicalize_name

from gatepost import jsonfile, registration, schema
from gatepost.drafts import expect, read_draft, tables
from gatepost.engines.adapter import digests
from gatepost.engines.model_folder import Source
from gatepost.engines.options import refuse_impossible
from gatepost.errors import DataError, EngineError, RegistrationError
from gatepost.fingerprint import tree_root
from gatepost.gatefiles import Gates
from gatepost.lockfile import read_pins
from gatepost.promptfile import read_manifest, record_digests
from gatepost.prompts import PromptIdentity, check_manifest
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


def plan(draft: Path, *, gates: Gates, studies: Iterable[Path], starts_engine: bool = True) -> FrozenPlan:
    """Read a draft, resolve what it refers to, and check it as a whole.

    Args:
        studies: folders in which the task domain is looked up before the shipped ones.
        starts_engine: whether an engine has to take the registered options; not so for a run that others made.

    Raises ``RegistrationError`` or ``DataError`` naming the draft, the field, what was found and what was expected.
    """
    source = str(draft)
    bound = _Bound(draft.parent)
    data = jsonfile.canonical(_resolved(read_draft(draft), draft, bound), source=source)
    document = jsonfile.loads(data, source=source)
    schema.validate(document, kind="protocol", source=source)
    protocol = Protocol.from_json(document, digest=jsonfile.digest(data))
    tasks = {name: bound.tasks[path] for name, path in protocol.splits.items()}
    ids = {name: [task["task_id"] for task in split] for name, split in tasks.items()}
    try:
        registration.check(protocol, lambda entry: gates.of(entry, where=f"gate {entry.name}"), ids)
        registration.check_tasks(protocol, {name: _contents(split) for name, split in tasks.items()})
        if starts_engine:
            _check_engine(protocol)
        registration.check_locks(protocol, bound.locks)
        check_manifest(protocol, bound.prompts, lambda split: record_digests(tasks[split]))
        folders = [*studies, draft.resolve().parent.parent]
        domain = load_domain(protocol.study, protocol.domain_version, folders, where="draft")
        _refuse_idle_domain(draft, protocol)
        if any(stage.scores for stage in protocol.stages):
            scoring_domain(domain, where=f"study {protocol.study} scores")
        paths = {"model.path": protocol.model.path, "adapter.path": protocol.adapter and protocol.adapter.path}
        loaded = [find_folder(path, starts_near(draft), field=name) for name, path in paths.items() if path]
        refuse_forbidden(protocol, [*bound.sources, *loaded], near=draft)
    except RegistrationError as error:
        raise RegistrationError(f"{source}: {error}") from None
    return FrozenPlan(protocol, data, bound.files)


def _refuse_idle_domain(draft: Path, protocol: Protocol) -> None:
    """A copied study that still has the name of the first one would be run with the first one's task domain."""
    folder = draft.resolve().parent
    if folder.name != protocol.study and (folder / "domain.py").is_file():
        raise RegistrationError(
            f"study.name is {protocol.study!r}, so {folder / 'domain.py'} would not be used; a study is called as its "
            f"folder is, expected {folder.name!r}"
        )


def _check_engine(protocol: Protocol) -> None:
    engine = protocol.engine
    for rung in protocol.rungs:
        try:
            options = {**engine["options"], **rung.engine}
            refuse_impossible(engine["kind"], options, adapter=protocol.adapter is not None)
        except EngineError as error:
            raise RegistrationError(f"engine, at rung {rung.name}: {error}") from None


def _contents(tasks: Iterable[TaskDocument]) -> dict[str, bytes]:
    """Task id -> the canonical bytes of all else in the task."""
    rest = {task["task_id"]: {name: value for name, value in task.items() if name != "task_id"} for task in tasks}
    return {task_id: jsonfile.canonical(document, source=f"task {task_id}") for task_id, document in rest.items()}


def _resolved(written: Mapping[str, Any], draft: Path, bound: "_Bound") -> dict[str, JSON]:
    """The protocol document that a draft means, the files that it names bound. Its schema is checked after."""
    where = str(draft)
    document = {"schema": "gatepost/protocol/1", **written}
    document["model"] = _model(expect(written.get("model"), dict, f"{where}: model"), draft)
    if "adapter" in written:
        document["adapter"] = _adapter(expect(written["adapter"], dict, f"{where}: adapter"), draft)
    document["stages"] = [_stage(stage, name) for name, stage in tables(written.get("stages"), f"{where}: stages")]
    document["rungs"] = [{"engine": {}, **rung} for _, rung in tables(written.get("rungs"), f"{where}: rungs")]
    document["splits"] = bound.add_all(written.get("splits"), role="split", where=f"{where}: splits")
    document["parents"] = bound.add_all(written.get("parents", {}), role="parent", where=f"{where}: parents")
    engine = written.get("engine")
    if isinstance(engine, dict) and "lock" in engine:
        document["engine"] = _locked(engine, bound, where=f"{where}: engine")
    if "prompts" in written:
        prompts = expect(written["prompts"], dict, f"{where}: prompts")
        path = expect(prompts.get("manifest"), str, f"{where}: prompts.manifest")
        document["prompts"] = {**prompts, "manifest": bound.add(path, role="prompts")}
        bound.prompts = read_manifest(bound.folder / path)
    for name, extra in tables(written.get("bound", []), f"{where}: bound"):
        path, role = (expect(extra.get(field), str, f"{name}.{field}") for field in ("path", "role"))
        bound.add(path, role=role)
    document["bound"] = bound.entries
    return document


def _locked(engine: Mapping[str, Any], bound: "_Bound", *, where: str) -> dict[str, JSON]:
    """The engine with the pins of its lock beside the packages that the draft registers itself."""
    unlocked = {name: value for name, value in engine.items() if name != "lock"}
    own = expect(engine.get("packages", {}), dict, f"{where}.packages")
    name = bound.add(expect(engine["lock"], str, f"{where}.lock"), role="lock")
    pins = bound.locks[name]
    if twice := sorted(package for package in own if canonicalize_name(package) in pins):
        raise RegistrationError(
            f"{where}.packages: {twice[0]} is in the lock {name} too, as {pins[canonicalize_name(twice[0])]}; "
            "expected it in one of them"
        )
    return {**unlocked, "packages": {**own, **pins}}


class _Bound:
    """Files named by a draft, read once and bound by digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[dict[str, JSON]] = []
        self.files: dict[str, bytes] = {}
        self.tasks: dict[str, Sequence[TaskDocument]] = {}
        self.locks: dict[str, Mapping[str, str]] = {}
        self.prompts: tuple[PromptIdentity, ...] | None = None
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
        if role == "lock" and name not in self.locks:
            self.locks[name] = read_pins(source)
        if name not in self.files:
            self.files[name] = data
            sha256 = hashlib.sha256(data).hexdigest()
            self.entries.append({"path": name, "role": role, "sha256": sha256, "size_bytes": len(data)})
        return name

    def add_all(self, table: object, *, role: str, where: str) -> dict[str, JSON]:
        """Bind a table of name -> path."""
        paths = expect(table, dict, where)
        return {name: self.add(expect(path, str, f"{where}.{name}"), role=role) for name, path in paths.items()}


def _stage(stage: Mapping[str, Any], where: str) -> dict[str, JSON]:
    """TOML has no null: an optional field that is absent means none. Thresholds stand beside the version."""
    gates = {}
    for name, value in expect(stage.get("gates"), dict, f"{where}.gates").items():
        thresholds = dict(expect(value, dict, f"{where}.gates.{name}"))
        version = expect(thresholds.pop("version", None), int, f"{where}.gates.{name}.version")
        gates[name] = {"version": version, "thresholds": thresholds}
    absent = dict.fromkeys(("arm", "max_tasks", "max_think_tokens", "base_seed", "scores"))
    return {**absent, **stage, "gates": gates}


def _model(model: Mapping[str, Any], draft: Path) -> dict[str, JSON]:
    """A repository is pinned by commits; a local folder by the digest of the files that loading reads."""
    pinned = {"path": None, **model, "files": {}}
    if pinned["path"] is None:
        for field in ("revision", "tokenizer_revision"):
            if isinstance(found := pinned.get(field), str) and not re.fullmatch("[0-9a-f]{40}", found):
                expected = "a commit, 40 hex digits in lower case: a branch or a tag can move"
                raise RegistrationError(f"{draft}: model.{field} is {found!r:.80}, expected {expected}")
        return pinned
    folder = find_folder(expect(pinned["path"], str, f"{draft}: model.path"), starts_near(draft), field="model.path")
    pinned["files"] = Source(folder, folder, None, None).digests()
    for field in ("revision", "tokenizer_revision"):
        _require_clean(pinned.get(field), pinned["files"], folder, where=f"{draft}: model.{field}")
    return pinned


def _adapter(adapter: Mapping[str, Any], draft: Path) -> dict[str, JSON]:
    """An adapter is a local folder, pinned as a local model is."""
    where = f"{draft}: adapter"
    folder = find_folder(expect(adapter.get("path"), str, f"{where}.path"), starts_near(draft), field="adapter.path")
    try:
        files = digests(folder)
    except EngineError as error:
        raise RegistrationError(f"{where}.path: {error}") from None
    _require_clean(adapter.get("revision"), files, folder, where=f"{where}.revision")
    return {**adapter, "files": files}


def _require_clean(revision: object, files: Mapping[str, str], folder: Path, *, where: str) -> None:
    if revision != (found := tree_root(files)):
        raise RegistrationError(
            f"{where} is {revision!r}, but the files in {folder} have the digest {found}: the pin is dirty"
        )


def find_folder(path: str, starts: Iterable[Path], *, field: str) -> Path:
    """Look a registered folder up from several places; the digests of its files, not its place, say which it is."""
    tried = []
    for start in starts:
        folder = start / path
        with contextlib.suppress(OSError):  # such as a name that is too long to be one
            if folder.is_dir():
                return folder
        tried.append(f"{start}/{path[:80]}")
    raise DataError(f"{field} {path!r:.80}: no such folder; tried {', '.join(tried[:4])}")
