"""For those who hold the rows of study A: they are judged, and have to give the published counts.

The rows are made here, with as many loops, unresolved samples and cut answers as the publication says.
"""

import json
from pathlib import Path

import pytest

from gatepost.archive import Archive
from gatepost.audit.verified_macro import import_run
from gatepost.errors import DataError
from gatepost.gatefiles import Gates
from gatepost.plan import Plan
from gatepost.records import plan_of
from gatepost.replay import replay
from gatepost.report import replay_text
from tests.published_macro import PROBES, Document, Published, documents, write


def plan_at(archive: Archive, probe: Published) -> Plan:
    protocol = archive.protocol
    rung = protocol.rung(str(probe.budget))
    return plan_of(archive, protocol.stage("probe"), rung, recorded_digest=protocol.digest)


def rows_of(plan: Plan, probe: Published) -> list[Document]:
    """Rows with the published counts: loops first, the rest counts on; the last have answers at their limit."""
    close, lines = list(plan.protocol.force_close_ids), []
    spare = probe.sampled - 48 * probe.budget - 512 * probe.answer_limit
    lengths = _shares(spare, 48 - probe.answer_limit) + [512] * probe.answer_limit
    for index, key in enumerate(plan.keys):
        prompt, seeds = 990 - index // 4, plan.seeds(key)
        assert seeds is not None
        if index < len(probe.periods):
            thinking = (list(range(1000, 1000 + probe.periods[index])) * probe.budget)[: probe.budget]
        else:
            thinking = list(range(1000, 1000 + probe.budget))
        cut = lengths[index] >= 512
        answer = [7] * lengths[index] if cut else [*[7] * (lengths[index] - 1), 248044]
        lines.append(
            {
                "task_id": key.task_id,
                "sample_index": key.sample_index,
                "seed": seeds.first,
                "prompt_tokens": prompt,
                "token_ids": [*thinking, *close, *answer],
                "finish_reason": "length" if cut else "stop",
                "stage_two_seed": seeds.second,
                "stage_one_finish_reason": "length",
                "injected_start": probe.budget,
                "injected_tokens": len(close),
                "reprefilled_tokens": prompt + probe.budget + len(close),
            }
        )
    return lines


def _shares(total: int, parts: int) -> list[int]:
    return [total // parts + (index < total % parts) for index in range(parts)]


def write_rows(folder: Path, name: str, lines: list[Document]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


HELD = tuple(probe._replace(periods=[3, 1909, *[5] * 43]) for probe in PROBES)
"""The same with three unresolved samples each: the search through all periods of one takes most of the time."""


@pytest.fixture(scope="session")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of both probes, made so that they give their counts."""
    folder = tmp_path_factory.mktemp("held")
    imported = import_run(write(folder / "source", documents()), folder / "receipts")
    for probe in HELD:
        write_rows(folder / "rows", f"probe@{probe.budget}", rows_of(plan_at(imported, probe), probe))
    return folder / "rows"


def test_with_the_rows_the_ladder_ends_where_the_published_one_did(held: Path, tmp_path: Path) -> None:
    archive = import_run(write(tmp_path / "source", documents(HELD)), tmp_path / "receipts", rows=held)
    result = replay(archive.root, gates=Gates(), studies=[])
    assert result.faithful
    assert (result.decision.label, result.decision.rung) == ("NO_ADEQUATE_RUNG", None)
    selection = json.loads((archive.root / "selection.json").read_bytes())
    assert (selection["pass"], selection["selected"]) == (False, None)
    for step, probe in zip(result.steps, HELD, strict=True):
        (judgement,) = step.judgements
        verdicts = {verdict.gate: verdict for verdict in judgement.verdicts}
        assert {str(verdicts[name].outcome) for name in ("token_accounting", "forced_close", "kv_fit")} == {"pass"}
        counts = {check.name: check.k for check in verdicts["termination"].checks}
        loops = len(probe.periods)
        assert counts == {
            "complete_rows": 48, "unresolved_share": 48 - loops, "answer_limit_share": probe.answer_limit,
            "loop_share": loops,
        }  # fmt: skip
        assert "those bytes were not read" in replay_text(result)


def test_other_rows_are_refused(held: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (held / "probe@49152.jsonl").read_bytes().splitlines()]
    lines[0]["token_ids"][:49152] = range(1000, 1000 + 49152)  # no loop any more
    write_rows(tmp_path / "rows", "probe@49152", lines)
    source = write(tmp_path / "source", documents(HELD))
    with pytest.raises(DataError, match="unresolved_cap_contacts: these rows give 4, published are 3"):
        import_run(source, tmp_path / "receipts", rows=tmp_path / "rows")
    assert not list((tmp_path / "receipts").iterdir())


def test_rows_that_are_not_there_are_missed(tmp_path: Path) -> None:
    source = write(tmp_path / "source", documents())
    with pytest.raises(DataError, match=r"probe@49152.jsonl: cannot be read: No such file"):
        import_run(source, tmp_path / "receipts", rows=tmp_path)
    assert not list((tmp_path / "receipts").iterdir())
