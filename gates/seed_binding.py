"""Was each sample drawn with its registered seed?"""

from gatepost.gate import Check, Checks, Evidence, RowKey, every, gate


@gate(version=1, reads=["token_ids"], role="validity")
def seed_binding(evidence: Evidence) -> Checks:
    """Every registered row stores the seed that is derived from its ids, whatever its position in the file."""
    plan, rows = evidence.plan, evidence.registered_rows
    if rows is None or plan.stage.base_seed is None:
        yield Check("rows_with_derived_seed", None, "==", 1.0, note="no rows recorded or no base seed registered")
        return

    def bound(key: RowKey) -> bool:
        seeds, row = plan.seeds(key), rows.get(key)
        if seeds is None or row is None:
            return False
        return row.seed == seeds.first and row.stage_two_seed in (None, seeds.second)

    yield every("rows_with_derived_seed", plan.keys, bound)
