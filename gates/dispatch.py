"""Did decode steps really run on a full graph?"""

from gatepost.gate import Check, Checks, Evidence, Reach, SampleSize, count_of, gate, share


def _reach(size: SampleSize, *, max_uncovered_step_share: float) -> list[Reach]:
    """Nobody registers how many steps a run takes, so there is no count: every share from 0 to 1 can occur."""
    meets, misses = max_uncovered_step_share >= 0, max_uncovered_step_share < 1
    return [Reach("max_uncovered_step_share", None, 0, meets=meets, misses=misses)]


@gate(version=1, reads=["scheduler"], role="validity", reach=_reach)
def dispatch(evidence: Evidence, *, max_uncovered_step_share: float) -> Checks:
    """Few enough of the steps that are narrow enough for decoding ran on anything but a full graph.

    A list of captured sizes is a setting and the graph of a step its effect: a step without one runs without a word
    (vllm-project/vllm#37865). A step with more tokens than all active sequences can decode holds prompt ids and is
    left out. Without a histogram nothing is known.
    """
    recorded, widths = (evidence.scheduler or {}).get("dispatch"), evidence.plan.decode_widths(evidence.scheduler)
    entries = recorded if isinstance(recorded, list) else []
    narrow = [entry for entry in entries if widths is None or (count_of(entry, "tokens") or 0) <= widths[-1]]
    steps = [count_of(entry, "steps") for entry in narrow]
    if not narrow or None in steps:
        yield Check("uncovered_step_share", None, "<=", max_uncovered_step_share, note="no histogram of steps")
        return
    by_mode: dict[str, int] = {}
    for entry, count in zip(narrow, steps, strict=True):
        mode = str(entry.get("mode"))
        by_mode[mode] = by_mode.get(mode, 0) + (count or 0)
    total = sum(by_mode.values())
    note = ", ".join(f"{mode} {count}" for mode, count in sorted(by_mode.items()))
    uncovered = total - by_mode.get("FULL", 0)
    yield share("uncovered_step_share", uncovered, total, "<=", max_uncovered_step_share, note=note)
