"""Does a closed thought lead to a parseable answer?"""

from gatepost.gate import Check, Checks, Evidence, Outcome, Reach, SampleSize, gate, minimum_count, share


def _check(parsed: int | None, closed: int, limit: float) -> Check:
    return share("parse_rate_given_close", parsed, closed, ">=", limit)


def _reach(size: SampleSize, *, min_parse_rate: float) -> list[Reach]:
    """For a sample that closed every row: with fewer closes a count that passes is smaller, but there is one."""

    def passes(count: int) -> bool:
        return _check(count, size.rows, min_parse_rate).outcome is Outcome.PASS

    return [minimum_count("min_parse_rate", size.rows, passes)]


@gate(version=1, reads=["completions", "grades"], role="adequacy", reach=_reach)
def parse_given_close(evidence: Evidence, *, min_parse_rate: float) -> Checks:
    """The share of samples closed by the cap whose answer the task domain can parse.

    Study B's rule. Where nothing closed there is no such share, rather than one of zero; where a closed sample was
    never graded, the share is unknown.
    """
    closed, grades = evidence.closed_samples, evidence.grades
    if closed is None or grades is None or not closed.keys() <= grades.keys():
        yield _check(None, len(closed or ()), min_parse_rate)
        return
    yield _check(sum(grades[key].parsed is not None for key in closed), len(closed), min_parse_rate)
