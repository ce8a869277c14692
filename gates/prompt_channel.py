"""Does every prompt leave thinking as it was registered, open or closed?"""

from gatepost.gate import Check, Checks, Evidence, every, gate


@gate(version=1, reads=["prompts"], role="validity")
def prompt_channel(evidence: Evidence) -> Checks:
    """The ids of each registered prompt hold exactly one think-open id, and no think-close id unless thinking is off.

    Study B's rule; without thinking the prompt closes the block that it opens. Judged by ids: a template that closes
    thinking by itself looks open in the output (vllm-project/vllm#35230), and a marker quoted in a task would split the
    thought at the wrong place.
    """
    plan, prompts = evidence.plan, evidence.registered_prompts
    open_id, close_id = plan.protocol.model.think_open[1], plan.protocol.model.think_close[1]
    off = plan.protocol.thinking == "no_think"
    name = "prompts_that_close_thinking" if off else "prompts_that_leave_thinking_open"
    if prompts is None:
        yield Check(name, None, "==", 1.0, note="no prompts recorded")
        return

    def as_registered(task_id: str) -> bool:
        ids = prompts[task_id].token_ids if task_id in prompts else ()
        markers = [token for token in ids if token in (open_id, close_id)]
        return markers == ([open_id, close_id] if off else [open_id])

    yield every(name, plan.task_ids, as_registered)
