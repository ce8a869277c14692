"""Did decode steps really run on a full graph?"""

from gatepost.gate import (
    JSON,
    UNKNOWN_FACTS,
    Check,
    Checks,
    Evidence,
    Outcome,
    Plan,
    Reach,
    SampleSize,
    count_of,
    counts_of,
    gate,
    share,
)

MODES = ("NONE", "PIECEWISE", "FULL")
"""What a step can run on."""

FIELDS = ("mode", "tokens", "padded_tokens", "steps")


def _reach(size: SampleSize, *, max_uncovered_step_share: float) -> list[Reach]:
    """Nobody registers how many steps a run takes, so there is no count: every share from 0 to 1 can occur."""
    meets, misses = max_uncovered_step_share >= 0, max_uncovered_step_share < 1
    return [Reach("max_uncovered_step_share", None, 0, meets=meets, misses=misses)]


@gate(version=1, reads=["engine", "scheduler"], role="validity", reach=_reach)
def dispatch(evidence: Evidence, *, max_uncovered_step_share: float) -> Checks:
    """Few enough of the steps that are narrow enough for decoding ran on anything but a full graph.

    A list of captured sizes is a setting and the graph of a step its effect: a step without one runs without a word
    (vllm-project/vllm#37865). A step with more tokens than all active sequences can decode holds prompt ids and is
    left out; a scheduler that says it is narrower than registered does not make more of those. Without a histogram,
    or with an entry in it that is none, nothing is known. Where the histogram contradicts what else the engine
    counted, or the sizes that it captured, a further check shows that.
    """
    plan, scheduler = evidence.plan, evidence.scheduler or {}
    recorded = scheduler.get("dispatch")
    entries = recorded if isinstance(recorded, list) else []
    broken = [entry for entry in entries if not _is_entry(entry)]
    narrow = [] if broken else _narrow(entries, plan, scheduler)
    if not narrow:
        note = _told(broken[0]) if broken else "no histogram of steps"
        yield Check("uncovered_step_share", None, "<=", max_uncovered_step_share, note=note)
        return
    by_mode: dict[str, int] = {}
    for entry in narrow:
        by_mode[entry["mode"]] = by_mode.get(entry["mode"], 0) + entry["steps"]
    total = sum(by_mode.values())
    note = ", ".join(f"{mode} {count}" for mode, count in sorted(by_mode.items()))
    uncovered = total - by_mode.get("FULL", 0)
    yield share("uncovered_step_share", uncovered, total, "<=", max_uncovered_step_share, note=note)
    told = [*_counted(entries, plan, scheduler), *_captured(entries, (evidence.engine or UNKNOWN_FACTS).cuda_graphs)]
    yield from (check for check in told if check.outcome is not Outcome.PASS)


def _is_entry(entry: JSON) -> bool:
    """Whether it says of steps how many they were, how wide, padded to what, and on what they ran."""
    tokens, steps = count_of(entry, "tokens", at_least=1), count_of(entry, "steps", at_least=1)
    if tokens is None or steps is None or count_of(entry, "padded_tokens", at_least=tokens) is None:
        return False
    return entry.get("mode") in MODES


def _told(entry: JSON) -> str:
    """Its fields in one order, that of the file or of the engine left aside: a replay has to find the same note."""
    if not isinstance(entry, dict):
        return f"{entry!r} is no entry of a histogram"
    return "no entry of a histogram: " + ", ".join(f"{name} {entry.get(name)!r}" for name in FIELDS)


def _narrow(entries: list[JSON], plan: Plan, scheduler: JSON) -> list[JSON]:
    """The entries no wider than decoding gets, by the scheduler or as registered; all where the width is unknown."""
    live, registered = plan.decode_widths(scheduler), plan.decode_widths(plan.engine_options)
    if live is None:
        return entries
    widest = max(live[-1], registered[-1] if registered else 0)
    return [entry for entry in entries if entry["tokens"] <= widest]


def _counted(entries: list[JSON], plan: Plan, scheduler: JSON) -> Checks:
    """No more forward calls than steps, and an input id for each sampled one.

    A step in which nothing could be scheduled has no forward call, so there may be fewer calls than steps, and the
    number of steps alone would not show a histogram that is too short. Each id is sampled at an input position of its
    own, speculated ones too. With data parallelism, and where layers share caches, vLLM asks for a graph more than
    once a step (read in vLLM 0.24).
    """
    asked_once = scheduler.get("data_parallel_size", 1) == 1 and not plan.engine_options.get("kv_sharing_fast_prefill")
    if scheduler.get("steps") is not None and asked_once:
        calls = sum(entry["steps"] for entry in entries)
        yield Check("histogram_steps", calls, "<=", count_of(scheduler, "steps"), note="forward calls among all steps")
    if scheduler.get("sampled_tokens") is not None:
        inputs = sum(entry["steps"] * entry["tokens"] for entry in entries)
        sampled = count_of(scheduler, "sampled_tokens")
        yield Check("histogram_tokens", inputs, ">=", sampled, note="input ids of all steps, and ids that were sampled")


def _captured(entries: list[JSON], graphs: JSON) -> Checks:
    """A full graph is as wide as a size that was captured."""
    sizes = counts_of(graphs, "resolved_capture_sizes")
    if sizes is not None:
        full = {entry["padded_tokens"] for entry in entries if entry["mode"] == "FULL"}
        yield Check("full_sizes_not_captured", sorted(full - set(sizes)), "==", [], note=f"captured {sizes}")
