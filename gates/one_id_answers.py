"""Is every answer one id of the loaded tokenizer?"""

from gatepost.gate import UNKNOWN_FACTS, Check, Checks, Evidence, every, gate


@gate(version=1, reads=["engine"], role="validity")
def one_id_answers(evidence: Evidence) -> Checks:
    """Every text whose id the engine was asked for resolved to exactly one id, and no two to the same one.

    Study B's aliases are one id each, so that no answer is longer than another. The thinking markers are left to
    ``model_pin``, but no answer may share an id with them.
    """
    markers = (evidence.engine or UNKNOWN_FACTS).markers
    answers = sorted(markers.keys() - evidence.plan.protocol.model.special_tokens.keys())
    yield every("answers_of_one_id", answers, lambda text: markers[text] is not None)
    ids = [token for token in markers.values() if token is not None]
    yield Check("distinct_ids", len(set(ids)) or None, "==", len(ids), k=len(set(ids)), n=len(ids))
