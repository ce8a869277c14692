"""How did thinking end?"""

from gatepost.gate import Check, Checks, Ending, Evidence, Reach, Sample, SampleSize, gate, maximum_count


def _reach(size: SampleSize, *, max_irregular_rows: int) -> list[Reach]:
    return [maximum_count("max_irregular_rows", size.rows, lambda count: count <= max_irregular_rows)]


@gate(version=1, reads=["completions"], role="adequacy", reach=_reach)
def close_classification(evidence: Evidence, *, max_irregular_rows: int) -> Checks:
    """Few enough registered rows end their thinking in a way that the study's rates cannot count.

    Irregular are a close outside thinking, a second open, a stop inside thinking that is no registered stop id, and a
    prompt that had closed thinking already; and a row that is missing or not complete. No close within the budget and
    an end of sequence inside thinking are regular: they are what natural close is about. A missing close is thus
    several different things (vllm-project/vllm#35230).
    """
    n, samples = len(evidence.plan.keys), evidence.complete_samples
    if samples is None or not n:
        yield Check("irregular_rows", None, "<=", max_irregular_rows, n=n, note="no samples recorded or registered")
        return
    irregular = n - sum(_regular(sample) for sample in samples.values())
    endings = [sample.continuation.ending for sample in samples.values()]
    note = ", ".join(f"{ending} {endings.count(ending)}" for ending in Ending)
    yield Check("irregular_rows", irregular, "<=", max_irregular_rows, k=irregular, n=n, note=note)


def _regular(sample: Sample) -> bool:
    found = sample.continuation
    strays = found.orphan_closes or found.reopened or found.nested_opens
    return found.prompt_open and not strays and found.ending is not Ending.STOPPED_INSIDE
