"""Was thinking closed by force where that was registered, and nowhere else?"""

from gatepost.gate import Check, Checks, Evidence, Plan, Row, every, gate


@gate(version=1, reads=["token_ids"], role="validity")
def forced_close(evidence: Evidence) -> Checks:
    """A row that used up its thinking budget got the registered close ids and a second stage; no other row did.

    Study A's policy; under every other one nothing is injected. The row's finish reason is the second stage's and
    shows nothing of this, so the ids decide (vllm-project/vllm#43708). What the second stage was fed again was neither
    sampled nor injected, and is counted apart.
    """
    plan, rows = evidence.plan, evidence.registered_rows
    for name, rule in _RULES.items():
        if rows is None:
            yield Check(name, None, "==", 1.0, n=len(plan.keys), note="no rows recorded")
        else:
            holding = {key for key, row in rows.items() if rule(row, plan)}
            yield every(name, plan.keys, holding.__contains__)


def _where_due(row: Row, plan: Plan) -> bool:
    budget, thinking = plan.sampled_think_tokens, row.token_ids[: plan.sampled_think_tokens]
    ended = {plan.protocol.model.think_close[1], *plan.protocol.sampling.stop_ids}
    used_up = len(thinking) == budget and ended.isdisjoint(thinking)
    due = budget if used_up and plan.protocol.thinking == "force_close" else None
    return row.injected_start == due


def _as_registered(row: Row, plan: Plan) -> bool:
    if row.injected_start is None:
        return row.injected_tokens == 0
    end = row.injected_start + row.injected_tokens
    return tuple(row.token_ids[row.injected_start : end]) == plan.protocol.force_close_ids


def _second_stage_as_due(row: Row, plan: Plan) -> bool:
    second = (row.stage_one_finish_reason, row.reprefilled_tokens)
    if row.injected_start is None:
        return row.stage_two_seed is None and second == (None, 0)
    fed = row.injected_start + row.injected_tokens
    return row.stage_two_seed is not None and second == ("length", row.prompt_tokens + fed) and fed < len(row.token_ids)


_RULES = {
    "closed_by_force_where_due": _where_due,
    "injected_ids_as_registered": _as_registered,
    "second_stages_as_due": _second_stage_as_due,
}
