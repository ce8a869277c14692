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
    several different things (vllm-project/vllm#35230). Forced closes are regular, and counted apart. With thinking off
    it is the other way round: the prompt has closed it, and a row that thinks anyway is irregular.
    """
    n, samples = len(evidence.plan.keys), evidence.complete_samples
    if samples is None or not n:
        yield Check("irregular_rows", None, "<=", max_irregular_rows, n=n, note="no samples recorded or registered")
        return
    off = evidence.plan.protocol.thinking == "no_think"
    irregular = n - sum(_regular(sample, off) for sample in samples.values())
    endings = [sample.continuation.ending for sample in samples.values()]
    note = ", ".join(f"{ending} {endings.count(ending)}" for ending in Ending)
    if forced := sum(bool(sample.row.injected_tokens) for sample in samples.values()):
        note += f", closed by force {forced}"
    if off:
        note += f", thinks although off {sum(bool(sample.continuation.blocks) for sample in samples.values())}"
    yield Check("irregular_rows", irregular, "<=", max_irregular_rows, k=irregular, n=n, note=note)


def _regular(sample: Sample, off: bool) -> bool:
    found = sample.continuation
    if found.orphan_closes or found.reopened or found.nested_opens or found.ending is Ending.STOPPED_INSIDE:
        return False
    return not (found.prompt_open or found.blocks) if off else found.prompt_open
