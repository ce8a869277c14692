"""Does thinking end at this rung, or does it run into a limit?"""

from gatepost.gate import (
    Check,
    Checks,
    Evidence,
    Period,
    Reach,
    SampleSize,
    count_of,
    gate,
    loop_certificate,
    maximum_count,
    share,
    tail_period,
)


def _reach(size: SampleSize, **limits: float) -> list[Reach]:
    unresolved, answers, loops = (limits[f"max_{kind}_share"] for kind in ("unresolved", "answer_limit", "loop"))
    return [
        maximum_count("max_unresolved_share", size.rows, lambda count: count / size.rows < unresolved),
        maximum_count("max_answer_limit_share", size.rows, lambda count: count / size.rows < answers),
        maximum_count("max_loop_share", size.rows, lambda count: count / size.rows <= loops),
    ]


@gate(version=1, reads=["completions"], role="adequacy", reach=_reach)
def termination(
    evidence: Evidence,
    *,
    tail_tokens: int,
    max_period_tokens: int,
    min_match_rate: float,
    contact_margin_tokens: int,
    answer_limit_tokens: int,
    max_unresolved_share: float,
    max_answer_limit_share: float,
    max_loop_share: float,
) -> Checks:
    """Few enough registered samples touch a limit: in a loop, unresolved, or with an answer that was cut.

    Study A's rule, from ids and counts alone. A sample that was closed by force, or came within the margin of the
    budget, is a loop if its last thinking ids repeat, and unresolved otherwise, however nearly they do
    (vllm-project/vllm#55420). No other sample is searched: a table of zeros repeats too (vllm-project/vllm#53305). A
    row that is missing or not complete leaves the answer open.
    """
    plan, samples, complete = evidence.plan, evidence.registered_samples, evidence.complete_samples
    n, cap, context = len(plan.keys), plan.max_think_tokens, count_of(plan.engine_options, "max_model_len")
    if samples is None or complete is None or cap is None or not n:
        yield Check("complete_rows", None, "==", n, n=n, note="no samples recorded or registered")
        return
    contacts = [key for key, sample in samples.items() if sample.touches_budget(cap, contact_margin_tokens)]
    cut = [key for key, sample in samples.items() if sample.touches_answer_limit(cap, answer_limit_tokens, context)]
    periods, repeated, unresolved = list[int](), 0, list[Period]()
    for key in contacts:
        ids = samples[key].thinking_ids[:cap]
        loop = loop_certificate(ids, tail=tail_tokens, max_period=max_period_tokens, min_match=min_match_rate)
        if loop is None:
            found = tail_period(ids, tail=tail_tokens, max_period=max_period_tokens, min_match=min_match_rate)
            unresolved.append(found)
        else:
            periods.append(loop.period)
            repeated += loop.wasted_tokens
    natural = len(complete.keys() - {*contacts, *cut})
    note = f"{natural} natural, {len(contacts)} touched the budget"
    yield Check("complete_rows", n if len(complete) == n else None, "==", n, k=len(complete), n=n, note=note)
    # However near one comes to a loop, it stays unresolved: the rate was registered before anyone saw it.
    nearest = max(unresolved, key=lambda found: found.match_rate, default="no sample")
    yield share("unresolved_share", len(unresolved), n, "<", max_unresolved_share, note=f"closest: {nearest}")
    yield share("answer_limit_share", len(cut), n, "<", max_answer_limit_share)
    note = f"periods up to {max_period_tokens}: {sorted(periods) or 'none'}; {repeated} ids only repeat"
    yield share("loop_share", len(periods), n, "<=", max_loop_share, note=note)
