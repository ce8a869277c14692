"""What the authors of the verified-macro study say of rows that were not published, and how far it can be checked.

Counts that contradict one another, the registered plan or the authors' own verdicts are refused: they are not of one
run. Where the rows are held, every count that rows can show has to be what they give. Seconds no row can show.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from gatepost.absence import AbsentRows
from gatepost.audit.foreign import Foreign
from gatepost.errors import DataError
from gatepost.evidence import Plan, Record, Row
from gatepost.ladder import Judgement
from gatepost.periodicity import tail_period
from gatepost.stages import GateEntry
from gatepost.verdict import JSON, Check, Verdict, share

TERMINATION = "termination"
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
SHOWN = (*COUNTS, "period_tokens", "sampled_tokens")
"""What rows show. They have no times, so that ``generation_seconds`` stays a claim."""

_COUNTED = {
    "complete_rows": "samples",
    "unresolved_share": "unresolved_cap_contacts",
    "answer_limit_share": "answer_limit_contacts",
    "loop_share": "periodic_loop_contacts",
}
"""Check of the termination gate -> the authors' name for its count."""

_RATES = {
    "unresolved_cap_contact_rate": ("unresolved_cap_contacts", "below", "max_unresolved_share"),
    "answer_limit_contact_rate": ("answer_limit_contacts", "below", "max_answer_limit_share"),
    "periodic_loop_rate": ("periodic_loop_contacts", "at_most", "max_loop_share"),
}
"""The authors' name of a rate -> its count, the end of the name of its limit, and the registered threshold."""


def read_claims(audit: Foreign) -> dict[str, JSON]:
    """Counts, periods, sampled ids and seconds of a probe. Raises ``DataError`` naming what is missing or no number."""
    return {
        **{name: audit.count(f"termination.{name}") for name in COUNTS},
        "period_tokens": audit.counts("termination.period_tokens"),
        "sampled_tokens": audit.count("generation.sampled_tokens"),
        "generation_seconds": audit.number("generation.generation_seconds"),
    }


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


def require_consistent(audit: Foreign, plan: Plan) -> None:
    """Raise ``DataError`` naming file and field unless the claims of a probe fit its plan and one another.

    What the authors conclude (rates, ``adequate``, ``pass``) may be left out; where it is there, it has to follow.
    """
    audit.expect("bundle.n_completions", len(plan.keys))
    _require_counts(audit, plan)
    _require_rates(audit, plan)
    _require_capacity(audit, len(plan.keys))
    _require_capture(audit, len(plan.keys))


def require_same(audit: Foreign, termination: Foreign) -> None:
    """Raise ``DataError`` unless counts that are repeated elsewhere are those of the audit."""
    for name in (*COUNTS, "period_tokens", *_RATES, "adequate"):
        if termination.has(name):
            termination.expect(name, audit.at(f"termination.{name}").value)


def _require_counts(audit: Foreign, plan: Plan) -> None:
    claims, limits = read_claims(audit), termination_entry(plan).thresholds
    n, cap, longest = len(plan.keys), plan.sampled_think_tokens, limits["max_period_tokens"]
    loops, forced, boundary = (
        claims[name] for name in ("periodic_loop_contacts", "forced_interventions", "reasoning_boundary_contacts")
    )
    # A contact is a forced close or one at the boundary, and may be both.
    least, most = max(forced, boundary), min(n, forced + boundary)
    for name, low, high in (
        ("samples", n, n),
        ("forced_interventions", 0, n),
        ("reasoning_boundary_contacts", 0, n),
        ("answer_limit_contacts", 0, n),
        ("stage1_length_finishes", 0, n),
        ("answer_restarts_after_natural_close", 0, n - forced),
        ("periodic_loop_contacts", 0, most),
        ("unresolved_cap_contacts", max(0, least - loops), most - loops),
    ):
        if not low <= claims[name] <= high:
            expected = str(low) if low == high else f"{low} to {high}"
            audit.at(f"termination.{name}").refuse(f"{expected} of {n} samples, by the plan and the other counts")
    periods = audit.at("termination.period_tokens")
    if len(claims["period_tokens"]) != loops:
        periods.refuse(f"as many as periodic_loop_contacts, {loops}")
    if not all(1 <= period <= longest for period in claims["period_tokens"]):
        periods.refuse(f"periods from 1 to the registered {longest}")
    low, high = boundary * (cap - limits["contact_margin_tokens"]), n * (cap + plan.protocol.max_answer_tokens)
    if not low <= claims["sampled_tokens"] <= high:
        audit.at("generation.sampled_tokens").refuse(f"{low} to {high}, by {boundary} contacts of {n} samples")


def adequate_by_counts(audit: Foreign, plan: Plan) -> bool:
    """Whether the authors' counts are within the registered limits."""
    termination, limits, n = audit.at("termination"), termination_entry(plan).thresholds, len(plan.keys)
    rates = {name: (termination.count(count) / n, limits[limit]) for name, (count, _, limit) in _RATES.items()}
    return all(rate <= limit if _RATES[name][1] == "at_most" else rate < limit for name, (rate, limit) in rates.items())


def _require_rates(audit: Foreign, plan: Plan) -> None:
    termination, limits, n = audit.at("termination"), termination_entry(plan).thresholds, len(plan.keys)
    for name, (count, end, threshold) in _RATES.items():
        k, limit = termination.count(count), limits[threshold]
        if termination.has(name) and not math.isclose(termination.number(name, at_least=0), k / n, rel_tol=1e-9):
            termination.at(name).refuse(f"{k / n!r}, as {count} is {k} of {n}")
        if termination.has("thresholds"):
            termination.expect(f"thresholds.{name}_{end}", limit)
    require_verdict(termination, "adequate", adequate_by_counts(audit, plan))


def _require_capacity(audit: Foreign, n: int) -> None:
    capacity = audit.at("capacity_fit")
    if capacity.has("required_cache_tokens"):
        live, required = (capacity.count(f"{name}_cache_tokens") for name in ("live_kv", "required"))
        if capacity.has("rounded_tokens_per_sequence"):
            sequences = min(n, capacity.count("max_num_seqs"))
            capacity.expect("required_cache_tokens", sequences * capacity.count("rounded_tokens_per_sequence"))
        require_verdict(capacity, "pass", required <= live)


def _require_capture(audit: Foreign, n: int) -> None:
    graphs, width = audit.at("cudagraph_resolution"), min(n, audit.count("capacity_fit.max_num_seqs"))
    requested, resolved = (graphs.counts(f"{name}_capture_sizes") for name in ("requested", "resolved"))
    covered = max(resolved, default=0) >= width
    full = graphs.text("decode_mode") == "FULL" and graphs.truth("has_full_cudagraphs")
    require_verdict(graphs, "active_width_covered", covered)
    require_verdict(graphs, "pass", requested == resolved and full and covered)


def require_verdict(found: Foreign, name: str, follows: bool) -> None:
    """Raise ``DataError`` unless a verdict of the authors, where there is one, is what their numbers give."""
    if found.has(name) and found.truth(name) is not follows:
        found.at(name).refuse(f"{follows}, by the counts that were published")


def require_met(given: Mapping[str, JSON], claims: Mapping[str, JSON], *, source: str) -> None:
    """Raise ``DataError`` unless rows give every count that was published of them: else they are other rows."""
    if differ := [name for name in SHOWN if given[name] != claims[name]]:
        problems = "; ".join(f"{name}: these rows give {given[name]}, published are {claims[name]}" for name in differ)
        raise DataError(f"{source}: {problems}")


def shown(judgement: Judgement, plan: Plan, rows: Sequence[Row]) -> Iterator[tuple[str, JSON]]:
    """What rows show of a probe, under the authors' names: by the gate where it counts, from the rows where not."""
    limits, cap = termination_entry(plan).thresholds, plan.sampled_think_tokens
    margin = limits["contact_margin_tokens"]
    search = {name: limits[f"{name}_tokens"] for name in ("tail", "max_period")}
    samples = Record(plan, rows=tuple(rows)).samples or ()
    for check in next(verdict for verdict in judgement.verdicts if verdict.gate == TERMINATION).checks:
        yield _COUNTED[check.name], check.k
    at_boundary = [s for s in samples if any(block.tokens + margin >= cap for block in s.continuation.blocks)]
    touching = [sample for sample in samples if sample.touches_budget(cap, margin)]
    found = [tail_period(s.thinking_ids[:cap], min_match=limits["min_match_rate"], **search).period for s in touching]
    # A row without a second stage ended with its first.
    ended = [row.finish_reason if row.stage_two_seed is None else row.stage_one_finish_reason for row in rows]
    yield "forced_interventions", sum(row.injected_tokens > 0 for row in rows)
    yield "reasoning_boundary_contacts", len(at_boundary)
    yield (
        "answer_restarts_after_natural_close",
        sum(not r.injected_tokens and r.stage_two_seed is not None for r in rows),
    )
    yield "stage1_length_finishes", ended.count("length")
    yield "period_tokens", sorted(period for period in found if period is not None)
    yield "sampled_tokens", sum(row.sampled_tokens for row in rows)
