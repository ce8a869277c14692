"""Names and paths in an archive: one in another case or script, a file of something else, one that leads elsewhere.

Each stranger is met twice: under the old catalog, as accidents leave it, and under one made anew, as somebody would who
wants it unnoticed.
"""

import contextlib
import shutil
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.__main__ import main
from gatepost.archive import Archive
from gatepost.errors import GatepostError
from tests.archives import Project, rewrite
from tests.faults.conftest import problem

NAMES = {
    "another case": ("bound/first.jsonl", "bound/First.jsonl"),
    "a look-alike letter": ("bound/first.jsonl", "bound/f\u0456rst.jsonl"),
    "a full-width letter": ("protocol.json", "\uff50rotocol.json"),
    "a combining accent": ("bound/second.jsonl", unicodedata.normalize("NFD", "bound/sécond.jsonl")),
    "a composed accent": ("bound/second.jsonl", unicodedata.normalize("NFC", "bound/sécond.jsonl")),
    "an invisible character": ("steps/selection/receipt.json", "steps/selection/receipt\u200b.json"),
    "a space at the end": ("steps/selection/receipt.json", "steps/selection/receipt.json "),
    "an editor's backup": ("bound/first.jsonl", "bound/first.jsonl~"),
    "a partial download": ("steps/selection/rows.parquet", "steps/selection/rows.parquet.part"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_by_another_name_is_missing_and_the_other_is_spelt_out(
    copied: tuple[Project, Archive], name: str
) -> None:
    project, archive = copied
    right, wrong = NAMES[name]
    (archive.root / right).rename(archive.root / wrong)
    said = problem(project, archive.root)
    assert right in said
    assert ascii(wrong) in said or right == "protocol.json"


STRANGERS = [
    ".DS_Store", "bound/.DS_Store", "._protocol.json", "Thumbs.db", ".gitkeep", "attempts/.gitkeep", "protocol.json~",
    "bound/first.jsonl.orig", "bound/.first.jsonl.swp", "bound/#first.jsonl#", "bound/first.jsonl.bak", "a\nb",
    "steps/selection/rows.parquet.part", "steps/selection/rows.parquet.crdownload", "steps/selection/rows.parquet.tmp",
    "steps/selection/receipt (1).json", "steps/selection/.nfs000000000001", "log/0001.json.gz", "bound/FIRST.jsonl",
    "bound/f\u0456rst.jsonl", "steps/selection/Receipt.json", "catalog.json.bak", "README.md", "bound/aux",
    "log/.0002.json.swp",
]  # fmt: skip


@pytest.mark.parametrize("sealed", [False, True], ids=["old catalog", "catalog made anew"])
@pytest.mark.parametrize("name", STRANGERS, ids=ascii)
def test_a_stranger_is_named(copied: tuple[Project, Archive], name: str, sealed: bool) -> None:
    project, archive = copied
    (archive.root / name).write_text("x")
    if sealed:
        with_catalog_made_anew(archive)
    assert name.rpartition("/")[2] in problem(project, archive.root).replace("\\n", "\n")


def with_catalog_made_anew(archive: Archive) -> None:
    with contextlib.suppress(GatepostError):  # a catalog that could list it cannot be written
        archive.write_catalog()


@pytest.mark.parametrize("folder", ["empty", "bound/empty", "attempts/0009-selection", "steps/empty", "log/old", ".git",
                                    "steps/selection/empty", "steps/Selection", "bound/f\u0456rst"])  # fmt: skip
def test_an_empty_folder_is_named(copied: tuple[Project, Archive], folder: str) -> None:
    project, archive = copied
    (archive.root / folder).mkdir()
    said = problem(project, archive.root)
    assert folder.rpartition("/")[2] in said


def test_an_empty_archive_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, said in (
        ("verify", "protocol.json: does not exist"),
        ("status", "protocol.json: does not exist"),
        ("replay", "holds no archive, expected a folder with protocol.json"),
    ):
        assert main([command, str(tmp_path)]) == 1
        assert said in capsys.readouterr().err


def test_an_archive_that_lost_its_empty_folders_is_whole(copied: tuple[Project, Archive]) -> None:
    """Version control keeps none: the folder of attempts is gone from every clone."""
    project, archive = copied
    (archive.root / "attempts").rmdir()
    assert problem(project, archive.root) == ""


PATHS = [
    "../protocol.json", "bound/../protocol.json", "/etc/passwd", "./protocol.json", "bound//first.jsonl", "..", ".",
    "~/x", "bound/", "C:\\x", "bound\\first.jsonl", "", "bound/f\u0456rst.jsonl", "a\nb", "bound/./first.jsonl",
]  # fmt: skip


def absolute_in_catalog(archive: Archive, path: str) -> Path:
    rewrite(archive.root / "catalog.json", lambda catalog: catalog["files"][0].update(path=path))
    return archive.root / "catalog.json"


def absolute_in_manifest(archive: Archive, path: str) -> Path:
    manifest = archive.root / "steps" / "selection" / "rows.json"
    rewrite(manifest, lambda rows: rows["files"][0].update(path=path))
    bound = jsonfile.digest(manifest.read_bytes())
    rewrite(manifest.with_name("receipt.json"), lambda receipt: receipt.update(manifest=bound))
    jsonfile.replace(archive.root / "selection.json", jsonfile.canonical(archive.expected_selection()))
    archive.write_catalog()
    return manifest


def absolute_in_protocol(archive: Archive, path: str) -> Path:
    rewrite(archive.root / "protocol.json", lambda protocol: protocol["bound"][0].update(path=path))
    return archive.root / "protocol.json"


@pytest.mark.parametrize("path", PATHS, ids=ascii)
@pytest.mark.parametrize("change", [absolute_in_catalog, absolute_in_manifest, absolute_in_protocol])
def test_a_path_that_leads_elsewhere_is_refused(
    copied: tuple[Project, Archive], change: Callable[[Archive, str], Path], path: str
) -> None:
    project, archive = copied
    file = change(archive, path)
    assert f"{file.parent}/" in problem(project, archive.root)


def test_rewritten_line_endings_are_named_under_any_catalog(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    target = archive.root / "bound" / "first.jsonl"
    target.write_bytes(target.read_bytes().replace(b"\n", b"\r\n"))
    for _ in range(2):
        said = problem(project, archive.root)
        assert "first.jsonl" in said
        assert "only line endings differ: mark frozen files as -text in .gitattributes and check out again" in said
        archive.write_catalog()
    target.write_bytes(target.read_bytes() + b"\r\n")
    archive.write_catalog()
    assert "line endings" not in problem(project, archive.root)


def test_git_that_rewrites_line_endings_is_found_and_told_not_to(
    finished: tuple[Project, Path], tmp_path: Path
) -> None:
    """A checkout with core.autocrlf: broken without the attributes that this repository ships, and whole with them."""
    project, root = finished
    if shutil.which("git") is None:
        pytest.skip("needs git")
    origin = tmp_path / "origin"
    shutil.copytree(root, origin / "receipts" / "toy")

    def git(*arguments: str, where: Path = origin) -> None:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false")
        subprocess.run(["git", *settings, *arguments], cwd=where, check=True, capture_output=True)

    git("init", "-q", ".")
    for attributes, said in (("", "only line endings differ"), ("receipts/** -text\n", "")):
        (origin / ".gitattributes").write_text(attributes)
        git("add", "-A")
        git("commit", "-q", "-m", "x")
        clone = tmp_path / f"clone{len(attributes)}"
        subprocess.run(
            ["git", "-c", "core.autocrlf=true", "clone", "-q", "-c", "core.autocrlf=true", str(origin), str(clone)],
            check=True,
            capture_output=True,
        )
        found = problem(project, clone / "receipts" / "toy")
        assert said in found
        assert bool(found) is bool(said)
