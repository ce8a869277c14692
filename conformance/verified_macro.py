"""Recompute the published numbers of study A from its counts and facts, with gatepost's own gates and ladder.

Capacity and capture are the verdicts of the shipped gates over the imported facts. Rates, adequacy and the terminal
selection are what the shipped ladder makes of the authors' counts: a claim followed to its end, for the rows behind it
were not published. Nothing here knows a published value, or reads one from where it is printed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from conformance import verified_macro_tasks
from conformance.table import Fact, Recomputed
from gatepost.archive import Archive
from gatepost.audit.claims import termination_by_claims, termination_entry
from gatepost.audit.foreign import Foreign
from gatepost.audit.verified_macro import (
    EXPERIMENT,
    PublishedProbe,
    PublishedRun,
    import_run,
    read_run,
    record_of,
)
from gatepost.evidence import Plan
from gatepost.gatefiles import Gates
from gatepost.judge import judge
from gatepost.ladder import Decision, Judgement, decide
from gatepost.records import plan_of
from gatepost.replay import Replay, replay
from gatepost.verdict import Check, Outcome, Verdict, conjunction

FOLDER = EXPERIMENT.removeprefix("qwen35_4b_")
PRINTED_DECIMALS = 6
"""The authors print seconds, tokens per second and fractions rounded to six decimals."""
AGREES = (
    "samples",
    "period_tokens",
    "periodic_loop_contacts",
    "unresolved_cap_contacts",
    "answer_limit_contacts",
    "forced_interventions",
)


class Probe(NamedTuple):
    """A published probe, and what the shipped gates say of it at its rung, opened or not."""

    published: PublishedProbe
    audit: Foreign
    plan: Plan
    judgement: Judgement

    @property
    def by_claims(self) -> Verdict:
        """What termination would be if the authors' counts were so."""
        return termination_by_claims(self.plan, self.published.rows)

    def checks(self, gate: str) -> dict[str, Check]:
        """The checks of a gate, by name."""
        verdict = next(verdict for verdict in self.judgement.verdicts if verdict.gate == gate)
        return {check.name: check for check in verdict.checks}


def recompute(source: Path, scratch: Path) -> Recomputed:
    """Import what was published of the run, replay it, and derive what can be derived."""
    run = read_run(source)
    archive = import_run(source, scratch)
    replayed = replay(archive.root, gates=Gates(), studies=[])
    probes = [judged(archive, run, published) for published in run.probes]
    decision = by_claims(archive, probes)
    derived: dict[str, Any] = {name: recomputed for name, _, recomputed in verified_macro_tasks.check(source)}
    for probe in probes:
        derived |= {f"{probe.published.rung}.{name}": value for name, value in values_of(run, probe).items()}
        agrees = {name: probe.audit.at(f"termination.{name}").value for name in AGREES}
        derived |= {f"selection.{probe.published.rung}.{name}_agrees_with_audit": agrees[name] for name in AGREES}
    derived |= dict(_digests(run, source)) | dict(selection_of(decision))
    beside = [
        *verified_macro_tasks.check(source),
        *_facts_beside(source, replayed, probes, decision),
        *_plan_as_published(archive, json.loads((source / "protocol.json").read_bytes())["config"]),
    ]
    notes = [f"not derivable: {probe.published.step}: {probe.published.rows}" for probe in probes]
    return Recomputed(replayed, derived, beside, notes)


def judged(archive: Archive, run: PublishedRun, published: PublishedProbe) -> Probe:
    """Judge a probe at its rung from what was published of it, whether or not the ladder opens it."""
    protocol, gates = archive.protocol, Gates()
    stage, rung = protocol.stage(published.step.stage), protocol.rung(published.rung)
    plan = plan_of(archive, stage, rung, recorded_digest=protocol.digest)
    judgement = judge(record_of(plan, run, published), lambda entry: gates.of(entry, where=str(published.step)))
    audit = next(audit for audit in run.audits.values() if audit.at("bundle.thinking_budget").value == int(rung.name))
    return Probe(published, audit, plan, judgement)


def values_of(run: PublishedRun, probe: Probe) -> dict[str, Any]:
    """Every number of a probe that counts and facts give."""
    return dict([*_capacity(run, probe), *_capture(probe), *_termination(probe), *_throughput(probe)])


def by_claims(archive: Archive, probes: Sequence[Probe]) -> Decision:
    """Where the ladder ends if termination is what the authors' counts make of it."""
    judgements = {
        probe.published.step: [
            Judgement(
                probe.published.rung,
                tuple(probe.by_claims if v.gate == "termination" else v for v in probe.judgement.verdicts),
            )
        ]
        for probe in probes
    }
    return decide(archive.protocol, judgements)


def _capacity(run: PublishedRun, probe: Probe) -> Iterator[tuple[str, Any]]:
    check, facts = probe.checks("kv_fit")["required_tokens"], probe.published.facts
    active, live = probe.plan.active_sequences(facts.scheduler), (facts.kv_cache or {})["kv_cache_size_tokens"]
    yield "capacity.rounded_tokens_per_sequence", check.observed // active
    yield "capacity.required_cache_tokens", check.observed
    yield "capacity.cache_margin_tokens", live - check.observed
    yield "capacity.margin_in_whole_blocks", check.limit - check.observed
    yield "capacity.pass", check.outcome is Outcome.PASS
    wider = replace(facts, scheduler={"max_num_seqs": (active or 0) + 1})
    record = record_of(probe.plan, run, replace(probe.published, facts=wider))
    entry = next(entry for entry in probe.plan.stage.gates if entry.name == "kv_fit")
    verdict = Gates().of(entry, where="kv_fit").judge(record, entry.thresholds)
    yield "capacity.pass_one_more_sequence", verdict.outcome is Outcome.PASS


def _capture(probe: Probe) -> Iterator[tuple[str, Any]]:
    """By the study's own definition: sizes as requested, full decode graphs, every active width covered."""
    checks = probe.checks("capture_resolution")
    defined = [checks[name].outcome for name in ("capture_sizes", "decode_mode", "uncovered_decode_widths")]
    yield "capture.pass", conjunction(defined) is Outcome.PASS
    yield "capture.active_width_covered", checks["uncovered_decode_widths"].outcome is Outcome.PASS


def _termination(probe: Probe) -> Iterator[tuple[str, Any]]:
    checks, n = {check.name: check for check in probe.by_claims.checks}, len(probe.plan.keys)
    periods, limits = probe.published.rows.claims["period_tokens"], termination_entry(probe.plan).thresholds
    yield "samples", n
    yield "periodic_loop_contacts", checks["loop_share"].k
    yield "periodic_loop_rate", checks["loop_share"].observed
    yield "unresolved_cap_contacts", checks["unresolved_share"].k
    yield "unresolved_cap_contact_rate", checks["unresolved_share"].observed
    yield "answer_limit_contact_rate", checks["answer_limit_share"].observed
    yield "adequate", probe.by_claims.outcome is Outcome.PASS
    in_range = all(1 <= period <= limits["max_period_tokens"] for period in periods)
    yield "periods_sorted_and_in_range", in_range and periods == sorted(periods)


def _throughput(probe: Probe) -> Iterator[tuple[str, Any]]:
    claims, plan = probe.published.rows.claims, probe.plan
    sampled, n, thinking = claims["sampled_tokens"], len(plan.keys), plan.sampled_think_tokens
    rate = sampled / claims["generation_seconds"]
    yield "sampled_tokens_per_second", round(rate, PRINTED_DECIMALS)
    most = thinking + plan.protocol.max_answer_tokens
    yield "sampled_tokens_in_bounds", n * thinking <= sampled <= n * most
    if "throughput_comparison" in probe.audit.value:
        others = probe.audit.at("throughput_comparison")
        implicit = others.number("implicit_capture_capacity_fit_tokens_per_second")
        wide = others.number("overcommitted_max_num_seqs_64_tokens_per_second")
        yield "fraction_faster_than_implicit", round(rate / implicit - 1, PRINTED_DECIMALS)
        yield "fraction_slower_than_overcommitted", round(1 - rate / wide, PRINTED_DECIMALS)


def _digests(run: PublishedRun, source: Path) -> Iterator[tuple[str, Any]]:
    entries = run.catalog.each("entries")
    for name, part in (("catalog.tree", entries), ("49k.external_tree_at_audit", entries[:1])):
        files = [entry.at(f"files.{file}") for entry in part for file in entry.at("files").value]
        files += [entry.at("receipt") for entry in part]
        listed = sorted((file.text("relative_path"), file.text("sha256")) for file in files)
        yield f"{name}.files", len(files)
        yield f"{name}.bytes", sum(file.count("bytes") for file in files)
        yield f"{name}.sha256", _sha256("".join(f"{path}\0{digest}\n" for path, digest in listed).encode())
    binding = {key: value for key, value in run.catalog.at("protocol_binding").value.items() if key != "binding_sha256"}
    compact = json.dumps(binding, sort_keys=True, separators=(",", ":"))
    yield "protocol_binding.binding_sha256", _sha256(compact.encode())
    selection = (source / "selection.json").read_bytes()
    yield "selection.file_sha256", _sha256(selection)
    yield "selection.file_bytes", len(selection)


def selection_of(decision: Decision) -> Iterator[tuple[str, Any]]:
    """The selection, once a rung is selected or none is left; before that there is none to compare."""
    if decision.state == "exhausted" or decision.rung is not None:
        yield "selection.pass", decision.rung is not None
        yield "selection.selected_thinking_budget", None if decision.rung is None else int(decision.rung)


def _facts_beside(source: Path, replayed: Replay, probes: Sequence[Probe], by_claims: Decision) -> Iterator[Fact]:
    """Checks without a published number of their own: what stays open, and the second opinion on blocks."""
    yield "decision.from_what_was_published", "HALTED", replayed.decision.label
    yield "decision.if_the_counts_are_so", "NO_ADEQUATE_RUNG", by_claims.label
    yield "replayed_as_judged", True, replayed.steps[0].judgements == (probes[0].judgement,)
    described = json.loads((source.parent / "published.json").read_bytes())["derived_unpublished"]
    for probe in probes:
        rung, outcomes = probe.published.rung, {v.gate: str(v.outcome) for v in probe.judgement.verdicts}
        for gate in ("termination", "token_accounting", "forced_close"):
            yield f"{rung}.{gate}_without_rows", "inconclusive", outcomes[gate]
        check, cache = probe.checks("kv_fit")["required_tokens"], probe.published.facts.kv_cache or {}
        sequence = check.observed // (probe.plan.active_sequences(probe.published.facts.scheduler) or 1)
        kv_fit = next(entry for entry in described if entry["set"] == f"kv_fit_{rung}")
        yield f"{rung}.blocks_per_sequence", kv_fit["blocks_per_sequence"], sequence // cache["block_size"]
        yield f"{rung}.whole_blocks_live", kv_fit["whole_blocks_live"], check.limit // cache["block_size"]
        yield f"{rung}.max_sequences_that_fit", kv_fit["max_sequences_that_fit"], check.limit // sequence
    listed = json.loads((source / "catalog.json").read_bytes())["protocol_binding"]["files"]
    digests = {entry["path"]: entry["sha256"] for entry in listed}
    copied = json.loads((source / "provenance.json").read_bytes())["copied_files"]
    both = [path for path in copied if path in digests]
    yield "provenance.hashes_as_bound", len(both), sum(copied[path]["sha256"] == digests[path] for path in both)


def _plan_as_published(archive: Archive, config: Mapping[str, Any]) -> Iterator[Fact]:
    """The transcribed plan is the published one, value by value."""
    protocol, inference, decision = archive.protocol, config["inference"], config["decision"]
    probe, options = protocol.stage("probe"), protocol.engine["options"]
    caps = [rung.max_think_tokens for rung in protocol.rungs]
    yield "plan.rungs", inference["thinking_budget_ladder"], caps
    yield (
        "plan.max_num_seqs",
        inference["max_num_seqs_by_rung"],
        [rung.engine["max_num_seqs"] for rung in protocol.rungs],
    )
    for rung in protocol.rungs:
        sizes = inference[f"cudagraph_capture_sizes_{rung.name}"]
        yield f"plan.{rung.name}.capture_sizes", sizes, rung.engine["cudagraph_capture_sizes"]
    yield "plan.revision", config["model_revision"], protocol.model.revision
    yield "plan.run_seed", inference["run_seed"], probe.base_seed
    yield "plan.probe_k", inference["probe_k"], probe.samples_per_task
    yield (
        "plan.matrix_k",
        [inference["matrix_k"]] * 2,
        [protocol.stage(s).samples_per_task for s in ("base", "designed")],
    )
    yield "plan.answer_max_tokens", inference["answer_max_tokens"], protocol.max_answer_tokens
    for name in ("temperature", "top_p", "top_k"):
        yield f"plan.{name}", inference[name], getattr(protocol.sampling, name)
    for name in ("async_scheduling", "enable_prefix_caching", "enforce_eager", "gpu_memory_utilization"):
        yield f"plan.{name}", inference[name], options[name]
    for name in ("max_model_len", "max_num_batched_tokens"):
        yield f"plan.{name}", inference[name], options[name]
    limits = next(entry.thresholds for entry in probe.gates if entry.name == "termination")
    for name, threshold in {
        "loop_tail_tokens": "tail_tokens",
        "loop_max_period_tokens": "max_period_tokens",
        "loop_min_match_rate": "min_match_rate",
        "max_unresolved_cap_rate": "max_unresolved_share",
        "max_answer_limit_rate": "max_answer_limit_share",
        "max_periodic_loop_rate": "max_loop_share",
    }.items():
        yield f"plan.{name}", decision[name], limits[threshold]
    scoring = {entry.name: entry.thresholds for entry in protocol.stage("scoring").gates}
    yield "plan.smoke_min_parse_rate", decision["smoke_min_parse_rate"], scoring["parse_rate"]["min_parse_rate"]
    tasks = scoring["macro_use"]["min_reuse_tasks"]
    yield "plan.smoke_min_macro_reuse_tasks", decision["smoke_min_macro_reuse_tasks"], tasks


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
