"""Gates of the toy study."""

from gatepost.gate import Check, Checks, Evidence, gate, minimum_count, share


def reach_closes(size, *, min_close_share):
    yield minimum_count("min_close_share", size.rows, lambda count: count / size.rows >= min_close_share)


@gate(version=1, reads=["tasks"], role="validity")
def toy_sizes(evidence: Evidence, *, min_tasks: int) -> Checks:
    yield Check("tasks", len(evidence.tasks.tasks), ">=", min_tasks)


@gate(version=1, reads=["engine"], role="validity")
def toy_engine(evidence: Evidence, *, max_model_len: int) -> Checks:
    yield Check("max_model_len_tokens", evidence.engine.max_model_len, "==", max_model_len)


@gate(version=1, reads=["completions"], reach=reach_closes)
def toy_closes(evidence: Evidence, *, min_close_share: float) -> Checks:
    cap = evidence.plan.max_think_tokens
    closed = sum(sample.continuation.closed_at(cap) for sample in evidence.completions)
    yield share("close_share", closed, len(evidence.plan.keys), ">=", min_close_share)
