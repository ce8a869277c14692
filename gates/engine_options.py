"""Did the engine resolve the options that were registered?"""

from gatepost.gate import UNKNOWN_FACTS, Check, Checks, Evidence, gate

REPORTED = ("device", "dtype", "attention", "use_cache", "max_model_len")
"""Options that every engine can read back from what it constructed."""


@gate(version=1, reads=["engine"], role="validity")
def engine_options(evidence: Evidence) -> Checks:
    """Each registered option that an engine reports has the registered value after construction.

    A requested option proves nothing: engines fall back without a word (study A asked for 19 and got 16). The options
    are those of the rung whose engine samples.
    """
    registered, facts = evidence.plan.engine_options, evidence.engine or UNKNOWN_FACTS
    for option in REPORTED:
        if option in registered:
            yield Check(option, getattr(facts, option), "==", registered[option])
