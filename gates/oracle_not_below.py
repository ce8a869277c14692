"""Does the best of an arm's samples solve as many reuse tasks as the baseline's?"""

from gatepost.gate import Check, Checks, Evidence, Reach, SampleSize, gate

REUSE = "reuse"
"""The task domain's word for the family of tasks that are built from macros."""


def _reach(size: SampleSize, *, arm: str, baseline_arm: str) -> list[Reach]:
    """The limit is what the baseline covers, from no task to all of them; an arm is never below itself."""
    return [Reach("baseline_arm", 0, size.tasks, meets=True, misses=arm != baseline_arm and size.rows > 0)]


@gate(version=1, reads=["tasks", "scores"], role="adequacy", reach=_reach)
def oracle_not_below(evidence: Evidence, *, arm: str, baseline_arm: str) -> Checks:
    """Oracle coverage of the reuse tasks is not below the baseline's.

    Study A: a task is covered if any sample of the arm is right on all hidden examples, whether it was chosen or not;
    coverage bounds what any choice could get. An answer that calls what its arm does not offer covers nothing.
    """
    covered, baseline = _covered(evidence, arm), _covered(evidence, baseline_arm)
    note = f"reuse tasks of {arm}, at least as many as of {baseline_arm}"
    tasks = len(evidence.tasks_of(REUSE))
    yield Check("oracle_covered_tasks", covered, ">=", baseline, k=covered, n=tasks, note=note)


def _covered(evidence: Evidence, arm: str) -> int | None:
    reuse, scores = evidence.tasks_of(REUSE), (evidence.arm_scores or {}).get(arm)
    if scores is None or not reuse:
        return None
    return len({key.task_id for key, score in scores.items() if score.correct and score.valid} & reuse)
