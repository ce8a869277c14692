"""Did the engine resolve exactly the registered CUDA graphs, and do they cover every decode step?"""

from gatepost.gate import JSON, UNKNOWN_FACTS, Check, Checks, Evidence, count_of, counts_of, gate

FULL_MODES = ["FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"]
"""Graph modes in which a step that only decodes can run as one graph."""


@gate(version=1, reads=["engine"], role="validity")
def capture_resolution(evidence: Evidence) -> Checks:
    """The constructed engine captured the registered sizes and no others, and has a full graph for each decode width.

    Study A's rule. A maximum alone resolves to the engine's own list, which can end below it without a word (19 asked,
    16 resolved), and a batched-token limit cuts an explicit one (vllm-project/vllm#37865). With data parallelism a step
    takes the lowest mode of any rank (vllm-project/vllm#34102); without that mode on record, or with a number of ranks
    that is none, nothing is certified.
    """
    plan, facts = evidence.plan, evidence.engine or UNKNOWN_FACTS
    options, graphs, scheduler = plan.engine_options, facts.cuda_graphs or {}, facts.scheduler
    registered = counts_of(options, "cudagraph_capture_sizes") or []
    asked = max(registered, default=count_of(options, "max_cudagraph_capture_size"))
    resolved, widths = counts_of(graphs, "resolved_capture_sizes"), plan.decode_widths(scheduler)
    yield Check("capture_sizes", resolved, "==", registered, note=_difference(graphs, {*registered, asked}, resolved))
    yield Check("largest_capture_size", graphs.get("resolved_max"), "==", asked)
    yield Check("graph_mode", graphs.get("mode"), "in", FULL_MODES)
    yield Check("decode_mode", graphs.get("decode_mode"), "==", "FULL")
    uncovered = None
    # Where the engine says which widths lack a graph, that counts too: a list is a setting, a graph its effect.
    told = [] if graphs.get("uncovered_decode_widths") is None else counts_of(graphs, "uncovered_decode_widths")
    if resolved is not None and widths is not None and told is not None:
        uncovered = [width for width in widths if width > max(resolved, default=0) or width in told]
    yield Check("uncovered_decode_widths", uncovered, "==", [], note="in tokens a step")
    if options.get("enable_lora"):
        yield _adapters(graphs, resolved or [], count_of(options, "max_loras"))
    live, asked_for = (scheduler or {}).get("data_parallel_size", 1), options.get("data_parallel_size")
    sides = [live, 1 if asked_for is None else asked_for]  # a registered null is not passed on
    if not all(type(side) is int and side >= 1 for side in sides):
        yield Check("data_parallel_size", None, ">=", 1, note=f"resolved {live!r}, registered {asked_for!r}")
    elif (ranks := max(sides)) > 1:
        yield Check("synchronised_step_mode", graphs.get("synchronised_step_mode"), "==", "FULL", note=f"{ranks} ranks")


def _difference(graphs: JSON, expected: set[int | None], resolved: list[int] | None) -> str:
    requested = f"requested {graphs.get('requested_capture_sizes')}, maximum {graphs.get('requested_max')}"
    missing = sorted(size for size in expected if size is not None and size not in (resolved or []))
    return f"{requested}; resolved {resolved}, maximum {graphs.get('resolved_max')}; missing {missing}"


def _adapters(graphs: JSON, sizes: list[int], most: int | None) -> Check:
    """Each size is captured once for each number of active adapters; a step takes the next larger case."""
    cases = counts_of(graphs, "adapter_cases")
    note = f"{len(sizes)} sizes for each of the cases {cases}; arms with and without adapters run different graphs"
    return Check("largest_adapter_case", max(cases) if cases else None, ">=", most, note=note)
