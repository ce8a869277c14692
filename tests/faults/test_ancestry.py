"""What git says of the order of protocol and receipts, from real repositories, some of which mean harm."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import ancestry as module
from gatepost.__main__ import main
from gatepost.ancestry import ancestry
from gatepost.archive import Archive
from tests.archives import Project, create_project

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

WHO = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")
CANNOT = "git: cannot tell whether the protocol was there before the receipts: "


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *WHO, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(root: Path, *paths: str) -> str:
    """Commit paths of a folder; returns the short name of the commit."""
    git(root, "add", "--force", "--", *paths)
    git(root, "commit", "--quiet", "--allow-empty", "--message", "x")
    return git(root, "rev-parse", "--short", "HEAD")


@pytest.fixture
def made(tmp_path: Path) -> tuple[Project, Archive]:
    """An archive that was just frozen, in an empty repository."""
    project = create_project(tmp_path / "project")
    git(project.root, "init", "--quiet")
    return project, project.freeze()


def test_the_protocol_came_first(made: tuple[Project, Archive]) -> None:
    project, archive = made
    frozen = commit(archive.root, ".")
    project.step(archive)
    first = commit(archive.root, ".")
    project.run(archive)
    commit(archive.root, ".")
    said = f"git: the protocol came with {frozen}, an ancestor of {first}, where the first receipt came"
    assert ancestry(archive) == said
    for name in ("protocol.json", "steps/design/receipt.json"):
        git(archive.root, "rm", "--quiet", "--cached", name)
        commit(archive.root)
        commit(archive.root, name)
    assert ancestry(archive) == said, "the first time counts"


def test_both_in_one_commit_say_nothing(made: tuple[Project, Archive]) -> None:
    project, archive = made
    project.step(archive)
    both = commit(archive.root, ".")
    assert ancestry(archive) == (
        f"git: protocol and first receipt came in the same commit, {both}, which says nothing of their order"
    )


def test_a_receipt_before_this_protocol_is_told(made: tuple[Project, Archive]) -> None:
    """The file was there before; what it says now was not. Nor does it help to take the receipt away for a while."""
    project, archive = made
    protocol = (archive.root / "protocol.json").read_bytes()
    (archive.root / "protocol.json").write_bytes(protocol.replace(b"Which cap", b"What cap"))
    commit(archive.root, ".")
    (archive.root / "protocol.json").write_bytes(protocol)
    project.step(archive)
    receipt = commit(archive.root, "steps")
    git(archive.root, "rm", "--quiet", "--cached", "-r", "steps")
    now = commit(archive.root, "protocol.json")
    commit(archive.root, ".")
    said = f"git: the protocol came with {now}, which is no ancestor of {receipt}, where a receipt came"
    assert ancestry(archive) == said


def test_a_receipt_of_another_branch_has_no_order(made: tuple[Project, Archive]) -> None:
    project, archive = made
    base = commit(project.root, "studies")
    frozen = commit(archive.root, "protocol.json")
    git(project.root, "branch", "other")
    git(project.root, "reset", "--quiet", base)
    project.step(archive)
    receipt = commit(archive.root, "steps")
    (archive.root / "protocol.json").unlink()
    git(project.root, "merge", "--quiet", "--no-edit", "other")
    assert ancestry(archive) == (
        f"git: the protocol came with {frozen}, which is no ancestor of {receipt}, where a receipt came"
    )


def nothing(project: Project, archive: Archive) -> None:
    commit(project.root, "studies")


def no_commit(project: Project, archive: Archive) -> None:
    pass


def no_receipt(project: Project, archive: Archive) -> None:
    commit(archive.root, ".")


def another(project: Project, archive: Archive) -> None:
    path = archive.root / "protocol.json"
    protocol = path.read_bytes()
    path.write_bytes(protocol + b"\n")
    commit(archive.root, ".")
    path.write_bytes(protocol)


def no_repository(project: Project, archive: Archive) -> None:
    shutil.rmtree(project.root / ".git")


def broken(project: Project, archive: Archive) -> None:
    commit(archive.root, ".")
    (project.root / ".git" / "config").write_text("[core\n")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (no_commit, "protocol.json is not committed"),
        (nothing, "protocol.json is not committed"),
        (no_receipt, "no receipt is committed"),
        (another, "protocol.json is another one than was committed"),
        (no_repository, "the archive is in no work tree"),
        (broken, "fatal: bad config line 1"),
    ],
)
def test_what_cannot_be_told_has_its_own_sentence(
    made: tuple[Project, Archive], state: Callable[[Project, Archive], None], said: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    project, archive = made
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", "/")
    state(project, archive)
    assert ancestry(archive).startswith(CANNOT + said)
    assert main(["verify", str(archive.root)]) == 0, "it never changes what is found"
    assert CANNOT + said in capsys.readouterr().out


def test_a_shallow_clone_cannot_tell(made: tuple[Project, Archive], tmp_path: Path) -> None:
    project, archive = made
    commit(archive.root, ".")
    project.step(archive)
    commit(archive.root, ".")
    git(tmp_path, "clone", "--quiet", "--depth", "1", project.root.as_uri(), "clone")
    clone = Archive(tmp_path / "clone" / "receipts" / "toy")
    assert ancestry(clone) == CANNOT + "the clone is shallow, so commits are missing; `git fetch --unshallow` gets them"
    assert "an ancestor of" in ancestry(archive)


def test_without_git_and_with_one_that_hangs(
    made: tuple[Project, Archive], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, archive = made
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ancestry(archive) == f"{CANNOT}git is not installed"
    hangs = tmp_path / "git"
    hangs.write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    assert ancestry(archive) == f"{CANNOT}git could not be started: Permission denied"
    hangs.chmod(0o755)
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.2)
    assert ancestry(archive) == f"{CANNOT}git took longer than 0.2 seconds"


def test_a_repository_that_means_harm_starts_nothing(
    made: tuple[Project, Archive], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every setting of a repository that names a program, as far as reading a history could come to it."""
    project, archive = made
    commit(archive.root, ".")
    project.step(archive)
    commit(archive.root, ".")
    harm, mark = tmp_path / "harm", tmp_path / "harmed"
    harm.write_text(f"#!{sys.executable}\nimport sys\nopen({str(mark)!r}, 'a').write(sys.argv[0])\n")
    harm.chmod(0o755)
    settings = ["core.fsmonitor", "core.pager", "pager.log", "core.editor", "core.sshCommand", "diff.external",
                "diff.h.command", "diff.h.textconv", "filter.h.clean", "filter.h.smudge", "filter.h.process",
                "gpg.program", "credential.helper", "core.gitProxy", "core.alternateRefsCommand"]  # fmt: skip
    for setting in settings:
        git(project.root, "config", setting, str(harm))
    git(project.root, "config", "log.showSignature", "true")
    git(project.root, "config", "core.hooksPath", str(tmp_path))
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(harm, tmp_path / hook)
    (project.root / ".gitattributes").write_text("* filter=h diff=h\n")
    (archive.root / "protocol.json").touch()
    subprocess.run(["git", "status"], cwd=project.root, capture_output=True, check=False)
    assert mark.exists(), "the harm works"
    mark.unlink()
    before = {path: path.stat().st_mtime_ns for path in sorted((project.root / ".git").rglob("*"))}
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(harm))
    monkeypatch.setenv("GIT_TRACE", str(mark))
    assert "an ancestor of" in ancestry(archive)
    assert not mark.exists()
    assert {path: path.stat().st_mtime_ns for path in sorted((project.root / ".git").rglob("*"))} == before


def test_missing_objects_are_not_fetched(made: tuple[Project, Archive], tmp_path: Path) -> None:
    """A partial clone fetches what it lacks, over a transport that its settings name."""
    project, archive = made
    commit(archive.root, ".")
    project.step(archive)
    commit(archive.root, ".")
    git(project.root, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=tree:0", project.root.as_uri(), "clone")
    clone = tmp_path / "clone"
    shutil.copytree(archive.root, clone / "receipts" / "toy")
    git(clone, "config", "protocol.file.allow", "always")
    before = sorted(os.listdir(clone / ".git" / "objects" / "pack"))  # noqa: PTH208
    assert ancestry(Archive(clone / "receipts" / "toy")).startswith(CANNOT)
    assert sorted(os.listdir(clone / ".git" / "objects" / "pack")) == before  # noqa: PTH208
