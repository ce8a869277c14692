"""Do the examples determine the answer?"""

from gatepost.gate import Check, Checks, Evidence, every, gate


@gate(version=1, reads=["tasks"], role="validity")
def identifiability(evidence: Evidence, *, max_answers_per_task: int, max_family_imbalance: int) -> Checks:
    """Enumerating every candidate leaves each registered task few enough answers, and each split is balanced.

    Study B enumerates every pipeline of depth two: all that match the visible examples share one first operation, and
    the counts of first operations in a split differ by at most one. A task that was not enumerated has no answers on
    record, and is not identifiable.
    """
    plan, recorded = evidence.plan, evidence.tasks
    if recorded is None:
        yield Check("identifiable_tasks", None, "==", 1.0, note="no tasks recorded")
        return
    known = {task.task_id: task for task in recorded.tasks}
    yield every(
        "identifiable_tasks",
        plan.task_ids,
        lambda task_id: task_id in known and 1 <= len(known[task_id].answers) <= max_answers_per_task,
    )
    tasks = [known[task_id] for task_id in plan.task_ids if task_id in known]
    for split in plan.stage.splits:
        families = [task.family for task in tasks if task.split == split]
        counts = [families.count(family) for family in set(families)]
        imbalance = max(counts) - min(counts) if counts else None
        yield Check(f"family_imbalance of {split}", imbalance, "<=", max_family_imbalance, n=len(families))
