"""Does the registered adapter change anything?"""

from gatepost.gate import (
    FINISH_REASONS,
    UNKNOWN_FACTS,
    Check,
    Checks,
    Evidence,
    Reach,
    RowKey,
    SampleSize,
    gate,
    maximum_count,
    minimum_count,
    share,
)

OFF, ON, AGAIN = range(3)
"""Which sample of a task is drawn without the adapter, with it, and with it once more."""


def _reach(size: SampleSize, *, min_changed_task_share: float, max_repeat_changed_share: float) -> list[Reach]:
    n = size.tasks
    return [
        minimum_count("min_changed_task_share", n, lambda count: count / n >= min_changed_task_share),
        maximum_count("max_repeat_changed_share", n, lambda count: count / n <= max_repeat_changed_share),
    ]


@gate(version=1, reads=["engine", "token_ids"], role="validity", reach=_reach)
def adapter_applied(evidence: Evidence, *, min_changed_task_share: float, max_repeat_changed_share: float) -> Checks:
    """Under one seed, more tasks come out otherwise with the adapter than when it is applied a second time.

    An adapter that is dropped without a word, or whose weights add up to nothing, changes no id. Another batch changes
    some by itself (vllm-project/vllm#17524), so the repeat with the adapter is what a change is held against. One row
    that is missing or not complete leaves every share open.
    """
    plan, rows = evidence.plan, evidence.registered_rows or {}
    pin, n, contrast = plan.protocol.adapter, len(plan.task_ids), plan.stage.adapter == "contrast"
    loaded = (evidence.engine or UNKNOWN_FACTS).adapter_files
    yield Check("adapter_files", loaded, "==", None if pin is None else pin.files)
    complete = sum(row.finish_reason in FINISH_REASONS for row in rows.values())
    whole = contrast and complete == len(plan.keys) == len((OFF, ON, AGAIN)) * n
    yield Check("complete_rows", complete if whole else None, "==", len(plan.keys), k=complete, n=len(plan.keys))

    def differing(first: int, second: int) -> list[str] | None:
        pairs = {task: [rows[RowKey(task, index)].token_ids for index in (first, second)] for task in plan.task_ids}
        return [task for task, (one, other) in pairs.items() if one != other]

    changed, repeated = (differing(OFF, ON), differing(ON, AGAIN)) if whole else (None, None)
    yield _share("changed_task_share", changed, n, ">=", min_changed_task_share)
    yield _share("repeat_changed_share", repeated, n, "<=", max_repeat_changed_share)
    noise = None if repeated is None or not n else len(repeated) / n
    yield _share("changed_beyond_repeats", changed, n, ">", noise)


def _share(name: str, tasks: list[str] | None, n: int, relation: str, limit: float | None) -> Check:
    note = f"first: {tasks[0]}" if tasks else None
    return share(name, None if tasks is None else len(tasks), n, relation, limit, note=note)
