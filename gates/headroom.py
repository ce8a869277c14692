"""Is there something to measure?"""

from gatepost.gate import Check, Checks, Evidence, Grade, Reach, SampleSize, counts_in_band, gate, minimum_count, share


def _reach(size: SampleSize, **limits: float) -> list[Reach]:
    """Jointly: a mixed task takes a success and a failure, out of usable samples whose success is in the band."""
    rows, low, high = limits["min_usable_rows"], limits["min_usable_success"], limits["max_usable_success"]
    enough = [usable for usable in range(size.rows + 1) if usable >= rows]
    bands = [(usable, band) for usable in enough if (band := counts_in_band(usable, low, high))]
    most_mixed = max((_most_mixed(size, usable, band) for usable, band in bands), default=0)
    fewest, most = min((band[0] for _, band in bands), default=None), max((band[-1] for _, band in bands), default=None)
    return [
        minimum_count("min_usable_rows", size.rows, lambda count: count >= rows),
        Reach("min_usable_success", fewest, size.rows, meets=bool(bands), misses=low > 0),
        Reach("max_usable_success", most, size.rows, meets=bool(bands), misses=high < 1),
        minimum_count("min_mixed_tasks", most_mixed, lambda count: count >= limits["min_mixed_tasks"]),
    ]


def _most_mixed(size: SampleSize, usable: int, successes: range) -> int:
    """The most mixed tasks, at the success count nearest to one half. One sample per task cannot mix."""
    even = min(max(usable // 2, successes[0]), successes[-1])
    return min(size.tasks, even, usable - even) if size.samples_per_task > 1 else 0


@gate(version=1, reads=["completions", "grades"], role="adequacy", reach=_reach)
def headroom(
    evidence: Evidence,
    *,
    min_thinking_tokens: int,
    min_usable_rows: int,
    min_usable_success: float,
    max_usable_success: float,
    min_mixed_tasks: int,
) -> Checks:
    """Enough usable samples, neither all right nor all wrong, and enough tasks with both among them.

    Study B: a sample is usable if it closed by the cap, parsed, and thought for long enough; a task is mixed if it has
    a correct and an incorrect usable sample. Thinking is counted in ids before the close.
    """
    plan, usable = evidence.plan, _usable(evidence, min_thinking_tokens)
    count = None if usable is None else len(usable)
    successes = sum(grade.correct for grade in usable or ())
    right = {grade.key.task_id for grade in usable or () if grade.correct}
    wrong = {grade.key.task_id for grade in usable or () if not grade.correct}
    mixed = None if usable is None else len(right & wrong)
    yield Check("usable_rows", count, ">=", min_usable_rows, k=count, n=len(plan.keys))
    yield share("usable_success_floor", successes, count or 0, ">=", min_usable_success)
    yield share("usable_success_ceiling", successes, count or 0, "<=", max_usable_success)
    yield Check("mixed_tasks", mixed, ">=", min_mixed_tasks, k=mixed, n=len(plan.task_ids))


def _usable(evidence: Evidence, min_thinking_tokens: int) -> list[Grade] | None:
    """Grades of the usable samples; ``None`` if nothing was registered, recorded or completely graded."""
    closed, grades = evidence.closed_samples, evidence.grades
    if not evidence.plan.keys or closed is None or grades is None or not closed.keys() <= grades.keys():
        return None
    return [
        grades[key]
        for key, sample in closed.items()
        if grades[key].parsed is not None and sample.continuation.thinking_tokens >= min_thinking_tokens
    ]
