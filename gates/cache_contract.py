"""Is decoding really cached?"""

from gatepost.gate import Check, Checks, Evidence, Row, gate


@gate(version=1, reads=["token_ids"], role="validity")
def cache_contract(evidence: Evidence) -> Checks:
    """The forward calls of every registered row took ``[prompt_tokens, 1, 1, ...]`` ids: one call per sampled id.

    Study B's contract. With the cache off every step reads the whole sequence again: the tokens are the same, and
    times, costs and the last bits of the logits are not (huggingface/trl#3891). After a forced close the second stage
    begins like a row of its own, with everything before it for a prompt.
    """
    keys, rows = evidence.plan.keys, evidence.registered_rows
    if rows is None or not keys:
        yield Check("cached_rows", None, "==", 1.0, n=len(keys), note="no rows recorded or registered")
        return
    unobserved = [row for row in rows.values() if row.forward_input_lengths is None]
    observed = [row for row in rows.values() if row.forward_input_lengths is not None]
    faults = [f"{key} has not one row" for key in keys if key not in rows]
    faults += [fault for row in observed if (fault := _fault(row))]
    cached = len(keys) - len(faults) - len(unobserved)
    rate = None if unobserved and not faults else cached / len(keys)
    note = "; ".join([*faults[:1], *_claimed(unobserved), *_fed(observed)])
    yield Check("cached_rows", rate, "==", 1.0, k=cached, n=len(keys), note=note)


def _due(row: Row) -> list[int]:
    if row.injected_start is None:
        return _stage(row.prompt_tokens, len(row.token_ids))
    before = row.injected_start + row.injected_tokens
    second = _stage(row.prompt_tokens + before, len(row.token_ids) - before)
    return _stage(row.prompt_tokens, row.injected_start) + second


def _stage(prefix_tokens: int, sampled_tokens: int) -> list[int]:
    return [prefix_tokens, *[1] * (sampled_tokens - 1)] if sampled_tokens > 0 else []


def _fault(row: Row) -> str | None:
    """Where the forward calls of a row first left the contract."""
    due, fed = _due(row), list(row.forward_input_lengths or ())
    for index, (expected, length) in enumerate(zip(due, fed, strict=False)):
        if length != expected:
            return f"{row.key} fed {length} ids in forward {index}, {expected} due"
    return None if len(fed) == len(due) else f"{row.key} has {len(fed)} forwards for {len(due)} sampled ids"


def _claimed(rows: list[Row]) -> list[str]:
    """What somebody else's record says of rows whose forwards nobody can see any more."""
    if not rows:
        return []
    claimed = sum(row.claims.get("cache_contract_pass") is True for row in rows)
    claim = f"cache_contract_pass {claimed}/{len(rows)} is the authors' claim, not recomputed"
    return [f"{len(rows)} rows without forward lengths", *[claim] * bool(claimed)]


def _fed(rows: list[Row]) -> list[str]:
    fed, due = sum(sum(row.forward_input_lengths or ()) for row in rows), sum(sum(_due(row)) for row in rows)
    return [f"{fed} ids fed, {due} due: overhead {fed / due:.4f}"] if due else []
