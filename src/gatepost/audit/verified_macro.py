"""Import the published run of the verified-macro study: two termination probes, of which counts and facts are public.

Two layouts are read: the public repository's experiment folder (``analysis/``, ``data/``), and a compact one with the
same documents in one folder. What the engine resolved becomes engine facts, which the shipped gates judge. The raw rows
were not published: ``AbsentRows`` stands for them, the authors' counts are its *claims*, and what needs the rows is
inconclusive. Whoever holds the rows can give them, as JSON lines; then they are judged, and have to give the published
counts. The import follows the ladder, so that a step is imported only if those before it opened it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatepost import bundled, jsonfile
from gatepost.absence import AbsentRows, PromptDigest
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.audit.absent import write_absent_rows, write_prompt_digests
from gatepost.audit.claims import (
    COUNTS,
    SHOWN,
    adequate_by_counts,
    read_claims,
    require_consistent,
    require_met,
    require_same,
    require_verdict,
    shown,
)
from gatepost.audit.foreign import Foreign
from gatepost.audit.imports import TRANSCRIBED, commit_step, import_into, published_bytes
from gatepost.audit.jsonl import read_rows
from gatepost.engine import EngineFacts
from gatepost.errors import DataError
from gatepost.evidence import Plan, Record, Row
from gatepost.gatefiles import Gates
from gatepost.journal import Clock, utc_now
from gatepost.ladder import Step, audit
from gatepost.records import plan_of
from gatepost.stepfiles import write_session
from gatepost.verdict import JSON

EXPERIMENT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
AUDITS = ("49k", "61k")
LIBRARY = "designed_ceiling"
PROBE = "probe"

BOTH_AUDITS = "audits.json"
COMPACT = {name: f"{name}.json" for name in ("catalog", "selection", "prompt_manifest", "libraries")} | {
    "tasks": "tasks.json.gz"
}
PUBLIC = {
    "catalog": "analysis/scientific_smoke_artifact_catalog.json",
    "selection": "analysis/smoke_budget_selection.json",
    "prompt_manifest": "data/prompt_manifest.json",
    "libraries": "data/libraries.json",
    "tasks": "data/tasks.json",
}
LIMITS = [
    TRANSCRIBED,
    "of the CUDA graphs sizes and decode mode were published, mode and maximum were not; nor was the live context",
    "model pin, environment, sampling and counters of the running engine were not published: no gate here judges them",
    "a later probe that was published too is imported only if this record opens it",
]


@dataclass(frozen=True)
class PublishedProbe:
    """What was published of one probe.

    Attributes:
        rung: thinking budget, as the name of the rung.
        facts: what the engine resolved.
        rows: what stands for the raw rows; its claims are the authors' counts.
    """

    rung: str
    facts: EngineFacts
    rows: AbsentRows

    @property
    def step(self) -> Step:
        return Step(PROBE, self.rung)


@dataclass(frozen=True)
class PublishedRun:
    """What was published of the run: documents as they are, and what the import takes from them."""

    audits: Mapping[str, Foreign]
    catalog: Foreign
    selection: Foreign
    probes: tuple[PublishedProbe, ...]
    prompts: tuple[PromptDigest, ...]
    prompt_manifest: Path
    tasks: tuple[Mapping[str, JSON], ...]
    tasks_file: Path


def is_run(source: Path) -> bool:
    """Whether a folder holds this study in one of the two layouts."""
    return any((source / name).is_file() for name in (BOTH_AUDITS, PUBLIC["selection"]))


def read_run(source: Path) -> PublishedRun:
    """Read a published run in either layout. Raises ``DataError`` naming what is missing or does not fit."""
    compact = (source / BOTH_AUDITS).is_file()
    paths = {name: source / path for name, path in (COMPACT if compact else PUBLIC).items()}
    documents = {name: _read(path) for name, path in paths.items()}
    if compact:
        both = _read(source / BOTH_AUDITS)
        audits = {name: both.at(name) for name in AUDITS}
    else:
        audits = {name: _read(source / f"analysis/scientific_smoke_{name}_termination_audit.json") for name in AUDITS}
    for document in (*audits.values(), documents["catalog"]):
        document.expect("experiment_id", EXPERIMENT)
    tasks = tuple(_tasks(documents["tasks"], documents["libraries"]))
    return PublishedRun(
        audits=audits,
        catalog=documents["catalog"],
        selection=documents["selection"],
        probes=tuple(_probe(audits[name], documents["catalog"], documents["selection"]) for name in AUDITS),
        prompts=tuple(_prompts(documents["prompt_manifest"], [str(task["task_id"]) for task in tasks])),
        prompt_manifest=paths["prompt_manifest"],
        tasks=tasks,
        tasks_file=paths["tasks"],
    )


def import_run(source: Path, into: Path, *, rows: Path | None = None, clock: Clock = utc_now) -> Archive:
    """Freeze the transcribed plan with the published tasks, and judge what was published under it, as far as it opens.

    Args:
        rows: folder with the rows of each probe as ``probe@<rung>.jsonl``, see ``gatepost.audit.jsonl``.

    Raises ``DataError`` if what was published does not fit, or if the rows give other counts.
    """
    run = read_run(source)
    lines = "".join(json.dumps(task, sort_keys=True, separators=(",", ":")) + "\n" for task in run.tasks)
    draft = bundled.folder("studies") / "verified_macro" / "published.toml"

    def fill(archive: Archive, gates: Gates) -> None:
        _require_consistent(run, archive)
        for probe in run.probes:
            if audit(archive.protocol, archive.judgements()).step == probe.step:
                held = None if rows is None else rows / f"{probe.step}.jsonl"
                if held is not None:
                    origins["rows.parquet"] = held
                _import_probe(archive, run, probe, gates, held)

    origins = {"tasks_smoke.jsonl": run.tasks_file, "prompt_digests.json": run.prompt_manifest}
    return import_into(into, draft, {"tasks_smoke.jsonl": lines.encode()}, fill, origins=origins, clock=clock)


def record_of(plan: Plan, run: PublishedRun, probe: PublishedProbe) -> Record:
    """What there is to judge of a probe, whether or not the ladder opens it."""
    return Record(
        plan,
        engine=probe.facts,
        scheduler=probe.facts.scheduler,
        prompt_digests=run.prompts,
        absent_rows=probe.rows,
    )


def plan_at(archive: Archive, probe: PublishedProbe) -> Plan:
    """What was registered of a probe, whether or not the ladder opens it."""
    protocol = archive.protocol
    stage, rung = protocol.stage(PROBE), protocol.rung(probe.rung)
    return plan_of(archive, stage, rung, recorded_digest=protocol.digest)


def _require_consistent(run: PublishedRun, archive: Archive) -> None:
    adequate = False
    for document, rung, probe in zip(run.audits.values(), archive.protocol.rungs, run.probes, strict=True):
        document.expect("bundle.thinking_budget", rung.max_think_tokens)
        plan = plan_at(archive, probe)
        require_consistent(document, plan)
        tried = run.selection.one("tiers", "budget", rung.max_think_tokens).at("scientific_probe")
        if tried.has("termination"):
            require_same(document, tried.at("termination"))
        adequate = adequate or adequate_by_counts(document, plan)
    if not adequate:  # else a matrix followed, and decided
        require_verdict(run.selection, "pass", follows=False)


def _import_probe(archive: Archive, run: PublishedRun, probe: PublishedProbe, gates: Gates, rows: Path | None) -> None:
    number, folder = archive.begin(probe.step)
    absent = probe.rows
    write_prompt_digests(folder / "prompt_digests.json", run.prompts)
    write_session(folder, archive.protocol, probe.step, probe.facts, None)
    claims = ", ".join(f"{name} {absent.claims[name]}" for name in COUNTS)
    if rows is None:
        write_absent_rows(folder / "absent_rows.json", absent)
        limits = [*LIMITS, str(absent), f"claimed by the authors and not recomputed: {claims}"]
        commit_step(archive, probe.step, number, folder, gates, limits=limits)
        return
    held = tuple(read_rows(rows))
    _require_published_prompts(held, run.prompts, source=str(rows))
    tables.write_rows(folder / "rows.parquet", held)
    published = f"{absent.path}, {absent.size_bytes} bytes, SHA-256 {absent.sha256}"
    met = ", ".join(f"{name} {absent.claims[name]}" for name in SHOWN)
    limits = [
        *LIMITS,
        f"rows were converted from {published}: those bytes were not read",
        f"claimed and met: {met}",
        f"claimed, and shown by no row: generation_seconds {absent.claims['generation_seconds']}",
    ]
    (judgement,) = commit_step(archive, probe.step, number, folder, gates, limits=limits)
    require_met(dict(shown(judgement, plan_at(archive, probe), held)), absent.claims, source=str(rows))


def _require_published_prompts(rows: Sequence[Row], prompts: Sequence[PromptDigest], *, source: str) -> None:
    lengths = {prompt.task_id: prompt.prompt_tokens for prompt in prompts}
    for row in rows:
        if row.key.task_id not in lengths:
            raise DataError(f"{source}: {row.key}: task_id is that of no published prompt")
        if row.prompt_tokens != (published := lengths[row.key.task_id]):
            raise DataError(f"{source}: {row.key}: prompt_tokens is {row.prompt_tokens}, published are {published}")


def _probe(audit: Foreign, catalog: Foreign, selection: Foreign) -> PublishedProbe:
    budget, bundle = audit.count("bundle.thinking_budget"), audit.at("bundle.files.rows")
    entry = catalog.one("entries", "thinking_budget", budget)
    file = entry.at("files.rows")
    for field in ("bytes", "sha256"):
        bundle.expect(field, file.at(field).value)
    artifacts = selection.one("tiers", "budget", budget).at("scientific_probe.artifacts")
    artifacts.expect("rows", file.text("sha256"))
    audit.expect("bundle.n_records", entry.count("n_records"))
    audit.expect("bundle.n_completions", entry.count("n_records") * entry.count("k"))
    audit.expect("bundle.k", entry.count("k"))
    rows = AbsentRows(
        path=file.text("relative_path"),
        size_bytes=file.count("bytes"),
        sha256=file.text("sha256"),
        rows=audit.count("bundle.n_completions"),
        claims=read_claims(audit),
    )
    return PublishedProbe(str(budget), _facts(audit), rows)


def _facts(audit: Foreign) -> EngineFacts:
    capacity, graphs = audit.at("capacity_fit"), audit.at("cudagraph_resolution")
    return EngineFacts(
        kind="vllm",
        versions={},
        kv_cache={
            "block_size": capacity.count("block_size_tokens", at_least=1),
            "kv_cache_size_tokens": capacity.count("live_kv_cache_tokens", at_least=1),
        },
        cuda_graphs={
            "requested_capture_sizes": graphs.counts("requested_capture_sizes"),
            "resolved_capture_sizes": graphs.counts("resolved_capture_sizes"),
            "decode_mode": graphs.text("decode_mode"),
            "has_full_cudagraphs": graphs.truth("has_full_cudagraphs"),
        },
        scheduler={"max_num_seqs": capacity.count("max_num_seqs", at_least=1)},
    )


def _prompts(manifest: Foreign, task_ids: Sequence[str]) -> Iterator[PromptDigest]:
    """The base arm's prompts, under the ids of their tasks: one for each task."""
    entries = {entry.text("id").removesuffix("::base"): entry for entry in _by_id(manifest, "arms.base")}
    for task_id in task_ids:
        if task_id not in entries:
            raise DataError(f"{manifest.at('arms.base')}: holds no prompt of task {task_id!r}, expected one of each")
    for task_id, entry in entries.items():
        if task_id not in task_ids:
            entry.at("id").refuse("a prompt of a task of the smoke splits")
        yield PromptDigest(task_id, entry.count("prompt_tokens", at_least=1), entry.text("rendered_prompt_sha256"))


def _tasks(document: Foreign, libraries: Foreign) -> Iterator[Mapping[str, JSON]]:
    """The tasks of the smoke splits as the task domain reads them, each with the designed arm's library."""
    macros = libraries.at(f"libraries.{LIBRARY}").each("macros")
    library = {macro.text("token"): macro.at("expansion").value for macro in macros}
    for task in _by_id(document, "tasks"):
        if task.text("split").startswith("smoke"):
            kept = {name: task.at(name).value for name in ("min_depth", "program", "visible", "hidden", "probe")}
            yield {"task_id": task.text("id"), "library": library, "motifs": task.at("motif_names").value, **kept}


def _by_id(document: Foreign, pointer: str) -> Iterator[Foreign]:
    """The items of a list, each with an ``id`` of its own."""
    seen = set[str]()
    for item in document.each(pointer):
        if (name := item.text("id")) in seen:
            item.at("id").refuse("an id of its own")
        seen.add(name)
        yield item


def _read(path: Path) -> Foreign:
    return Foreign(str(path), jsonfile.loads(published_bytes(path), source=str(path)))
