"""Did the engine resolve the options that were registered?"""

from gatepost.gate import JSON, UNKNOWN_FACTS, Check, Checks, Evidence, Outcome, gate

REPORTED = ("device", "dtype", "attention", "use_cache", "max_model_len")
"""Options that every engine can read back from what it constructed."""

SCHEDULED = {
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "enable_chunked_prefill": "chunked_prefill",
    "enable_prefix_caching": "prefix_caching",
    "async_scheduling": "async_scheduling",
    "scheduling_policy": "policy",
    "tensor_parallel_size": "tensor_parallel_size",
    "data_parallel_size": "data_parallel_size",
}
"""Option -> the name under which a scheduler's facts tell what came of it."""

NOT_PASSED = ("device", "chunk_tokens")
"""Options that are no arguments of an engine."""


@gate(version=1, reads=["engine"], role="validity")
def engine_options(evidence: Evidence) -> Checks:
    """Each registered option that an engine reports has the registered value after construction.

    A requested option proves nothing: engines fall back without a word (study A asked for 19 and got 16). The options
    are those of the rung whose engine samples. What every engine can read back (``REPORTED``) has a check each. What
    the scheduler resolved (``SCHEDULED``), and the arguments that an engine says it was given, have one only where
    they are not the registered ones, or not on record. A registered null leaves such an option to the engine.
    """
    registered, facts = evidence.plan.engine_options, evidence.engine or UNKNOWN_FACTS
    for option in REPORTED:
        if option in registered:
            yield Check(option, getattr(facts, option), "==", registered[option])
    set_here = {option: value for option, value in registered.items() if value is not None}
    told = [*_resolved(set_here, facts.scheduler or {}), *_passed(set_here, facts.environment)]
    yield from (check for check in told if check.outcome is not Outcome.PASS)


def _resolved(registered: JSON, scheduler: JSON) -> Checks:
    for option, fact in SCHEDULED.items():
        if option in registered:
            yield Check(f"scheduler.{fact}", scheduler.get(fact), "==", registered[option])


def _passed(registered: JSON, environment: JSON) -> Checks:
    """The arguments, those of the compilation config among them; nothing for an engine that has no such fact."""
    if "engine_arguments" not in environment:
        return
    told = environment["engine_arguments"]
    arguments = told if isinstance(told, dict) else {}
    graphs = arguments.get("compilation_config")
    arguments = {**(graphs if isinstance(graphs, dict) else {}), **arguments}
    for option, value in registered.items():
        if option not in NOT_PASSED:
            yield Check(f"engine_arguments.{option}", arguments.get(option), "==", value)
