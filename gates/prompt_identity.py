"""Are these the registered prompts?"""

from gatepost.gate import Check, Checks, Evidence, every, gate, share

_COMPARED = {
    "input_records": "input_record_sha256",
    "rendered_texts": "rendered_prompt_sha256",
    "prompt_token_ids": "prompt_token_ids_sha256",
    "prompt_tokens": "prompt_tokens",
}


@gate(version=1, reads=["prompts"], role="validity")
def prompt_identity(evidence: Evidence) -> Checks:
    """Each registered prompt is rendered once, and is record by record, text by text and id by id that of the manifest.

    Study A compares record, rendered prompt and token count with a frozen manifest before anything is sampled: a chat
    template moves with the library that renders it. Here the ids are compared too, since one text can be cut into
    other ids, and as many; the suffix that opens thinking is among them.
    """
    plan, found = evidence.plan, evidence.prompt_identities
    if plan.prompts is None or found is None:
        note = "no manifest is bound" if plan.prompts is None else "no prompts recorded"
        yield Check("prompts_in_manifest", None, "==", 1.0, note=note)
        return
    registered, rendered = plan.prompts, {prompt.task_id: prompt for prompt in found}
    names = [prompt.task_id for prompt in found]
    strangers = [name for name in names if name not in plan.task_ids]
    yield every("prompts_in_manifest", plan.task_ids, lambda task_id: task_id in registered)
    yield every("prompts_rendered_once", plan.task_ids, lambda task_id: names.count(task_id) == 1)
    beside = f"first: {strangers[0]}" if strangers else None
    yield Check("prompts_beside_those_registered", len(strangers), "==", 0, note=beside)
    for name, field in _COMPARED.items():
        values = {
            task_id: (getattr(rendered.get(task_id), field, None), getattr(registered.get(task_id), field, None))
            for task_id in plan.task_ids
        }
        differ = [task_id for task_id, (observed, limit) in values.items() if observed is None or observed != limit]
        first = "first: {}: rendered {}, registered {}".format(differ[0], *values[differ[0]]) if differ else None
        yield share(name, len(values) - len(differ), len(values), "==", 1.0, note=first)
