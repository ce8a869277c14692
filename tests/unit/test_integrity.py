"""Each refusal of a verified archive names the file, what was found and what was expected: one fault at a time."""

import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gatepost import integrity, jsonfile
from gatepost.archive import Archive
from gatepost.errors import IntegrityError
from gatepost.fingerprint import tree_root
from tests.archives import create_project, rewrite

HEX = "[0-9a-f]{64}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frozen, and its first step has run."""
    project = create_project(tmp_path_factory.mktemp("integrity"))
    archive = project.freeze()
    project.step(archive)
    return archive.root


@pytest.fixture
def archive(made: Path, tmp_path: Path) -> Archive:
    return Archive(shutil.copytree(made, tmp_path / made.name))


def entry(catalog: Any, path: str) -> Any:
    return next(one for one in catalog["files"] if one["path"] == path)


def rooted(change: Callable[[Any], None]) -> Callable[[Any], None]:
    """A change of the catalog that makes its root anew."""

    def both(catalog: Any) -> None:
        change(catalog)
        catalog["root"] = tree_root({one["path"]: one["sha256"] for one in catalog["files"]})

    return both


EVENT = "log/0001.json"
CATALOG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a file twice": (lambda found: found["files"].append(found["files"][0]), "catalog.json: lists a file twice"),
    "another root": (
        lambda found: found.update(root="sha256:" + "0" * 64),
        f"catalog.json: field root is sha256:0{{64}}, its own entries give sha256:{HEX}",
    ),
    "a file less": (
        rooted(lambda found: found["files"].remove(entry(found, "bound/first.jsonl"))),
        "bound/first.jsonl: is not in catalog.json; it was added afterwards",
    ),
    "a file more": (
        rooted(lambda found: found["files"].append({**entry(found, EVENT), "path": "zz.json"})),
        "zz.json: is missing, but catalog.json lists it",
    ),
    "another size": (
        rooted(lambda found: entry(found, EVENT).update(size_bytes=1)),
        r"log/0001.json: is \d+ bytes long, catalog.json lists 1",
    ),
    "another digest": (
        rooted(lambda found: entry(found, EVENT).update(sha256="0" * 64)),
        f"log/0001.json: SHA-256 is {HEX}, catalog.json lists 0{{64}}",
    ),
    "another protocol": (
        lambda found: found.update(protocol="sha256:" + "0" * 64),
        f"catalog.json: field protocol is sha256:0{{64}}, expected sha256:{HEX}",
    ),
}


@pytest.mark.parametrize("name", CATALOG)
def test_a_catalog_that_does_not_fit(archive: Archive, name: str) -> None:
    change, said = CATALOG[name]
    rewrite(archive.root / "catalog.json", change)
    with pytest.raises(IntegrityError) as refused:
        integrity.verify(Archive(archive.root))
    assert re.fullmatch(re.escape(f"{archive.root}/") + said, str(refused.value))


def test_a_missing_file_is_told_with_the_strangers_in_its_folder(archive: Archive) -> None:
    (archive.root / EVENT).rename(archive.root / "log" / "\u0430.json")  # a Cyrillic letter
    (archive.root / "stranger").write_bytes(b"")  # in another folder, so it is not named
    with pytest.raises(IntegrityError) as refused:
        integrity.verify(archive)
    said = f"{archive.root}/log/0001.json: is missing, but catalog.json lists it; found instead: 'log/\\u0430.json'"
    assert str(refused.value) == said


@pytest.mark.parametrize(("name", "cause"), [("crlf", True), ("other", False)])
def test_line_endings_are_named_where_they_are_the_cause(archive: Archive, name: str, cause: bool) -> None:
    path = archive.root / "bound" / "first.jsonl"
    data = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(data if name == "crlf" else data.replace(b"cat", b"dog"))
    with pytest.raises(IntegrityError) as refused:
        integrity.verify(archive)
    assert f"{path}: is {len(data)} bytes long, catalog.json lists {len(data) - 4}" in str(refused.value)
    assert ("line endings" in str(refused.value)) is cause


def test_an_expected_root_pins_every_file(archive: Archive) -> None:
    root = archive.catalog()["root"]
    assert integrity.verify(archive, expected_root=root) == integrity.verify(archive) == []
    other = "sha256:" + "0" * 64
    with pytest.raises(IntegrityError) as refused:
        integrity.verify(archive, expected_root=other)
    assert str(refused.value).startswith(f"{archive.root}/catalog.json: root is {root}, expected {other}")


def test_what_an_interrupted_write_left_is_noted_and_not_pinned(archive: Archive) -> None:
    root = archive.catalog()["root"]
    (archive.root / ".writing-a").write_bytes(b"")
    (archive.root / "log" / ".writing-b").write_bytes(b"")
    assert integrity.verify(archive) == [
        ".writing-a: was left by an interrupted write",
        "log/.writing-b: was left by an interrupted write",
    ]
    with pytest.raises(IntegrityError) as refused:
        integrity.verify(archive, expected_root=root)
    assert str(refused.value) == f"{archive.root}/.writing-a: is not in catalog.json; it was added afterwards"


def test_an_attempt_that_is_open_is_noted(archive: Archive) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    archive.journal.append("started", at=noon, step="selection", attempt=2)
    assert integrity.verify(archive) == [
        "attempt 2 at selection was started at 2026-01-02T12:00:00Z and never closed",
    ]


@pytest.fixture(scope="module")
def selected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """The selection has been made, and the catalog as it was before that step."""
    project = create_project(tmp_path_factory.mktemp("selected"))
    archive = project.freeze()
    project.step(archive)
    before = (archive.root / "catalog.json").read_bytes()
    project.step(archive)
    return archive.root, before


def test_a_run_that_was_cut_off_after_its_step_is_noted(selected: tuple[Path, bytes], tmp_path: Path) -> None:
    root, before = selected
    archive = Archive(shutil.copytree(root, tmp_path / root.name))
    (archive.root / "selection.json").unlink()
    last = archive.journal.read()[-1]
    assert last.event == "selected"
    (archive.root / last.path).unlink()
    (archive.root / "catalog.json").write_bytes(before)
    assert integrity.verify(archive) == ["a run was cut off before it wrote the catalog; the next live run will"]


@pytest.mark.parametrize(("field", "value"), [("selected", "64"), ("pass", False), ("label", "OTHER")])
def test_a_selection_that_does_not_follow(selected: tuple[Path, bytes], tmp_path: Path, field: str, value: Any) -> None:
    archive = Archive(shutil.copytree(selected[0], tmp_path / selected[0].name))
    expected = archive.expected_selection()
    rewrite(archive.root / "selection.json", lambda found: found.update({field: value}))
    archive.write_catalog()
    with pytest.raises(IntegrityError) as refused:
        integrity.verify(Archive(archive.root))
    assert expected is not None
    found = {**expected, field: value}
    said = str(refused.value)
    assert said.startswith(f"{archive.root}/selection.json: does not follow from the receipts; found ")
    assert repr(found[field]) in said
    assert said.endswith(f", expected {expected}")


def test_a_selection_before_its_time_is_refused(archive: Archive) -> None:
    jsonfile.write_canonical(archive.root / "selection.json", {"schema": "gatepost/selection/1"})
    archive.write_catalog()
    with pytest.raises(Exception, match=r"selection\.json"):
        integrity.verify(Archive(archive.root))
