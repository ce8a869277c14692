"""Case i1: whatever way JSON comes in, the one strict reader reads it and refuses by name, with no overflow or hang."""

import base64
import gzip
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatepost import bundled, jsonfile, schema
from gatepost.archive import Archive
from gatepost.audit import jsonl, native_seam
from gatepost.audit import rows as tables
from gatepost.audit.absent import read_absent_rows, read_prompt_digests
from gatepost.audit.row_files import read_batches
from gatepost.audit.verified_macro import import_run as import_macro_run
from gatepost.engines.adapter import digests
from gatepost.engines.wire import decode_answer, decode_command
from gatepost.errors import DataError, GatepostError
from gatepost.ladder import Step
from gatepost.promptfile import read_manifest
from gatepost.taskfile import read_tasks
from tests import published_macro
from tests.adapters import write_adapter
from tests.archives import Project
from tests.bad_json import BAD, NO_OBJECT, SHORT
from tests.faults.conftest import Approved, problem
from tests.mutants import places

SECONDS = 5
LONGEST = 2_500
"""A message may quote what it is about, but not 10 MB of it."""


def adapter_config(path: Path) -> object:
    (folder := path.parent / "adapter").exists() or write_adapter(folder)
    (folder / "adapter_config.json").write_bytes(path.read_bytes())
    return digests(folder)


def adapter_weights(path: Path) -> object:
    (folder := path.parent / "adapter").exists() or write_adapter(folder)
    header = path.read_bytes()
    (folder / "adapter_model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    return digests(folder)


def published_seam(path: Path) -> object:
    for name in ("rows_tokens", "rows_decoded"):
        (path.parent / f"{name}.jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    return native_seam.read_run(path.parent)


def published_ladder(path: Path) -> object:
    folder = path.parent / "published"
    if not folder.exists():
        published_macro.write(folder, published_macro.documents())
    for name in sorted(folder.rglob("*catalog*.json")):
        name.write_bytes(path.read_bytes())
    return import_macro_run(folder, path.parent / "receipts")


READERS: dict[str, Callable[[Path], object]] = {
    "a record": jsonfile.read,
    "a frozen record": jsonfile.read_canonical,
    "tasks": read_tasks,
    "a manifest of prompts": read_manifest,
    "digests of prompts": read_prompt_digests,
    "rows that are absent": read_absent_rows,
    "rows to import": lambda path: list(jsonl.read_rows(path)),
    "rows to audit": lambda path: list(read_batches(path, format="jsonl")),
    "an adapter's config": adapter_config,
    "an adapter's weights": adapter_weights,
    "a published run of the seam study": published_seam,
    "a published run of the macro study": published_ladder,
    "an answer of an engine": lambda path: decode_answer(path.read_bytes()),
    "a command to an engine": lambda path: decode_command(path.read_bytes()),
}


@pytest.mark.parametrize("reader", READERS)
def test_bad_json_is_refused_by_name(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "bad.json"
    for name, (data, said) in BAD.items():
        path.write_bytes(data)
        began = time.process_time()
        with pytest.raises(GatepostError, match=re.escape(said)) as caught:
            READERS[reader](path)
        assert time.process_time() - began < SECONDS, name
        assert re.match(r"(\S*bad\.json|\S+/\S+|message)\b.*: ", str(caught.value)), "a message begins with the file"
        assert len(str(caught.value)) < LONGEST, name


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"a record", "a frozen record"}))
def test_what_is_no_record_is_refused(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "bad.json"
    for name, data in NO_OBJECT.items():
        path.write_bytes(data)
        began = time.process_time()
        with pytest.raises(GatepostError) as caught:
            READERS[reader](path)
        assert time.process_time() - began < SECONDS, name
        assert len(str(caught.value)) < LONGEST, name


DOCUMENTS = [
    "protocol.json", "catalog.json", "selection.json", "log/0001.json", "log/0008.json", "steps/selection/receipt.json",
    "steps/selection/rows.json", "steps/selection/session.json", "steps/selection/preflight.json",
]  # fmt: skip


SMALL = {name: data for name, data in NO_OBJECT.items() if len(data) < 1_000_000}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_record_of_an_archive_is_refused_by_name(copied: tuple[Project, Archive], document: str) -> None:
    project, archive = copied
    path = archive.root / document
    for name, data in {**{name: data for name, (data, _) in SHORT.items()}, **SMALL}.items():
        path.write_bytes(data)
        began = time.process_time()
        if document not in ("protocol.json", "catalog.json"):
            archive.write_catalog()
        said = problem(project, archive.root)
        assert time.process_time() - began < SECONDS, name
        assert said.startswith(f"{path}: "), name
        assert BAD.get(name, (b"", ""))[1] in said
        assert len(said) < LONGEST, name


def test_what_was_signed_is_read_strictly(approved: Approved) -> None:
    path = sorted((approved.archive.root / "approvals").iterdir())[0]
    envelope = jsonfile.read(path)
    for data, said in SHORT.values():
        envelope["payload"] = base64.b64encode(data).decode()
        path.write_bytes(jsonfile.canonical(envelope))
        approved.archive.write_catalog()
        assert f"{path}: payload: " in (found := problem(approved.project, approved.archive.root))
        assert said in found


def test_claims_of_a_row_are_read_strictly(copied: tuple[Project, Archive]) -> None:
    path = copied[1].step_folder(Step("selection")) / "rows.parquet"
    table = pq.read_table(path)
    for name, (data, said) in SHORT.items():
        if "UTF" in name:
            continue  # Parquet has no such text
        claims = pa.array([data.decode()] * table.num_rows)
        column = table.column_names.index("claims")
        changed = table.set_column(column, tables.ROWS.field("claims"), claims)
        pq.write_table(changed, path, store_schema=False, write_page_checksum=True)
        with pytest.raises(DataError, match=rf"rows\.parquet: column claims: .*{re.escape(said)}"):
            tables.read_rows(path)


HEX = re.compile(r"(sha256:|ed25519:)?([0-9a-f]{40}|[0-9a-f]{64})")


def test_a_hash_with_a_newline_is_refused_wherever_one_is(copied: tuple[Project, Archive]) -> None:
    _, archive = copied
    seen = 0
    for path in sorted(archive.root.rglob("*.json")):
        record = jsonfile.read(path)
        kind = record["schema"].split("/")[1]
        for container, key in list(places(record)):
            value = container[key]
            if isinstance(value, str) and HEX.fullmatch(value) and key != "detail":
                for ending in ("\n", "\r", " ", "\u2028", "\0"):
                    container[key] = value + ending
                    with pytest.raises(DataError, match=rf"{re.escape(str(path))}: field \$.*does not match"):
                        schema.validate(record, kind=kind, source=str(path))
                container[key] = value
                seen += 1
    assert seen > 80


def test_every_hash_in_a_schema_ends_where_its_pattern_ends() -> None:
    patterns = [
        container[key]
        for path in bundled.folder("schemas").glob("*.json")
        for container, key in places(jsonfile.read(path))
        if key == "pattern" and isinstance(container[key], str)
    ]
    assert len(patterns) > 50
    for pattern in patterns:
        assert pattern.endswith(r"$(?!\n)") or pattern == r"(^|/)\.\.?(/|$)", pattern


LONG = "x" * 10_000_000


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_string_of_10_mb_is_refused_or_read(copied: tuple[Project, Archive], document: str) -> None:
    """In the place of the first string of each kind; a message quotes the ends of it at most."""
    project, archive = copied
    path = archive.root / document
    before: Any = jsonfile.read(path)
    strings = {key: (container, container[key]) for container, key in places(before) if isinstance(container[key], str)}
    for key, (container, value) in list(strings.items())[:: max(1, len(strings) // 2)]:
        container[key] = LONG
        path.write_bytes(jsonfile.canonical(before))
        began = time.process_time()
        if document != "catalog.json":
            archive.write_catalog()
        said = problem(project, archive.root)
        assert time.process_time() - began < SECONDS, key
        assert max(map(len, said.split("\n"))) < LONGEST, key
        container[key] = value
