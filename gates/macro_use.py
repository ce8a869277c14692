"""Do answers use the macros where they can be reused?"""

from gatepost.gate import Check, Checks, Evidence, Reach, SampleSize, gate, minimum_count

REUSE, MACRO = "reuse", "macro"
"""The task domain's words: the family of tasks built from macros, and the trait of an answer that calls one."""


def _reach(size: SampleSize, *, arm: str, reuse_tasks: int, min_reuse_tasks: int) -> list[Reach]:
    possible = reuse_tasks if reuse_tasks <= size.tasks else 0  # with more than there are nothing will be known
    return [minimum_count("min_reuse_tasks", possible, lambda count: count >= min_reuse_tasks)]


@gate(version=1, reads=["tasks", "scores"], role="adequacy", reach=_reach)
def macro_use(evidence: Evidence, *, arm: str, reuse_tasks: int, min_reuse_tasks: int) -> Checks:
    """Enough reuse tasks have a valid answer that calls a macro, among all samples of the arm that offers macros.

    Study A: at least 2 of its 6 reuse tasks in the arm ``designed``. An answer need not be right: the question is
    whether the model takes up what it is offered. With another number of reuse tasks than registered nothing is known.
    """
    reuse, scores = evidence.tasks_of(REUSE), (evidence.arm_scores or {}).get(arm)
    if scores is None or len(reuse) != reuse_tasks:
        note = f"arm {arm}: {'no scores' if scores is None else f'{len(reuse)} reuse tasks, {reuse_tasks} registered'}"
        yield Check("reuse_tasks_with_a_macro", None, ">=", min_reuse_tasks, n=reuse_tasks, note=note)
        return
    found = {key.task_id for key, score in scores.items() if score.valid and MACRO in score.traits} & reuse
    yield Check("reuse_tasks_with_a_macro", len(found), ">=", min_reuse_tasks, k=len(found), n=reuse_tasks)
