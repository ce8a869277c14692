"""Was each sample drawn with its registered seed?"""

from gatepost.gate import Check, Checks, Evidence, child_seed, every, gate


@gate(version=1, reads=["token_ids"], role="validity")
def seed_binding(evidence: Evidence) -> Checks:
    """Every registered row stores the seed that is derived from its ids, whatever its position in the file."""
    plan, rows, base = evidence.plan, evidence.registered_rows, evidence.plan.stage.base_seed
    if rows is None or base is None:
        yield Check("rows_with_derived_seed", None, "==", 1.0, note="no rows recorded or no base seed registered")
        return
    yield every(
        "rows_with_derived_seed", plan.keys, lambda key: key in rows and rows[key].seed == child_seed(base, *key)
    )
