"""What a plan would take and where an archive stands, as text for people. Reads; never writes."""

from collections.abc import Iterator

from gatepost import runlock
from gatepost.approval import recorded, waiting
from gatepost.archive import Archive
from gatepost.ed25519 import key_text
from gatepost.errors import GatepostError
from gatepost.freeze import FrozenPlan
from gatepost.gate import Gate
from gatepost.gatefiles import Gates
from gatepost.ladder import Step, audit, steps_of
from gatepost.protocol import Protocol
from gatepost.reachability import registered_reach
from gatepost.stages import Stage
from gatepost.stepfiles import count_ids


def plan_text(plan: FrozenPlan, gates: Gates) -> str:
    """The stages of a plan with their sample sizes and largest cost, and what it takes to meet each threshold."""
    protocol = plan.protocol
    sizes = {split: len(plan.bound[path].splitlines()) for split, path in protocol.splits.items()}
    lines = [f"{protocol.id}: {protocol.document['preregistration']['question']}", f"protocol: {protocol.digest}", ""]
    lines += ["stage            scope     tasks  samples  tokens at most"]
    for stage in protocol.stages:
        tasks = sum(sizes[split] for split in stage.splits)
        tasks = min(tasks, stage.max_tasks or tasks)
        samples = tasks * stage.samples_per_task
        cost = samples * (_cap(protocol, stage) + protocol.max_answer_tokens)
        lines.append(f"{stage.name:<16} {stage.scope:<9} {tasks:>5}  {samples:>7}  {cost if samples else 0:>14}")
    lines += ["", "what it takes to meet each threshold"]
    reaches = registered_reach(protocol, lambda entry: gates.of(entry, where=protocol.id), sizes)
    return "\n".join([*lines, *(f"  {reach}" for reach in reaches)])


def _cap(protocol: Protocol, stage: Stage) -> int:
    return stage.max_think_tokens or protocol.rungs[-1].max_think_tokens


def gates_text(gates: Gates) -> str:
    """Every installed gate: its question, channels and thresholds."""
    return "\n".join(line for gate in gates.all.values() for line in _gate(gate))


def _gate(gate: Gate) -> Iterator[str]:
    yield f"{gate.name}  version {gate.version}, {gate.role}: {gate.question}"
    yield f"  reads {', '.join(sorted(gate.reads))}; takes {', '.join(gate.thresholds) or 'no thresholds'}"


def needs_accelerator(protocol: Protocol, step: Step) -> bool:
    """Whether a step starts an engine on an accelerator, as the protocol registers it; a rung may say otherwise."""
    rung = protocol.rungs[-1] if step.rung is None else protocol.rung(step.rung)
    device = {**protocol.engine["options"], **rung.engine}.get("device")
    return protocol.stage(step.stage).samples and str(device).startswith("cuda")


def live_command(archive: Archive, step: Step) -> str:
    """What runs a step: ``-m gpu`` where it starts an engine on an accelerator."""
    if needs_accelerator(archive.protocol, step):
        return f"pytest -m gpu {archive.root}"
    return f"pytest -m cpu {archive.root} --gatepost-live"


def how_to_go_on(archive: Archive, step: Step) -> str:
    """What opens a step, or runs it."""
    return waiting(archive, step) or f"run it: {live_command(archive, step)}"


def status_text(archive: Archive, *, log: bool = False) -> str:
    """Where the ladder stands, the one next step, and with ``log`` the whole history."""
    return "\n".join(_status(archive, log=log))


def approvals_text(archive: Archive) -> str:
    """Who approved which step in which words, and how many are still needed. Verify the archive before."""
    given = recorded(archive, archive.journal.read())
    lines = [f"{archive.protocol.id}  {archive.protocol.digest}"]
    for step in steps_of(archive.protocol):
        if needed := archive.protocol.approvals_needed(step.stage):
            of_this = [one for one in given if one.event.step == str(step)]
            lines.append(f"  {step}: {len(of_this)} of {needed} approvals")
            lines += [
                f"    {one.event.at}  {one.reviewer} {key_text(one.approval.key)}: {one.statement}" for one in of_this
            ]
    return "\n".join(lines if len(lines) > 1 else [*lines, "  asks for no approvals"])


def _status(archive: Archive, *, log: bool) -> Iterator[str]:
    protocol = archive.protocol
    yield f"{protocol.id}  {protocol.digest}"
    try:
        judgements = archive.judgements()
        decision = audit(protocol, judgements)
        next_step = None if decision.terminal else decision.step
        going_on = None if next_step is None else how_to_go_on(archive, next_step)
    except GatepostError as error:
        yield f"the record is not sound: {error}"
        return
    for step, judged in judgements.items():
        for judgement in judged:
            where = "" if judgement.rung is None or step.rung else f" at {judgement.rung}"
            yield f"  {step}{where}: {judgement.outcome}"
    yield str(decision) if decision.terminal else f"next step: {decision.step}"
    yield f"  {decision.reason}"
    if decision.terminal and decision.state in protocol.labels:
        label = protocol.labels[decision.state]
        yield f"  licenses: {label.licenses}"
        yield f"  does not license: {label.does_not_license}"
    events = archive.journal.read()
    if going_on is not None:
        yield f"  {going_on}"
        last = events[-1]
        if last.event in ("failed", "refused", "preflight") and last.step == str(decision.step):
            yield f"  last try: {last}"
    try:
        lock = runlock.told(archive.root)
    except GatepostError as error:
        lock = str(error)
    if lock is not None:
        yield f"  {lock}"
    for event in archive.open_attempts(events):
        open_ = f"  attempt {event.attempt} at {event.step} was started at {event.at} and never closed"
        yield open_ if lock else f"{open_}; nobody holds the archive, so the next live run records it as failed"
    for folder in archive.attempt_folders():
        if (folder / "session.json").exists():
            yield f"  {folder.name}: every sample was drawn and is kept; the next live run judges them and draws none"
        if (folder / "stream.jsonl").exists():
            samples, ids = count_ids(folder / "stream.jsonl")
            yield f"  {folder.name}: kept {ids} ids of {samples} samples; an attempt, never a row set"
    yield f"  catalog root: {archive.catalog()['root']}"
    if log:
        yield ""
        yield from (str(event) for event in events)
