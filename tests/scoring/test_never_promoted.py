"""A probe is never promoted into a matrix, and no row crosses a rung: neither read nor, if put there, sound."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from gatepost.archive import Archive
from gatepost.audit import parquet
from gatepost.audit import rows as tables
from gatepost.errors import GatepostError
from gatepost.ladder import Step
from gatepost.stepfiles import write_manifest
from tests.archives import reseal, rewrite
from tests.scoring.study import OPEN, Study, create_study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return create_study(tmp_path)


def read_during_step(study: Study, archive: Archive, monkeypatch: pytest.MonkeyPatch, **options: Any) -> set[str]:
    """Run the open step; returns the folders of the archive from which any table was read."""
    folders: set[str] = set()

    def read_table(path: Path, schema: Any) -> Any:
        folders.add(path.parent.relative_to(archive.root).as_posix())
        return parquet.read_table(path, schema)

    with monkeypatch.context() as spied:
        spied.setattr(tables, "read_table", read_table)
        study.step(archive, **options)
    return folders


def test_a_matrix_reads_nothing_but_its_own(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = study.freeze()
    study.run(archive, until="base")
    assert read_during_step(study, archive, monkeypatch, script=OPEN) == {"attempts/0003-base@16"}
    assert read_during_step(study, archive, monkeypatch) == {"attempts/0004-probe@32"}
    assert read_during_step(study, archive, monkeypatch) == {"attempts/0005-base@32"}
    assert read_during_step(study, archive, monkeypatch) == {"attempts/0006-designed@32"}


def test_a_matrix_samples_every_row_itself(study: Study) -> None:
    """Though the arm, the tasks, the budget and the model are the probe's."""
    archive = study.freeze()
    study.run(archive, until="designed")
    probe, base = (
        tables.read_rows(archive.root / "steps" / f"{name}@16" / "rows.parquet") for name in ("probe", "base")
    )
    assert len(base) == 12
    assert {row.seed for row in probe}.isdisjoint(row.seed for row in base)


def test_evidence_that_waits_for_judging_stays_at_its_rung(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sampled once is judged again, at the step that sampled it and at no other."""
    archive = study.freeze()
    study.run(archive, until="base")
    with monkeypatch.context() as broken:
        broken.setattr("gatepost.probe.records_of", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            study.step(archive, OPEN)
    (waiting,) = archive.attempt_folders()
    assert (waiting / "session.json").exists()
    study.step(archive)
    lower = tables.read_rows(archive.root / "steps" / "base@16" / "rows.parquet")
    assert lower == tables.read_rows(waiting / "rows.parquet"), "judged again, not sampled again"
    study.run(archive, until="designed")
    upper = tables.read_rows(archive.root / "steps" / "base@32" / "rows.parquet")
    assert {row.injected_start for row in lower} == {16}
    assert {row.injected_start for row in upper} == {None}


@pytest.mark.parametrize(
    ("source", "problem"),
    [("probe@32", "rows.parquet: holds"), ("base@16", "closed_by_force_where_due")],
)
def test_rows_of_another_step_are_caught_even_under_new_digests(study: Study, source: str, problem: str) -> None:
    archive = study.freeze()
    study.run(archive, until="designed", base={"16": OPEN})
    step = Step("base", "32")
    folder = archive.step_folder(step)
    shutil.copy(archive.root / "steps" / source / "rows.parquet", folder)
    rows = tables.read_rows(folder / "rows.parquet")
    text = tables.read_text(folder / "text.parquet")
    for name in ("text.parquet", "rows.json"):
        (folder / name).unlink()
    tables.write_text(folder / "text.parquet", {row.key: text[row.key] for row in rows})
    manifest = write_manifest(folder, archive.protocol, step, rows)
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=manifest))
    reseal(archive)
    try:
        said = "\n".join(study.replay(archive).differences)
    except GatepostError as error:
        said = str(error)
    assert problem in said


@pytest.mark.parametrize("source", ["probe@32", "base@16"])
def test_a_step_under_another_name_is_refused(study: Study, source: str) -> None:
    archive = study.freeze()
    study.run(archive, until="designed", base={"16": OPEN})
    folder = archive.step_folder(Step("base", "32"))
    shutil.rmtree(folder)
    shutil.copytree(archive.root / "steps" / source, folder)
    archive.write_catalog()
    with pytest.raises(GatepostError, match=r"base@32/receipt.json: field step is"):
        study.replay(archive)
