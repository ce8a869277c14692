"""Whatever is changed in a finished archive is caught, with the file named; and what is right stays green."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatepost import integrity, jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.errors import GatepostError
from gatepost.evidence import Row
from gatepost.ladder import Step
from gatepost.stepfiles import write_manifest
from tests.archives import Project, create_project, reseal, rewrite
from tests.faults.conftest import problem, replayed

SELECTION = Step("selection")


def test_a_faithful_archive_replays_clean(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    result = replayed(project, archive.root)
    assert (result.faithful, str(result.decision)) == (True, "decision: REPLICATED selected=32")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_anywhere_is_caught(copied: tuple[Project, Archive], data: st.DataObject) -> None:
    project, archive = copied
    files = sorted(path.relative_to(archive.root).as_posix() for path in archive.root.rglob("*") if path.is_file())
    path = archive.root / data.draw(st.sampled_from(files), label="file")
    before = path.read_bytes()
    position = data.draw(st.integers(0, len(before) - 1), label="byte")
    changed = bytearray(before)
    changed[position] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    path.write_bytes(changed)
    said = problem(project, archive.root)
    path.write_bytes(before)
    assert path.name in said


@pytest.mark.parametrize(
    "change", ["remove", "add", "rename", "truncate", "link", "append_newline", "crlf", "grow_folder"]
)
def test_a_changed_tree_is_caught(copied: tuple[Project, Archive], change: str, tmp_path: Path) -> None:
    project, archive = copied
    target = archive.root / "bound" / "first.jsonl"
    if change == "remove":
        target.unlink()
    elif change == "add":
        (target.parent / "extra.txt").write_text("x")
    elif change == "rename":
        target.rename(target.with_name("First.jsonl"))
    elif change == "truncate":
        os.truncate(target, 10)
    elif change == "link":
        target.rename(tmp_path / "elsewhere.jsonl")
        target.symlink_to(tmp_path / "elsewhere.jsonl")
    elif change == "append_newline":
        target.write_bytes(target.read_bytes() + b"\n")
    elif change == "crlf":
        target.write_bytes(target.read_bytes().replace(b"\n", b"\r\n"))
    else:
        (archive.root / "notes").mkdir()
    said = problem(project, archive.root)
    assert {"add": "extra.txt", "rename": "irst.jsonl", "grow_folder": "notes"}.get(change, "first.jsonl") in said


def test_line_endings_are_diagnosed_and_nothing_is_rewritten(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    target = archive.root / "bound" / "first.jsonl"
    target.write_bytes(target.read_bytes().replace(b"\n", b"\r\n"))
    before = target.read_bytes()
    archive.write_catalog()
    assert "only line endings differ: mark frozen files as -text" in problem(project, archive.root)
    assert target.read_bytes() == before


def test_a_linked_folder_is_refused_though_its_bytes_are_right(copied: tuple[Project, Archive], tmp_path: Path) -> None:
    project, archive = copied
    (archive.root / "bound").rename(tmp_path / "moved")
    (archive.root / "bound").symlink_to(tmp_path / "moved")
    assert "bound" in problem(project, archive.root)
    assert "symbolic link" in problem(project, archive.root)


def test_a_rolled_back_archive_shows_against_a_root_noted_elsewhere(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.step(archive)
    project.step(archive)
    earlier = shutil.copytree(archive.root, tmp_path / "earlier" / archive.root.name)
    project.step(archive)
    noted = archive.catalog()["root"]
    assert integrity.verify(archive, expected_root=noted) == []
    assert integrity.verify(Archive(earlier)) == [], "nothing inside a folder proves that it is the newest"
    with pytest.raises(GatepostError, match="rolled back"):
        integrity.verify(Archive(earlier), expected_root=noted)


Change = Callable[[list[Row]], list[Row]]
ROW_CHANGES: dict[str, tuple[Change, str]] = {
    "a row deleted": (lambda rows: rows[:-1], "rows.parquet: holds nothing where first-3/2 is registered"),
    "a row added": (
        lambda rows: [*rows, changed(rows[-1], sample_index=99)],
        "rows.parquet: holds first-3/99 where nothing is registered",
    ),
    "a row doubled": (lambda rows: [*rows, rows[0]], "rows.parquet: holds first-0/0 where nothing is registered"),
    "two rows swapped": (
        lambda rows: [rows[1], rows[0], *rows[2:]],
        "rows.parquet: holds first-0/1 where first-0/0 is",
    ),
    "all rows deleted": (lambda rows: [], "rows.parquet: holds nothing where first-0/0 is registered"),
    "a seed changed": (
        lambda rows: [changed(rows[0], seed=rows[0].seed + 1), *rows[1:]],
        "rows.parquet: first-0/0: seed is",
    ),
    "a finish reason changed": (
        lambda rows: [changed(rows[0], finish_reason="abort"), *rows[1:]],
        "complete_rows",
    ),
}


def changed(row: Row, **values: Any) -> Row:
    key = row.key._replace(**{name: values.pop(name) for name in ("task_id", "sample_index") if name in values})
    return replace(row, key=key, **values)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    """An archive whose selection also registers token accounting and seed binding."""
    project = create_project(tmp_path_factory.mktemp("strict"))
    gates = "gates.toy_closes = { version = 1, min_close_share = 0.75 }"
    more = "gates.token_accounting = { version = 1 }\ngates.seed_binding = { version = 1 }\n"
    archive = project.freeze(edit=lambda text: text.replace(gates, more + gates, 1))
    project.run(archive)
    return project, archive.root


@pytest.mark.parametrize("name", ROW_CHANGES)
def test_changed_rows_are_caught_even_under_new_digests(
    strict: tuple[Project, Path], tmp_path: Path, name: str
) -> None:
    """The manifest, receipt, selection and catalog are all made anew, as somebody would who knows how."""
    project, root = strict
    archive = Archive(shutil.copytree(root, tmp_path / root.name))
    change, check = ROW_CHANGES[name]
    folder = archive.step_folder(SELECTION)
    rows = change(list(tables.read_rows(folder / "rows.parquet")))
    for file in ("rows.parquet", "rows.json"):
        (folder / file).unlink()
    tables.write_rows(folder / "rows.parquet", rows)
    manifest = write_manifest(folder, archive.protocol, SELECTION, rows)
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=manifest))
    reseal(archive)
    assert check in problem(project, archive.root)


def test_changed_rows_under_the_old_manifest_are_caught_by_both_digests(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    folder = archive.step_folder(SELECTION)
    rows = list(tables.read_rows(folder / "rows.parquet"))
    (folder / "rows.parquet").unlink()
    tables.write_rows(folder / "rows.parquet", rows[::-1])
    archive.write_catalog()
    assert "rows.json bound" in problem(project, archive.root)
    manifest = jsonfile.read(folder / "rows.json")
    entry = next(entry for entry in manifest["files"] if entry["path"] == "rows.parquet")
    data = (folder / "rows.parquet").read_bytes()
    entry.update(sha256=jsonfile.digest(data).removeprefix("sha256:"), size_bytes=len(data))
    jsonfile.replace(folder / "rows.json", jsonfile.canonical(manifest))
    digest = jsonfile.digest((folder / "rows.json").read_bytes())
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=digest))
    reseal(archive)
    assert "field rows_digest" in problem(project, archive.root)


def edit_protocol(archive: Archive, change: Callable[[dict[str, Any]], None]) -> None:
    rewrite(archive.root / "protocol.json", change)


def lower(protocol: dict[str, Any]) -> None:
    protocol["stages"][1]["gates"]["toy_closes"]["thresholds"]["min_close_share"] = 0.5


def swap(protocol: dict[str, Any]) -> None:
    first, second = (stage["gates"]["toy_closes"]["thresholds"] for stage in protocol["stages"][1:])
    second["min_close_share"] = 0.9
    first["min_close_share"], second["min_close_share"] = second["min_close_share"], first["min_close_share"]


@pytest.mark.parametrize("change", [lower, swap])
def test_a_changed_threshold_is_caught_whatever_is_rewritten_after_it(
    copied: tuple[Project, Archive], change: Callable[[dict[str, Any]], None]
) -> None:
    project, archive = copied
    edit_protocol(archive, change)
    assert "protocol.json" in problem(project, archive.root)
    # With every record moved over to the new digest, the limits in the receipts still give it away.
    digest = jsonfile.digest((archive.root / "protocol.json").read_bytes())
    rewrite(archive.root / "log" / "0001.json", lambda event: event.update(detail=digest))
    previous = None
    for path in sorted((archive.root / "log").iterdir()):
        rewrite(path, lambda event, previous=previous: event.update(protocol=digest, previous=previous))
        previous = jsonfile.digest(path.read_bytes())
    for folder in sorted((archive.root / "steps").iterdir()):
        for name in ("session.json", "preflight.json"):
            if (folder / name).exists():
                rewrite(folder / name, lambda record: record.update(protocol=digest))
        manifest = jsonfile.read(folder / "rows.json")
        for entry in manifest["files"]:
            data = (folder / entry["path"]).read_bytes()
            entry.update(sha256=jsonfile.digest(data).removeprefix("sha256:"), size_bytes=len(data))
        manifest["protocol"] = digest
        jsonfile.replace(folder / "rows.json", jsonfile.canonical(manifest))
        bound = jsonfile.digest((folder / "rows.json").read_bytes())
        rewrite(folder / "receipt.json", lambda receipt, bound=bound: receipt.update(protocol=digest, manifest=bound))
    forged = Archive(archive.root)
    reseal(forged)
    rewrite(archive.root / "catalog.json", lambda catalog: catalog.update(protocol=digest))
    assert "recorded close_share" in problem(project, archive.root)


def test_replaying_under_another_protocol_is_caught(finished: tuple[Project, Path], tmp_path: Path) -> None:
    project, root = finished
    other = project.freeze("other", think_tokens=(11, 20))
    mixed = Archive(shutil.copytree(other.root, tmp_path / "other"))
    shutil.copytree(root / "steps" / "design", mixed.root / "steps" / "design")
    mixed.write_catalog()
    said = problem(project, mixed.root)
    assert "receipt.json" in said
    assert "field protocol" in said


def test_a_receipt_that_was_never_open_is_caught(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.run(archive)
    shutil.rmtree(archive.root / "steps" / "design")
    archive.write_catalog()
    assert "never authorised" in problem(project, archive.root)
