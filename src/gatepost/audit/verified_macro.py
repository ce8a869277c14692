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
from gatepost.audit.foreign import Foreign
from gatepost.audit.imports import TRANSCRIBED, commit_step, import_into, published_bytes
from gatepost.audit.jsonl import read_rows
from gatepost.engine import EngineFacts
from gatepost.errors import DataError
from gatepost.evidence import Plan, Record, Row
from gatepost.gatefiles import Gates
from gatepost.journal import Clock, utc_now
from gatepost.ladder import Judgement, Step, audit
from gatepost.stages import GateEntry
from gatepost.stepfiles import write_session
from gatepost.verdict import JSON, Check, Verdict, share

EXPERIMENT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
AUDITS = ("49k", "61k")
LIBRARY = "designed_ceiling"
PROBE, TERMINATION = "probe", "termination"

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
COUNTS = (
    "samples",
    "forced_interventions",
    "reasoning_boundary_contacts",
    "periodic_loop_contacts",
    "unresolved_cap_contacts",
    "answer_limit_contacts",
    "answer_restarts_after_natural_close",
    "stage1_length_finishes",
)
_COUNTED = {
    "complete_rows": "samples",
    "unresolved_share": "unresolved_cap_contacts",
    "answer_limit_share": "answer_limit_contacts",
    "loop_share": "periodic_loop_contacts",
}
"""Check of the termination gate -> the authors' name for its count."""

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
    tasks: tuple[Mapping[str, JSON], ...]


def is_run(source: Path) -> bool:
    """Whether a folder holds this study in one of the two layouts."""
    return any((source / name).is_file() for name in (BOTH_AUDITS, PUBLIC["selection"]))


def read_run(source: Path) -> PublishedRun:
    """Read a published run in either layout. Raises ``DataError`` naming what is missing or does not fit."""
    compact = (source / BOTH_AUDITS).is_file()
    documents = {name: _read(source / path) for name, path in (COMPACT if compact else PUBLIC).items()}
    if compact:
        both = _read(source / BOTH_AUDITS)
        audits = {name: both.at(name) for name in AUDITS}
    else:
        audits = {name: _read(source / f"analysis/scientific_smoke_{name}_termination_audit.json") for name in AUDITS}
    for document in (*audits.values(), documents["catalog"]):
        document.expect("experiment_id", EXPERIMENT)
    return PublishedRun(
        audits=audits,
        catalog=documents["catalog"],
        selection=documents["selection"],
        probes=tuple(_probe(audits[name], documents["catalog"], documents["selection"]) for name in AUDITS),
        prompts=tuple(_prompts(documents["prompt_manifest"])),
        tasks=tuple(_tasks(documents["tasks"], documents["libraries"])),
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
        for probe in run.probes:
            if audit(archive.protocol, archive.judgements()).step == probe.step:
                _import_probe(archive, run, probe, gates, None if rows is None else rows / f"{probe.step}.jsonl")

    return import_into(into, draft, [("tasks_smoke.jsonl", lines.encode())], fill, clock=clock)


def record_of(plan: Plan, run: PublishedRun, probe: PublishedProbe) -> Record:
    """What there is to judge of a probe, whether or not the ladder opens it."""
    return Record(
        plan,
        engine=probe.facts,
        scheduler=probe.facts.scheduler,
        prompt_digests=run.prompts,
        absent_rows=probe.rows,
    )


def termination_entry(plan: Plan) -> GateEntry:
    """The registered termination gate."""
    return next(entry for entry in plan.stage.gates if entry.name == TERMINATION)


def termination_by_claims(plan: Plan, absent: AbsentRows) -> Verdict:
    """What the registered termination gate would say if the authors' counts were so. No evidence: a claim, judged.

    Every contact is a loop or unresolved, so that the unresolved are what is left of the contacts without the loops;
    a contact is a forced close or one at the boundary, whose union is known only where one of them is everything.
    """
    entry, claims, n = termination_entry(plan), absent.claims, len(plan.keys)
    loops, every = len(claims["period_tokens"]), claims["samples"] == n
    touched = max(claims["forced_interventions"], claims["reasoning_boundary_contacts"])
    unresolved = touched - loops if touched == n else None
    checks = (
        Check("complete_rows", claims["samples"] if every else None, "==", n, k=claims["samples"], n=n),
        share("unresolved_share", unresolved, n, "<", entry.thresholds["max_unresolved_share"]),
        share(
            "answer_limit_share", claims["answer_limit_contacts"], n, "<", entry.thresholds["max_answer_limit_share"]
        ),
        share("loop_share", loops, n, "<=", entry.thresholds["max_loop_share"]),
    )
    return Verdict(entry.name, entry.version, "adequacy", checks)


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
    tables.write_rows(folder / "rows.parquet", held)
    published = f"{absent.path}, {absent.size_bytes} bytes, SHA-256 {absent.sha256}"
    limits = [*LIMITS, f"rows were converted from {published}: those bytes were not read", f"claimed and met: {claims}"]
    (judgement,) = commit_step(archive, probe.step, number, folder, gates, limits=limits)
    _require_claims(judgement, held, absent, source=str(rows))


def _require_claims(judgement: Judgement, rows: Sequence[Row], absent: AbsentRows, *, source: str) -> None:
    """Raise ``DataError`` unless rows give the counts that were published of them: else they are other rows."""
    termination = next(verdict for verdict in judgement.verdicts if verdict.gate == TERMINATION)
    counts: dict[str, int | None] = {_COUNTED[check.name]: check.k for check in termination.checks}
    counts["sampled_tokens"] = sum(row.sampled_tokens for row in rows)
    for name, count in counts.items():
        if count != absent.claims[name]:
            raise DataError(f"{source}: {name}: these rows give {count}, published are {absent.claims[name]}")


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
    termination, generation = audit.at("termination"), audit.at("generation")
    claims = {
        **{name: termination.count(name) for name in COUNTS},
        "period_tokens": termination.counts("period_tokens"),
        "sampled_tokens": generation.count("sampled_tokens"),
        "generation_seconds": generation.number("generation_seconds"),
    }
    rows = AbsentRows(
        path=file.text("relative_path"),
        size_bytes=file.count("bytes"),
        sha256=file.text("sha256"),
        rows=audit.count("bundle.n_completions"),
        claims=claims,
    )
    return PublishedProbe(str(budget), _facts(audit), rows)


def _facts(audit: Foreign) -> EngineFacts:
    capacity, graphs = audit.at("capacity_fit"), audit.at("cudagraph_resolution")
    return EngineFacts(
        kind="vllm",
        versions={},
        kv_cache={
            "block_size": capacity.count("block_size_tokens"),
            "kv_cache_size_tokens": capacity.count("live_kv_cache_tokens"),
        },
        cuda_graphs={
            "requested_capture_sizes": graphs.counts("requested_capture_sizes"),
            "resolved_capture_sizes": graphs.counts("resolved_capture_sizes"),
            "decode_mode": graphs.text("decode_mode"),
            "has_full_cudagraphs": graphs.at("has_full_cudagraphs").value,
        },
        scheduler={"max_num_seqs": capacity.count("max_num_seqs")},
    )


def _prompts(manifest: Foreign) -> Iterator[PromptDigest]:
    """The base arm's prompts, under the ids of their tasks."""
    for entry in manifest.each("arms.base"):
        task_id = entry.text("id").removesuffix("::base")
        yield PromptDigest(task_id, entry.count("prompt_tokens"), entry.text("rendered_prompt_sha256"))


def _tasks(document: Foreign, libraries: Foreign) -> Iterator[Mapping[str, JSON]]:
    """The tasks of the smoke splits as the task domain reads them, each with the designed arm's library."""
    macros = libraries.at(f"libraries.{LIBRARY}").each("macros")
    library = {macro.text("token"): macro.at("expansion").value for macro in macros}
    for task in document.each("tasks"):
        if task.text("split").startswith("smoke"):
            kept = {name: task.at(name).value for name in ("min_depth", "program", "visible", "hidden", "probe")}
            yield {"task_id": task.text("id"), "library": library, "motifs": task.at("motif_names").value, **kept}


def _read(path: Path) -> Foreign:
    return Foreign(str(path), jsonfile.loads(published_bytes(path), source=str(path)))
