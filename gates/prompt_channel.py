"""Does every prompt leave thinking open?"""

from gatepost.gate import Check, Checks, Evidence, every, gate


@gate(version=1, reads=["prompts"], role="validity")
def prompt_channel(evidence: Evidence) -> Checks:
    """The ids of each registered prompt hold exactly one think-open id and no think-close id.

    Study B's rule. Judged by ids: a template that closes thinking by itself looks open in the output, and a marker
    quoted in a task would split the thought at the wrong place.
    """
    plan, prompts = evidence.plan, evidence.registered_prompts
    if prompts is None:
        yield Check("prompts_that_leave_thinking_open", None, "==", 1.0, note="no prompts recorded")
        return
    open_id, close_id = plan.protocol.model.think_open[1], plan.protocol.model.think_close[1]

    def leaves_open(task_id: str) -> bool:
        ids = prompts[task_id].token_ids if task_id in prompts else ()
        return [token for token in ids if token in (open_id, close_id)] == [open_id]

    yield every("prompts_that_leave_thinking_open", plan.task_ids, leaves_open)
