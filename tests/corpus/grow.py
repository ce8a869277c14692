"""Add what the corpus lacks: ``python -m tests.corpus.grow``, once a schema, a gate version or an evidence file is new.

It only adds. What is there is never written again: an archive that exists is left alone, and a digest on record that no
longer fits is an error, since whatever was released has to be read for ever. A new archive is a new entry in ``MADE``.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gatepost import jsonfile
from gatepost.__main__ import main
from gatepost.approve import approve
from gatepost.archive import Archive
from gatepost.detach import detach
from gatepost.engine import Chunk, Completion, Request
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import EngineError
from gatepost.preflight import PreflightRefusedError
from gatepost.probe import Probe
from gatepost.promptfile import manifest_line
from gatepost.rendered import rendered_prompts
from tests import published_macro
from tests.adapters import with_adapter, write_adapter
from tests.approvals import freeze, make_keys
from tests.archives import Project

CORPUS = Path(__file__).resolve().parent
ROOT = CORPUS.parents[1]
ARCHIVES, EVIDENCE, PROJECT, RELEASED = (CORPUS / name for name in ("archives", "evidence", "project", "released.json"))

ADOPTED = ("native-seam-replicated", "verified-macro-gpu")
"""Copied from ``receipts``: real engines, every stage of both studies."""


def gates(**listed: str) -> Callable[[str], str]:
    """An edit of the toy draft that lists more gates in the selection."""
    lines = "".join(f"gates.{name} = {{ version = 1{thresholds} }}\n" for name, thresholds in listed.items())
    return lambda draft: draft.replace("gates.toy_engine", f"{lines}gates.toy_engine")


def replicated(project: Project) -> Archive:
    """To the end, with a gate that no reference study lists."""
    archive = project.freeze("replicated", edit=gates(close_classification=", max_irregular_rows = 3"))
    project.run(archive)
    return archive


def exhausted(project: Project) -> Archive:
    archive = project.freeze("exhausted", think_tokens=(80, 90))
    project.run(archive)
    return archive


def second_version(project: Project) -> Archive:
    """A gate whose meaning changed: its second version, beside the first."""
    old, new = (f"toy_closes = {{ version = {version}" for version in (1, 2))
    archive = project.freeze("second-version", edit=lambda draft: draft.replace(old, new))
    project.run(archive)
    return archive


def approved(project: Project) -> Archive:
    """With signed GOs. The keys are not kept, and nothing needs them again."""
    keys = make_keys(project.root / "keys")
    archive = freeze(project, keys, "approved")
    project.step(archive)
    for name in ("alice", "bob"):
        approve(archive, "selection", keys[name], statement="GO")
    project.step(archive)
    approve(archive, "confirmation@32", keys["alice"], statement="GO")
    project.step(archive)
    return archive


def refused(project: Project) -> Archive:
    """A gate before generation did not pass."""
    archive = project.freeze("refused", engine_model_len=1)
    project.step(archive)
    try:
        project.step(archive)
    except PreflightRefusedError:
        return archive
    raise AssertionError("was to be refused")


class Lost(ScriptedEngine):
    """An engine that is lost on the way."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
        for count, event in enumerate(super().generate(requests)):
            if count == 9:
                raise EngineError("engine was lost", kind="crash")
            yield event


def failed(project: Project) -> Archive:
    """An engine was lost after so many answers, which are kept; the next try went to the end."""
    archive = project.freeze("failed-once")
    project.step(archive)
    try:
        project.step(archive, Lost)
    except EngineError:
        project.run(archive)
        return archive
    raise AssertionError("was to fail")


def prompts(project: Project) -> Archive:
    """Prompts by a manifest, after a preflight alone that told them."""
    archive = project.freeze("prompts-seen")
    project.step(archive)
    Probe(archive, project.gates, project.studies, ScriptedEngine, preflight_only=True).run()
    manifest = "".join(f"{manifest_line(line)}\n" for line in rendered_prompts([archive.root]))
    (project.root / "studies" / "toy" / "prompts.jsonl").write_text(manifest)
    listing = gates(prompt_identity="")
    bound = project.freeze(
        "prompts-registered",
        edit=lambda draft: listing(draft).replace("\n[study]", '\n[prompts]\nmanifest = "prompts.jsonl"\n\n[study]'),
    )
    project.run(bound)
    return bound


def adapter(project: Project) -> Archive:
    """With an adapter and its contrast."""
    folder = write_adapter(project.root / "adapters" / "tuned")
    archive = project.freeze("adapter", edit=with_adapter(folder))
    project.run(archive)
    return archive


def imported(project: Project) -> Archive:
    """A published run whose rows and prompts were not published."""
    source = published_macro.write(project.root / "published", published_macro.documents())
    assert main(["import", str(source), "--into", str(project.root / "receipts")]) == 0
    return Archive(project.root / "receipts" / "published-verified-macro-qwen35-4b")


def detached(project: Project) -> Archive:
    """Large evidence elsewhere: in ``evidence`` beside the archives."""
    archive = project.freeze("detached", edit=gates(cache_contract="", natural_close=", min_natural_close_rate = 0.5"))
    project.run(archive)
    EVIDENCE.mkdir(exist_ok=True)
    detach(archive, EVIDENCE, gates=project.gates, studies=project.studies, over_bytes=0)
    return archive


MADE: dict[str, Callable[[Project], Archive]] = {
    "replicated": replicated,
    "exhausted": exhausted,
    "second-version": second_version,
    "approved": approved,
    "refused": refused,
    "failed-once": failed,
    "prompts-registered": prompts,
    "adapter": adapter,
    "published-verified-macro-qwen35-4b": imported,
    "detached": detached,
}


def grow() -> list[str]:
    """Add what is missing. Returns what was added; raises ``SystemExit`` where something on record has changed."""
    added = []
    for name in ADOPTED:
        if not (ARCHIVES / name).exists():
            shutil.copytree(ROOT / "receipts" / name, ARCHIVES / name)
            added.append(name)
    for name, make in MADE.items():
        if not (ARCHIVES / name).exists():
            with tempfile.TemporaryDirectory() as folder:
                project = Project(Path(shutil.copytree(PROJECT, Path(folder) / "project")))
                (project.root / "receipts").mkdir()
                made = make(project)
                for root in sorted({made.root, *(project.root / "receipts").iterdir()}):
                    if not (ARCHIVES / root.name).exists():
                        shutil.copytree(root, ARCHIVES / root.name)
                        added.append(root.name)
    return [*added, *_record()]


def found() -> dict[str, dict[str, str]]:
    """What there is now: digests of schemas and of evidence that lies elsewhere, catalog roots of archives."""
    return {
        "schemas": {path.name: jsonfile.sha256_of(path) for path in sorted((ROOT / "schemas").glob("*.json"))},
        "archives": {path.name: Archive(path).catalog()["root"] for path in sorted(ARCHIVES.iterdir())},
        "evidence": {path.name: jsonfile.sha256_of(path) for path in sorted(EVIDENCE.iterdir())},
        "project": {
            path.relative_to(PROJECT).as_posix(): jsonfile.sha256_of(path)
            for path in sorted(PROJECT.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        },
    }


def _record() -> list[str]:
    known = jsonfile.read(RELEASED) if RELEASED.exists() else {}
    now, added = found(), []
    for kind, entries in now.items():
        on_record = known.setdefault(kind, {})
        for name, digest in entries.items():
            if name not in on_record:
                added.append(f"{kind}: {name}")
            if on_record.setdefault(name, digest) != digest:
                sys.exit(f"{kind} {name}: was released as {on_record[name]}, found {digest}: make a new one beside it")
    RELEASED.write_bytes(jsonfile.canonical(known))
    return added


if __name__ == "__main__":
    print("\n".join(grow()) or "nothing is missing")
