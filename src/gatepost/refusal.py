"""How an attempt that ended without a receipt is told of: ``refused`` if its preflight says so, ``failed`` if not."""

from pathlib import Path

from gatepost import jsonfile, schema
from gatepost.errors import GatepostError
from gatepost.ladder import Judgement, Step
from gatepost.verdict import Outcome


def refusal_text(step: Step, judgement: Judgement) -> str:
    """What the gates before generation refused, a line for each check that did not pass."""
    lines = [f"{step}: refused before generation"]
    for verdict in judgement.verdicts:
        lines += [f"  {verdict.gate}: {check}" for check in verdict.checks if check.outcome is not Outcome.PASS]
        lines += [] if verdict.checks else [f"  {verdict.gate}: had nothing to check, which is inconclusive"]
    return "\n".join(lines)


def refusal_detail(step: Step, judgement: Judgement) -> str:
    """The same for the history, in one line. ``judgement`` is one that was read back from a record."""
    return refusal_text(step, judgement).replace("\n", ";")


def ending(folder: Path, step: Step, otherwise: str) -> tuple[str, str]:
    """The event that closes an attempt, and its detail, by what its preflight on disk says.

    However a run ended after it wrote down a refusal, killed or for another error, it was refused.

    Args:
        folder: of the attempt.
        otherwise: the detail of a failure, which it is where no preflight can be read.
    """
    path = folder / "preflight.json"
    if not path.exists():
        return "failed", otherwise
    try:
        document = jsonfile.read_canonical(path)
        schema.validate(document, kind="preflight", source=str(path))
    except GatepostError:
        return "failed", otherwise
    judgement = Judgement.from_json(document["judgement"])
    passed = judgement.outcome is Outcome.PASS
    return ("failed", otherwise) if passed else ("refused", refusal_detail(step, judgement))
