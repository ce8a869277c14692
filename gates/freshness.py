"""Are the tasks new?"""

from gatepost.gate import Check, Checks, Evidence, gate

LIMIT = "exact after normalisation only"  # renamed identifiers and reworded statements are not caught


@gate(version=1, reads=["tasks"], role="validity")
def freshness(
    evidence: Evidence, *, max_record_overlap: int, max_content_overlap: int, max_program_overlap: int
) -> Checks:
    """Registered tasks are unique among themselves, and few enough of them occur in a registered parent corpus.

    Three levels. Study B published the record level only; a copy with a new id or reordered examples passes there
    and is caught by its content (marin-community/marin#6852), and a new set of examples of an old program by its
    program. Programs may repeat inside a study.
    """
    plan, recorded = evidence.plan, evidence.tasks
    known = {task.task_id: task for task in recorded.tasks} if recorded else {}
    parents = recorded.parents if recorded else ()
    tasks = [known[task_id] for task_id in plan.task_ids if task_id in known]
    n = len(plan.task_ids)
    complete = bool(n) and len(tasks) == n
    parent_names = sorted(parent.name for parent in parents) if recorded else None
    yield Check("parent_corpora", parent_names, "==", sorted(plan.protocol.parents))
    levels = {
        "record": ([task.record_fingerprint for task in tasks], [p.records for p in parents], max_record_overlap),
        "content": ([task.content_fingerprint for task in tasks], [p.contents for p in parents], max_content_overlap),
        "program": ([task.program_fingerprint for task in tasks], [p.programs for p in parents], max_program_overlap),
    }
    for level, (fingerprints, corpora, limit) in levels.items():
        if level != "program":
            copies = len(fingerprints) - len(set(fingerprints))
            yield Check(f"repeated_{level}s", copies if complete else None, "==", 0, k=copies, n=n, note=LIMIT)
        old = sum(any(fingerprint in corpus for corpus in corpora) for fingerprint in fingerprints)
        yield Check(f"{level}_overlap", old if complete else None, "<=", limit, k=old, n=n, note=LIMIT)
