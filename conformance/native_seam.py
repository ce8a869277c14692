"""Recompute the published numbers of study B from its published rows, with gatepost's own gates.

Every function here derives; none of them knows a published value.
"""

import hashlib
import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.table import Fact, Recomputed
from gatepost.archive import Archive
from gatepost.audit.native_seam import PublishedRun, import_run, read_run
from gatepost.evidence import Sample
from gatepost.gate import SampleSize
from gatepost.gatefiles import Gates
from gatepost.periodicity import max_ngram_count, tail_period, unique_ratio
from gatepost.records import records_of
from gatepost.replay import Replay, replay
from gatepost.seeds import child_seed
from gatepost.stats import wilson_lower
from gatepost.studyfiles import load_domain

EXPERIMENT = "qwen35_4b_native_thought_seam_budget_ladder"
FOLDER = "native_thought_seam_budget_ladder"
TAIL, MAX_PERIOD = 256, 32


def recompute(source: Path, scratch: Path) -> Recomputed:
    """Import the published run, replay it, and derive what can be derived."""
    archive = import_run(source, scratch)
    replayed = replay(archive.root, gates=Gates(), studies=[])
    beside = list(_facts_beside(source, archive))
    derived = _derive(source, archive, replayed) | {name: recomputed for name, _, recomputed in beside}
    return Recomputed(replayed, derived, beside, list(_described(source)))


def _derive(source: Path, archive: Archive, replay: Replay) -> dict[str, Any]:
    """Name -> recomputed value, for everything that the rows, tasks and registered plan can tell."""
    run = read_run(source)
    gates = Gates()
    step = replay.steps[0]
    records = list(
        records_of(archive, step.step, archive.step_folder(step.step), gates, recorded_digest=archive.protocol.digest)
    )
    samples = records[0].samples or ()
    values: dict[str, Any] = dict(_run(run, samples, replay))
    for judgement in step.judgements:
        for name, value in _at_cap(records[0].plan.protocol, judgement, samples, records[0].grades or {}):
            values[f"cap{judgement.rung}.{name}"] = values[f"analysis.cap{judgement.rung}.{name}"] = value
    values |= dict(_diagnostics(samples))
    values |= dict(_reach(archive, gates))
    values |= dict(_freshness(source, archive, run))
    seeds = archive.protocol.stage("selection").base_seed or 0
    values["row_seeds_follow_declared_rule"] = sum(row.row.seed == child_seed(seeds, *row.row.key) for row in samples)
    return values


def _run(run: PublishedRun, samples: Sequence[Sample], replay: Replay) -> Iterator[tuple[str, Any]]:
    yield "rows_sha256", run.rows_sha256
    yield "source_rows_sha256", run.rows_sha256
    yield "decision", replay.decision.label
    yield "selected_cap", replay.decision.rung
    yield "traces", len(samples)
    yield "items", len({sample.row.key.task_id for sample in samples})
    yield "sampled_tokens", sum(len(sample.row.token_ids) for sample in samples)
    yield "forward_calls", sum(sample.row.claims["forward_calls"] for sample in samples)
    yield "cache_contract_pass_count", sum(sample.row.claims["cache_contract_pass"] for sample in samples)
    yield (
        "forward_calls_equal_token_count",
        sum(sample.row.claims["forward_calls"] == len(sample.row.token_ids) for sample in samples),
    )


def _at_cap(
    protocol: Any, judgement: Any, samples: Sequence[Sample], grades: Mapping[Any, Any]
) -> Iterator[tuple[str, Any]]:
    """The authors' stage summary at one cap. They print 0.0 for the share of an empty sample; gates do not."""
    cap, n = int(judgement.rung), len(samples)
    closed = [sample for sample in samples if sample.continuation.closed_at(cap)]
    parsed = [sample for sample in closed if grades[sample.row.key].parsed is not None]
    usable = [sample for sample in parsed if sample.continuation.thinking_tokens >= 16]
    right = [grades[sample.row.key].correct for sample in usable]
    by_task: dict[str, set[bool]] = {}
    for sample, correct in zip(usable, right, strict=True):
        by_task.setdefault(sample.row.key.task_id, set()).add(correct)
    yield "cap", cap
    yield "traces", n
    yield "natural_closes", len(closed)
    yield "natural_close_rate", len(closed) / n
    yield "natural_close_wilson_lower", wilson_lower(len(closed), n, 0.95)
    yield "cap_contacts", n - len(closed)
    yield "cap_contact_rate", (n - len(closed)) / n
    yield "max_close_step", max((sample.continuation.close_step for sample in closed), default=None)
    yield "parseable", len(parsed)
    yield "parse_rate_all", len(parsed) / n
    yield "conditional_parse_rate", len(parsed) / len(closed) if closed else 0.0
    yield "usable_traces", len(usable)
    yield "usable_successes", sum(right)
    yield "usable_success_rate", sum(right) / len(usable) if usable else 0.0
    yield "mixed_usable_tasks", sum(len(outcomes) == 2 for outcomes in by_task.values())
    yield "gate_pass", judgement.outcome == "pass"


def _diagnostics(samples: Sequence[Sample]) -> Iterator[tuple[str, Any]]:
    ids = [sample.row.token_ids for sample in samples]
    periods = [tail_period(row, tail=TAIL, max_period=MAX_PERIOD, min_match=1.0).period for row in ids]
    found = [period for period in periods if period is not None]
    yield "exact_periodic_256_token_tails", len(found)
    yield "tail_periods", sorted(found)
    closes = sum(sample.continuation.closed_once for sample in samples)
    yield "natural_close_count", closes
    yield "natural_close_count_from_token_ids", sum(248069 in row for row in ids)
    series: dict[str, Callable[[Any], Any]] = {
        "think_tokens": lambda sample: sample.continuation.thinking_tokens,
        "unique_token_ratio": lambda sample: unique_ratio(sample.row.token_ids),
        "maximum_trigram_count": lambda sample: max_ngram_count(sample.row.token_ids, 3),
    }
    for name, measure in series.items():
        measured = [measure(sample) for sample in samples]
        yield f"{name}.minimum", min(measured)
        yield f"{name}.median", float(statistics.median(measured))
        yield f"{name}.maximum", max(measured)


def _reach(archive: Archive, gates: Gates) -> Iterator[tuple[str, Any]]:
    for name, split in (("selection", "budget_selection"), ("confirmation", "seam_confirmation")):
        stage = archive.protocol.stage(name)
        size = SampleSize(len(archive.tasks(split)), stage.samples_per_task)
        entry = next(entry for entry in stage.gates if entry.name == "natural_close")
        gate = gates.of(entry, where=name)
        assert gate.reach is not None
        yield f"reachability.{name}.traces", size.rows
        yield f"reachability.{name}.minimum_close_count", next(iter(gate.reach(size, **entry.thresholds))).minimum


def _freshness(source: Path, archive: Archive, run: PublishedRun) -> Iterator[tuple[str, Any]]:
    protocol = archive.protocol
    domain = load_domain(protocol.study, protocol.domain_version, [], where="conformance")
    parents: dict[str, list[str]] = json.loads((source / "fingerprints.json").read_bytes())["parents"]
    seen = {digest for digests in parents.values() for digest in digests}
    every: set[str] = set()
    for name, digests in parents.items():
        yield f"freshness.parent_count.{name}", len(set(digests))
    for split, path in run.tasks.items():
        tasks = archive.tasks(split)
        own = {domain.record_fingerprint(task) for task in tasks}
        every |= own
        yield f"freshness.{split}.items", len(tasks)
        yield f"freshness.{split}.unique_fingerprints", len(own)
        yield f"freshness.{split}.parent_overlap", len(own & seen)
        yield f"freshness.{split}.sha256", hashlib.sha256(path.read_bytes()).hexdigest()
        yield f"freshness.{split}.first_op_counts", dict(sorted(Counter(map(domain.family, tasks)).items()))
    yield "freshness.total_unique_fingerprints", len(every)


def _facts_beside(source: Path, archive: Archive) -> Iterator[Fact]:
    """Checks without a published number of their own: (name, expected, recomputed)."""
    protocol = archive.protocol
    domain = load_domain(protocol.study, protocol.domain_version, [], where="conformance")
    tasks = [task for split in protocol.splits for task in archive.tasks(split)]
    digests = json.loads((source / "fingerprints.json").read_bytes())["tasks"]
    published = {name: digest for split in digests.values() for name, digest in split.items()}
    yield "tasks_identifiable", len(tasks), sum(len(domain.answers(task)) == 1 for task in tasks)
    yield (
        "fingerprints_reproduced",
        len(published),
        sum(published.get(task["task_id"]) == domain.record_fingerprint(task) for task in tasks),
    )
    smoke = json.loads((source / "receipts.json").read_bytes())["model_smoke"]
    lengths = smoke["forward_input_lengths"]
    yield "model_smoke.cache_contract_pass", True, lengths == [smoke["prompt_tokens"]] + [1] * (len(lengths) - 1)
    programs = [domain.program_fingerprint(task) for task in tasks]
    by_split = [set(map(domain.program_fingerprint, archive.tasks(split))) for split in protocol.splits]
    described = json.loads((source.parent / "published.json").read_bytes())["derived_unpublished"]
    overlap = next(entry for entry in described if entry["set"] == "task_programs")
    yield "program_overlap.unique_programs", overlap["all_unique"], len(set(programs))
    yield "program_overlap.shared_between_splits", overlap["shared_between_splits"], len(set.intersection(*by_split))


def _described(source: Path) -> Iterator[str]:
    """What the archive says of program overlap and nobody can derive from it: its parents are digests of records."""
    entries = json.loads((source.parent / "published.json").read_bytes())["derived_unpublished"]
    overlap = next(entry for entry in entries if entry["set"] == "task_programs")
    for split in ("selection", "confirmation"):
        old, tasks = overlap[f"{split}_tasks_whose_program_is_in_parents"], overlap[f"{split}_tasks"]
        yield f"described, not derivable: the programs of {old} of {tasks} {split} tasks occur in the parent corpora"
