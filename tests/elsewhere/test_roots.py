"""What the evidence root may hold: the bytes that were bound, or nothing. And the record that sends readers there."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatepost import integrity
from gatepost.archive import Archive
from gatepost.errors import GatepostError
from tests.archives import rewrite
from tests.elsewhere.conftest import MOVED, ROWS, Home
from tests.faults.conftest import problem, replayed


def unlike(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def linked(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to("aside")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


IN_THE_ROOT: dict[str, tuple[Callable[[Path], None], str]] = {
    "one bit is another": (
        lambda path: unlike(path, path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
        "SHA-256 is ",
    ),
    "cut off": (lambda path: unlike(path, path.read_bytes()[:-1]), "SHA-256 is "),
    "empty": (lambda path: unlike(path, b""), "SHA-256 is e3b0c442"),
    "longer": (lambda path: unlike(path, path.read_bytes() + b"0"), "SHA-256 is "),
    "a link": (linked, "is a symbolic link, expected a regular file"),
    "a link to nothing": (lambda path: (path.unlink(), path.symlink_to("nothing"))[0], "is a symbolic link"),
    "a folder": (a_folder, "is not a regular file"),
    "a pipe": (a_pipe, "is not a regular file"),
}


@pytest.mark.parametrize("name", IN_THE_ROOT)
def test_other_bytes_in_the_root_are_refused(detached: Home, name: str) -> None:
    spoil, said = IN_THE_ROOT[name]
    path = detached.kept(ROWS)
    spoil(path)
    found = problem(detached.project, detached.archive.root, evidence=detached.store)
    assert found.startswith(f"{path}: {said}")
    archive = Archive(detached.archive.root, evidence=detached.store)
    with pytest.raises(GatepostError, match=path.name):
        integrity.verify(archive)


def test_what_the_root_lacks_is_named(detached: Home) -> None:
    digest = detached.kept(ROWS).name
    detached.kept(ROWS).unlink()
    replay = replayed(detached.project, detached.archive.root, evidence=detached.store)
    assert replay.differences == ()
    assert {line.split(": ")[0] for line in replay.unjudged} == {"selection"}
    assert all(f"{ROWS} is not here (nor in {detached.store}): " in line for line in replay.unjudged)
    assert all(digest in line for line in replay.unjudged)


def test_what_lies_in_the_archive_counts(detached: Home) -> None:
    """Copied back, a file is judged without any root; other bytes are refused as they ever were."""
    for name in MOVED:
        shutil.copy(detached.kept(name), detached.archive.root / name)
    replay = replayed(detached.project, detached.archive.root)
    assert (replay.differences, replay.unjudged) == ((), ())
    with (detached.archive.root / ROWS).open("r+b") as stream:
        stream.write(b"X")
    said = problem(detached.project, detached.archive.root, evidence=detached.store)
    assert f"{ROWS}: SHA-256 is" in said


def entry(document: dict[str, Any]) -> dict[str, Any]:
    return document["files"][-1]  # type: ignore[no-any-return]


FORGED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another size": (lambda record: entry(record).update(size_bytes=7), "is 7 bytes long, catalog.json lists"),
    "another digest": (lambda record: entry(record).update(sha256="0" * 64), "is not what catalog.json"),
    "other rows": (lambda record: entry(record).update(rows=7), "is not what catalog.json"),
    "another digest of rows": (lambda record: entry(record).update(rows_digest=None), "is not what catalog.json"),
    "another seed": (lambda record: entry(record)["regenerate"].update(base_seed=7), "is not what catalog.json"),
    "another protocol": (lambda record: record.update(protocol="sha256:" + "0" * 64), "is not what catalog.json"),
    "fewer channels": (lambda record: entry(record).update(channels=[]), "is not what catalog.json"),
    "not all of it": (lambda record: record["files"].pop(), f"{ROWS}: is missing, but catalog.json lists it"),
    "twice": (lambda record: record["files"].append(entry(record)), "is not what catalog.json"),
    "out of order": (lambda record: record["files"].reverse(), "is not what catalog.json"),
    "a receipt": (lambda record: entry(record).update(path="steps/selection/receipt.json"), "is missing"),
    "counts": (lambda record: entry(record).update(path="steps/selection/counts.parquet"), "is missing"),
    "a path out of the archive": (lambda record: entry(record).update(path="../rows.parquet"), "$.files[2].path"),
    "one more field": (lambda record: entry(record).update(judged=True), "'judged' was unexpected"),
    "no file at all": (lambda record: record.update(files=[]), "$.files"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_record_that_nothing_binds_is_refused(detached: Home, name: str) -> None:
    change, said = FORGED[name]
    rewrite(detached.archive.root / "elsewhere.json", change)
    for store in (None, detached.store):
        assert said in problem(detached.project, detached.archive.root, evidence=store)


@pytest.mark.parametrize(
    "name", ["receipt.json", "counts.parquet", "session.json", "grades.parquet", "prompts.parquet"]
)
def test_what_has_to_stay_cannot_be_said_to_lie_elsewhere(detached: Home, name: str) -> None:
    """Not even by somebody who names its digest: it stays, or it is missing."""
    path = f"steps/confirmation@32/{name}"
    listed = {one["path"]: one for one in detached.archive.catalog()["files"]}[path]

    def add(record: dict[str, Any]) -> None:
        record["files"].append({**entry(record), **listed})

    rewrite(detached.archive.root / "elsewhere.json", add)
    shutil.move(detached.archive.root / path, detached.store / str(listed["sha256"]))
    assert f"{path} may not lie elsewhere" in problem(detached.project, detached.archive.root, evidence=detached.store)
