"""Do enough of the scored answers parse?"""

from gatepost.gate import Check, Checks, Evidence, Outcome, Reach, SampleSize, gate, minimum_count, share


def _check(name: str, parsed: int | None, rows: int, limit: float) -> Check:
    return share(name, parsed, rows, ">=", limit)


def _reach(size: SampleSize, *, min_parse_rate: float) -> list[Reach]:
    def passes(count: int) -> bool:
        return _check("parse_rate", count, size.rows, min_parse_rate).outcome is Outcome.PASS

    return [minimum_count("min_parse_rate", size.rows, passes)]


@gate(version=1, reads=["scores"], role="adequacy", reach=_reach)
def parse_rate(evidence: Evidence, *, min_parse_rate: float) -> Checks:
    """In each scored arm, the share of registered samples whose answer the task domain can parse.

    Study A's rule. A thought that did not end in time has no answer, and counts as one that does not parse: an arm must
    not look better for thinking longer.
    """
    plan, arms = evidence.plan, evidence.arm_scores
    for stage in plan.protocol.sampling_stages(plan.stage):
        scores = None if arms is None else arms[stage.arm].values()
        parsed = None if scores is None else sum(score.parsed is not None for score in scores)
        yield _check(f"parse_rate of {stage.arm or stage.name}", parsed, len(plan.keys_of(stage)), min_parse_rate)
