"""Where judgements on record and judgements made again disagree, check by check and number by number."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gatepost import jsonfile
from gatepost.errors import shortened
from gatepost.ladder import Judgement
from gatepost.verdict import JSON, Check, Verdict


@dataclass(frozen=True)
class Difference:
    """One thing in which the record and the recomputation disagree.

    Attributes:
        rung, gate: of the verdict that it concerns; ``gate`` is ``None`` where it concerns the judgement as a whole.
        what: one line for people.
    """

    rung: str | None
    gate: str | None
    what: str

    def __str__(self) -> str:
        where = "" if self.rung is None else f"[{self.rung}]"
        return shortened(f"{self.gate or 'judgement'}{where}: {self.what}")


def as_stored(judgements: Iterable[Judgement]) -> list[JSON]:
    """Judgements as documents, through the same bytes as a record, so that only meaning can differ."""
    documents = [judgement.to_json() for judgement in judgements]
    return list(jsonfile.loads(jsonfile.canonical(documents), source="judgements"))


def differences_of(recorded: Sequence[JSON], recomputed: Sequence[JSON]) -> Iterator[Difference]:
    """Every difference between the judgements on record and those made again, both as they are stored."""
    at = {judgement["rung"]: judgement for judgement in recorded}
    if len(at) != len(recorded):
        yield Difference(None, None, "two judgements are recorded at one rung")
    elif (order := [judgement["rung"] for judgement in recomputed]) != list(at) and set(order) == set(at):
        yield Difference(
            None, None, f"recorded in the order {', '.join(map(str, at))}, made in {', '.join(map(str, order))}"
        )
    for judgement in recomputed:
        yield from _judgement_differences(at.pop(judgement["rung"], {"verdicts": []}), judgement)
    yield from (Difference(rung, None, "a judgement is recorded, but not registered") for rung in at)


def _judgement_differences(recorded: JSON, recomputed: JSON) -> Iterator[Difference]:
    rung = recomputed["rung"]
    old = {verdict["gate"]: verdict for verdict in recorded["verdicts"]}
    if len(old) != len(recorded["verdicts"]):
        yield Difference(rung, None, "two verdicts of one gate are recorded")
    elif (order := [verdict["gate"] for verdict in recomputed["verdicts"]]) != list(old) and set(order) == set(old):
        yield Difference(rung, None, f"recorded in the order {', '.join(old)}, made in {', '.join(order)}")
    for verdict in recomputed["verdicts"]:
        for what in _verdict_differences(old.pop(verdict["gate"], None), verdict):
            yield Difference(rung, verdict["gate"], what)
    yield from (Difference(rung, gate, "recorded, but not registered") for gate in old)
    for field in ("outcome", "sound"):
        if recorded.get(field) != recomputed[field]:
            yield Difference(rung, None, f"{field}: recorded {recorded.get(field)}, recomputed {recomputed[field]}")


def _verdict_differences(recorded: JSON, recomputed: JSON) -> list[str]:
    if recorded is None:
        return ["registered, but not recorded"]
    if jsonfile.same(recorded, recomputed):
        return []
    before, after = Verdict.from_json(recorded), Verdict.from_json(recomputed)
    old = {check.name: check for check in before.checks}
    changed = [(old.pop(check.name, None), check) for check in after.checks]
    differences = [f"recorded {was}, recomputed {check}" for was, check in changed if not _same_check(was, check)]
    differences += [f"recorded {check}, which the gate no longer makes" for check in old.values()]
    if (before.version, before.role) != (after.version, after.role):
        differences.append(f"recorded version {before.version}, role {before.role}")
    return differences or ["its checks are the same, but their order or an outcome on record does not follow from them"]


def _same_check(recorded: Check | None, recomputed: Check) -> bool:
    return recorded is not None and jsonfile.same(recorded.to_json(), recomputed.to_json())
