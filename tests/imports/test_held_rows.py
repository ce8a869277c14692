"""For those who hold the rows of study A: they are judged, and have to give the published counts.

The rows are made here, with as many loops, unresolved samples and cut answers as the publication says.
"""

import contextlib
import json
import os
import socket
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from gatepost.archive import Archive
from gatepost.audit.claims import SHOWN, read_claims, require_met, shown
from gatepost.audit.foreign import Foreign
from gatepost.audit.jsonl import read_rows
from gatepost.audit.verified_macro import import_run
from gatepost.errors import DataError
from gatepost.gatefiles import Gates
from gatepost.judge import judge
from gatepost.plan import Plan
from gatepost.record import Record, Row
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
        text = replay_text(result)
        assert "those bytes were not read" in text
        assert "claimed and met: samples 48" in text
        assert "claimed, and shown by no row: generation_seconds" in text


def test_other_rows_are_refused(held: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (held / "probe@49152.jsonl").read_bytes().splitlines()]
    lines[0]["token_ids"][:49152] = range(1000, 1000 + 49152)  # no loop any more
    write_rows(tmp_path / "rows", "probe@49152", lines)
    source = write(tmp_path / "source", documents(HELD))
    with pytest.raises(DataError, match="unresolved_cap_contacts: these rows give 4, published are 3"):
        import_run(source, tmp_path / "receipts", rows=tmp_path / "rows")
    assert not list((tmp_path / "receipts").iterdir())


def _folder(path: Path) -> None:
    path.mkdir()


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound, contextlib.chdir(path.parent):
        bound.bind(path.name)


NO_ROWS: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: None, "does not exist"),
    "a pipe": (os.mkfifo, "is not a regular file"),
    "a folder": (_folder, "is not a regular file"),
    "a device behind a link": (_device, "is a symbolic link, expected a regular file"),
    "a dangling link": (lambda path: path.symlink_to("nowhere"), "is a symbolic link"),
    "a socket": (_socket, "is a socket, expected a regular file"),
}


@pytest.mark.parametrize("name", NO_ROWS)
def test_what_is_no_file_of_rows_is_refused_by_name(tmp_path: Path, name: str) -> None:
    make, message = NO_ROWS[name]
    path = tmp_path / "probe@49152.jsonl"
    make(path)
    source = write(tmp_path / "source", documents())
    with pytest.raises(DataError, match=rf"^{path}: {message}"):
        import_run(source, tmp_path / "receipts", rows=tmp_path)
    assert not list((tmp_path / "receipts").iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt_tokens": 989}, "smoke-000/0: prompt_tokens is 989, published are 990"),
        ({"task_id": "smoke-099"}, "smoke-099/0: task_id is that of no published prompt"),
        ({}, "samples: these rows give 1, published are 48; "),
    ],
)
def test_rows_of_other_prompts_are_refused(tmp_path: Path, change: Document, message: str) -> None:
    row = {"task_id": "smoke-000", "sample_index": 0, "seed": 1, "prompt_tokens": 990, "token_ids": [5, 248044]}
    write_rows(tmp_path / "rows", "probe@49152", [{**row, "finish_reason": "stop", **change}])
    source = write(tmp_path / "source", documents())
    with pytest.raises(DataError, match=rf"^{tmp_path}/rows/probe@49152.jsonl: {message}"):
        import_run(source, tmp_path / "receipts", rows=tmp_path / "rows")
    assert not list((tmp_path / "receipts").iterdir())


def test_a_pipe_for_the_folder_of_rows_is_refused_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows")
    source = write(tmp_path / "source", documents())
    with pytest.raises(DataError, match=r"rows/probe@49152.jsonl: cannot be read: Not a directory"):
        import_run(source, tmp_path / "receipts", rows=tmp_path / "rows")
    assert not list((tmp_path / "receipts").iterdir())


def test_a_count_that_the_rows_do_not_show_is_refused(held: Path, tmp_path: Path) -> None:
    """Claims that fit one another, and not these rows: all 48 were closed by force, at the boundary."""
    published = documents(HELD)
    published["audits"]["49k"]["termination"] |= {"forced_interventions": 47, "stage1_length_finishes": 47}
    message = (
        r"probe@49152.jsonl: forced_interventions: these rows give 48, published are 47; "
        r"stage1_length_finishes: these rows give 48, published are 47$"
    )
    with pytest.raises(DataError, match=message):
        import_run(write(tmp_path / "source", published), tmp_path / "receipts", rows=held)
    assert not list((tmp_path / "receipts").iterdir())


class First(NamedTuple):
    """The first probe: what was registered, the rows that are held, and what they show."""

    plan: Plan
    rows: tuple[Row, ...]
    shown: Document


def show(plan: Plan, rows: tuple[Row, ...]) -> Document:
    judgement = judge(Record(plan, rows=rows), lambda entry: Gates().of(entry, where=entry.name))
    return dict(shown(judgement, plan, rows))


@pytest.fixture(scope="session")
def first(held: Path, tmp_path_factory: pytest.TempPathFactory) -> First:
    folder = tmp_path_factory.mktemp("shown")
    plan = plan_at(import_run(write(folder / "source", documents(HELD)), folder / "receipts"), HELD[0])
    rows = tuple(read_rows(held / "probe@49152.jsonl"))
    return First(plan, rows, show(plan, rows))


def test_rows_show_every_count_and_no_time(first: First) -> None:
    claims = read_claims(Foreign("audit.json", documents(HELD)["audits"]["49k"]))
    assert first.shown == {name: claims[name] for name in SHOWN}
    assert set(claims) - set(SHOWN) == {"generation_seconds"}


def test_rows_of_every_kind_are_counted(first: First) -> None:
    """One closes itself in the last slot, one early with an answer that was begun anew, one early and is done."""
    rows, close, budget = first.rows, 248069, HELD[0].budget
    natural = {"stage_two_seed": None, "stage_one_finish_reason": None, "injected_start": None, "injected_tokens": 0}
    last = array("i", [*range(1000, 1000 + budget - 1), close, 7, 248044])
    early = array("i", [5, close, 7, 248044])
    changed = (
        replace(rows[0], token_ids=last, finish_reason="stop", **natural),  # type: ignore[arg-type]
        replace(rows[1], token_ids=early, finish_reason="stop", injected_tokens=0),
        replace(rows[2], token_ids=early, finish_reason="stop", **natural),  # type: ignore[arg-type]
    )
    before, after = first.shown, show(first.plan, (*changed, *rows[3:]))
    assert (
        {name: after[name] for name in SHOWN if after[name] != before[name]}
        == {
            "forced_interventions": 45,
            "reasoning_boundary_contacts": 46,
            "periodic_loop_contacts": 42,
            "unresolved_cap_contacts": 4,
            "answer_restarts_after_natural_close": 1,
            "stage1_length_finishes": 46,  # the one begun anew says that its first stage was cut
            "period_tokens": [5] * 42,
            "sampled_tokens": before["sampled_tokens"]
            - sum(row.sampled_tokens for row in rows[:3])
            + budget
            + 2
            + 4
            + 4,
        }
    )


@pytest.mark.parametrize("name", SHOWN)
def test_each_count_has_to_be_met(first: First, name: str) -> None:
    given = first.shown
    require_met(given, {**given, "generation_seconds": 1.0}, source="rows.jsonl")
    other = given[name][:-1] if name == "period_tokens" else given[name] + 1
    with pytest.raises(DataError, match=rf"^rows.jsonl: {name}: these rows give .*, published are .*$"):
        require_met(given, {**given, name: other}, source="rows.jsonl")
