"""Can every prompt finish?"""

from gatepost.gate import UNKNOWN_FACTS, Check, Checks, Evidence, gate


@gate(version=1, reads=["engine", "prompts"], role="validity")
def prompt_envelope(evidence: Evidence, *, max_prompt_tokens: int, max_total_tokens: int) -> Checks:
    """The longest registered prompt is within its limit, and so is the sum of prompt, thinking, close and answer.

    Study A compares the sum with the live ``max_model_len``, study B with a registered total; both are required. The
    cap is the one that is sampled under, so the top rung's for a stage that samples once for all rungs.
    """
    plan, lengths = evidence.plan, evidence.prompt_tokens or {}
    context = (evidence.engine or UNKNOWN_FACTS).max_model_len
    missing = [task_id for task_id in plan.task_ids if task_id not in lengths]
    if missing or not lengths:
        longest, total, note = None, None, f"prompts not recorded exactly once: {len(missing)}"
    else:
        longest = max(lengths.values())
        total = longest + plan.reserve_tokens
        note = f"longest: {max(lengths, key=lengths.__getitem__)}"
    yield Check("longest_prompt_tokens", longest, "<=", max_prompt_tokens, note=note)
    yield Check("longest_total_tokens", total, "<=", max_total_tokens, note=note)
    yield Check("longest_total_tokens_in_live_context", total, "<=", context, note=note)
