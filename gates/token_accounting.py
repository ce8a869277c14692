"""Do the ids add up?"""

from gatepost.gate import FINISH_REASONS, Check, Checks, Evidence, Plan, Row, every, gate


@gate(version=1, reads=["token_ids", "prompts"], role="validity")
def token_accounting(evidence: Evidence) -> Checks:
    """Every registered sample is there once and in order, complete, within its budget, and ended as it says.

    How a row ended is recomputed from its ids: servers have reported rows cut at the limit as finished, and an end
    token in the very last slot is a real end (vllm-project/vllm#58228). An aborted request can come back as a
    success, so reasons other than ``stop`` and ``length`` make no row (vllm-project/vllm#57082).
    """
    plan, stored, rows = evidence.plan, evidence.token_ids, evidence.registered_rows
    if stored is None or rows is None:
        yield Check("registered_rows", None, "==", 1.0, n=len(plan.keys), note="no rows recorded")
        return
    place = {key: index for index, key in enumerate(plan.keys)}
    places = [place[row.key] for row in stored if row.key in place]
    yield every("registered_rows", plan.keys, rows.__contains__)
    yield Check("unregistered_rows", len(stored) - len(places), "==", 0)
    yield Check("rows_in_registered_order", places == sorted(places), "==", True)
    for name, rule in _RULES.items():
        holding = {key for key, row in rows.items() if rule(row, plan)}
        yield every(name, plan.keys, holding.__contains__)
    lengths = evidence.prompt_tokens
    if lengths is not None:  # a run that was published elsewhere may come without them
        fed = {key for key, row in rows.items() if row.prompt_tokens == lengths.get(key.task_id)}
        yield every("prompt_tokens_as_rendered", plan.keys, fed.__contains__)


def _complete(row: Row, plan: Plan) -> bool:
    return row.finish_reason in FINISH_REASONS


def _within_budget(row: Row, plan: Plan) -> bool:
    thinking, answer = _spent(row, plan)
    fits = thinking <= plan.sampled_think_tokens and (answer or 0) <= plan.protocol.max_answer_tokens
    return fits and row.sampled_tokens >= 1 and row.injected_tokens in (0, len(plan.protocol.force_close_ids))


def _ends_at_first_stop(row: Row, plan: Plan) -> bool:
    return not any(token in plan.protocol.sampling.stop_ids for token in row.token_ids[:-1])


def _says_how_it_ended(row: Row, plan: Plan) -> bool:
    thinking, answer = _spent(row, plan)
    if _stopped(row, plan):
        return row.finish_reason == "stop"
    cut = thinking >= plan.sampled_think_tokens if answer is None else answer >= plan.protocol.max_answer_tokens
    return cut and row.finish_reason == "length"


_RULES = {
    "complete_rows": _complete,
    "rows_within_budget": _within_budget,
    "rows_that_end_at_their_first_stop": _ends_at_first_stop,
    "finish_reasons_as_recomputed": _says_how_it_ended,
}


def _stopped(row: Row, plan: Plan) -> bool:
    return bool(row.token_ids) and row.token_ids[-1] in plan.protocol.sampling.stop_ids


def _spent(row: Row, plan: Plan) -> tuple[int, int | None]:
    """Ids sampled up to and with the first close, and after it without a final stop id; without a close, all and none.

    Injected ids were not sampled. Where the prompt closes thinking, everything is answer.
    """
    close_id, end = plan.protocol.model.think_close[1], len(row.token_ids) - _stopped(row, plan)
    if row.injected_start is not None:
        return row.injected_start, end - row.injected_start - row.injected_tokens
    if plan.protocol.thinking == "no_think":
        return 0, end
    if close_id not in row.token_ids:
        return len(row.token_ids), None
    thinking = row.token_ids.index(close_id) + 1
    return thinking, end - thinking
