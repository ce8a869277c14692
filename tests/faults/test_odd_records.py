"""Whatever an archive holds: one line that names what is wrong, never a traceback."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatepost import jsonfile
from gatepost.__main__ import main
from gatepost.archive import Archive, find_archives
from gatepost.audit import rows as tables
from gatepost.errors import DataError
from gatepost.ladder import Step
from gatepost.stepfiles import count_ids
from tests.archives import Project, create_project, rewrite
from tests.faults.conftest import problem, replayed, rewrite_history

SELECTION = Step("selection")


@pytest.mark.parametrize("claims", ["[]", "1", "null", '"x"'])
def test_claims_are_an_object(copied: tuple[Project, Archive], claims: str) -> None:
    _, archive = copied
    path = archive.step_folder(SELECTION) / "rows.parquet"
    table = pq.read_table(path)
    column = table.column_names.index("claims")
    changed = pa.array([claims] * table.num_rows)
    again = table.set_column(column, tables.ROWS.field("claims"), changed)
    pq.write_table(again, path, store_schema=False, write_page_checksum=True)
    with pytest.raises(DataError, match=r"rows.parquet: column claims: .*expected an object"):
        tables.read_rows(path)


def rename_split(protocol: dict[str, Any]) -> None:
    protocol["splits"]["third"] = protocol["splits"].pop("first")


def unbind_split(protocol: dict[str, Any]) -> None:
    protocol["splits"]["first"] = "elsewhere.jsonl"


def unreachable(protocol: dict[str, Any]) -> None:
    protocol["stages"][2]["gates"]["toy_closes"]["thresholds"]["min_close_share"] = 1.5


def forge_protocol(project: Project, change: Callable[[dict[str, Any]], None]) -> Archive:
    """Write a protocol that was never frozen, and a history that says that it was."""
    root = project.freeze().root
    rewrite(root / "protocol.json", change)
    digest = jsonfile.digest((root / "protocol.json").read_bytes())
    forged = Archive(root)
    rewrite_history(forged, lambda events: [{**event, "protocol": digest, "detail": digest} for event in events])
    return forged


@pytest.mark.parametrize(
    ("change", "said"),
    [(rename_split, "'first' is not one of second, third"), (unbind_split, "file 'elsewhere.jsonl' is not bound")],
)
def test_a_protocol_without_its_tasks_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    project = create_project(tmp_path)
    archive = forge_protocol(project, change)
    with pytest.raises(DataError, match=rf"protocol\.json: {said}"):
        project.step(archive)


def test_a_protocol_that_could_not_be_frozen_is_caught(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = forge_protocol(project, unreachable)
    project.step(archive)
    said = "protocol: could not be frozen: stage confirmation: gate toy_closes: min_close_share"
    assert said in problem(project, archive.root)


@pytest.mark.parametrize("name", ["steps/selection/rows.json", "steps/selection/rows.parquet", "selection.json"])
def test_a_file_of_holes_takes_no_memory(copied: tuple[Project, Archive], name: str) -> None:
    project, archive = copied
    os.truncate(archive.root / name, 2**42)
    assert f"{name}: is {2**42} bytes long, catalog.json lists" in problem(project, archive.root)


@pytest.mark.parametrize("version", ["a" * 5000, "../protocol/1", "1\n", ""])
def test_a_version_is_a_number(copied: tuple[Project, Archive], version: str) -> None:
    project, archive = copied
    rewrite(archive.root / "catalog.json", lambda catalog: catalog.update(schema=f"gatepost/catalog/{version}"))
    assert "catalog.json: field 'schema' is 'gatepost/catalog/" in problem(project, archive.root)


@pytest.mark.parametrize("name", ["protocol.json", "catalog.json"])
def test_a_record_of_holes_takes_no_memory(copied: tuple[Project, Archive], name: str) -> None:
    project, archive = copied
    os.truncate(archive.root / name, 2**42)
    assert f"{name}: is {2**42} bytes long, expected at most" in problem(project, archive.root)


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        (b"5", (1, 2)),
        (b"[]", (1, 2)),
        (b"null", (1, 2)),
        (b'{"token_ids": [1]}', (1, 2)),
        (b'{"request_id": [], "token_ids": [1]}', (1, 2)),
        (b'{"request_id": "b", "token_ids": 7}', (1, 2)),
        (b"[" * 100_000, (1, 2)),
        (b"\xff\xfe", (1, 2)),
        (b'{"request_id": "b", "token_ids": [1]}', (2, 3)),
    ],
)
def test_an_odd_line_ends_a_stream(tmp_path: Path, line: bytes, counted: tuple[int, int]) -> None:
    stream = tmp_path / "stream.jsonl"
    stream.write_bytes(b'{"request_id": "a", "token_ids": [1, 2]}\n' + line + b"\n")
    assert count_ids(stream) == counted


@pytest.mark.parametrize("lost", [("protocol.json",), ("protocol.json", "log"), ("protocol.json", "catalog.json")])
def test_an_archive_that_lost_its_protocol_is_found(copied: tuple[Project, Archive], lost: tuple[str, ...]) -> None:
    project, archive = copied
    whole = shutil.copytree(archive.root, archive.root.with_name("whole"))
    for name in lost:
        path = archive.root / name
        path.unlink() if path.is_file() else shutil.rmtree(path)
    assert find_archives(archive.root.parent) == [archive.root, whole]
    assert find_archives(archive.root) == [archive.root]
    assert "protocol.json: does not exist" in problem(project, archive.root)


def test_other_folders_are_no_archives(tmp_path: Path) -> None:
    for name in ("other/log", "other/src", ".writing-toy/log", ".writing-toy/bound", ".writing-toy/steps"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(DataError, match="holds no archive"):
        find_archives(tmp_path)


def options(project: Project) -> list[str]:
    return ["--gates", str(project.root / "gates"), "--studies", str(project.root / "studies")]


@pytest.mark.parametrize("prefix", ["sha256:", ""])
def test_a_root_is_taken_with_and_without_the_name_of_its_hash(copied: tuple[Project, Archive], prefix: str) -> None:
    project, archive = copied
    root = prefix + archive.catalog()["root"].removeprefix("sha256:")
    assert replayed(project, archive.root).faithful
    assert main(["replay", str(archive.root), "--root", root, *options(project)]) == 0


@pytest.mark.parametrize(
    "wrong", [["--root", "abc"], ["--root", ""], ["--gates", "nope"], ["--studies", "nope"]], ids=" ".join
)
def test_what_cannot_be_meant_is_wrong_usage(
    copied: tuple[Project, Archive], capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    _, archive = copied
    with pytest.raises(SystemExit) as caught:
        main(["replay", str(archive.root), *wrong])
    assert caught.value.code == 2
    assert f"argument {wrong[0]}" in capsys.readouterr().err


def test_a_root_is_that_of_one_archive(copied: tuple[Project, Archive], capsys: pytest.CaptureFixture[str]) -> None:
    project, archive = copied
    shutil.copytree(archive.root, archive.root.with_name("again"))
    assert main(["replay", str(archive.root.parent), "--root", "0" * 64, *options(project)]) == 1
    assert "holds 2 archives, expected exactly one" in capsys.readouterr().err
