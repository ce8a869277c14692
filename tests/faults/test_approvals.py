"""Who may let a step run: every approval that is none is refused by name, when it is given and when it is replayed."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import dsse, integrity, jsonfile
from gatepost.approve import approve
from gatepost.archive import Archive
from gatepost.errors import ApprovalError, GatepostError, MissingExtraError
from gatepost.ladder import Step
from gatepost.status import status_text
from tests.approvals import Keys, freeze, make_keys
from tests.archives import Project, create_project
from tests.faults.conftest import Approved, problem, replayed


@pytest.fixture
def fresh(tmp_path: Path) -> tuple[Project, Archive, Keys]:
    """An archive before its first step, and the keys."""
    project, keys = create_project(tmp_path / "project"), make_keys(tmp_path / "keys")
    return project, freeze(project, keys), keys


def test_an_approved_archive_replays_clean(approved: Approved) -> None:
    result = replayed(approved.project, approved.archive.root)
    assert (result.faithful, str(result.decision)) == (True, "decision: REPLICATED selected=32")
    verdicts = [judgement.verdicts for step in result.steps for judgement in step.judgements]
    said = [
        (check.observed, check.limit)
        for judged in verdicts
        for one in judged
        for check in one.checks[:1]
        if one.gate == "approval"
    ]
    assert said == [(2, 2)] * 3 + [(1, 1)]


def test_an_envelope_is_what_dsse_says_it_is(made: Approved) -> None:
    """Checked without the library that made it: base64, and Ed25519 over the encoding that DSSE v1 defines."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    (path, *_) = sorted((made.archive.root / "approvals").iterdir())
    envelope = jsonfile.read_canonical(path)
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    signed = b" ".join([b"DSSEv1", str(len(kind)).encode(), kind, str(len(payload)).encode(), payload])
    (signature,) = envelope["signatures"]
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["keyid"].removeprefix("ed25519:")))
    key.verify(base64.b64decode(signature["sig"]), signed)
    assert jsonfile.loads_canonical(payload, source="payload") == {
        "schema": "gatepost/approval/1",
        "protocol": made.archive.protocol.digest,
        "step": "selection",
        "statement": "read it",
    }


# What is refused when it is given.


def given(*who: str, step: str = "selection") -> Callable[[Archive, Keys], None]:
    def give(archive: Archive, keys: Keys) -> None:
        for name in who:
            approve(archive, step, keys[name], statement="GO")

    return give


def by_file(content: bytes) -> Callable[[Archive, Keys], None]:
    def give(archive: Archive, keys: Keys) -> None:
        file = keys["alice"].with_name("file")
        file.write_bytes(content)
        approve(archive, "selection", file, statement="GO")

    return give


def stating(statement: str) -> Callable[[Archive, Keys], None]:
    return lambda archive, keys: void(approve(archive, "selection", keys["alice"], statement=statement))


def void(_: object) -> None: ...


REFUSED: dict[str, tuple[Callable[[Archive, Keys], None], str]] = {
    "by the author": (given("author"), "is the key of the author, who cannot approve; reviewers are alice, bob"),
    "by an unknown key": (given("eve"), "is the key of no reviewer; reviewers are alice, bob"),
    "twice by one": (given("alice", "alice"), "alice approved selection before; each reviewer counts once"),
    "of a step that needs none": (given("alice", step="design"), "--step design: needs no approval; steps of toy that"),
    "of a stage": (
        given("alice", step="confirmation"),
        "--step confirmation: needs no approval; steps of toy that do: ",
    ),
    "of no step": (given("alice", step="selektion"), "--step selektion: needs no approval"),
    "at no rung": (given("alice", step="confirmation@33"), "--step confirmation@33: needs no approval"),
    "with a public key": (by_file(b"ed25519:" + b"ab" * 32), "is no Ed25519 private key in PEM"),
    "with an empty file": (by_file(b""), "is no Ed25519 private key in PEM"),
    "with a large file": (by_file(b"x" * 70000), "is 70000 bytes long, expected at most"),
    "without words": (stating(""), "field $.statement"),
    "with a line end": (stating("GO\n"), "field $.statement"),
    "with terminal codes": (stating("\x1b[2J"), "field $.statement"),
    "with too many words": (stating("x" * 1001), "field $.statement"),
    "with half a character": (stating("\ud800"), "no canonical form"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_approval_is_not_recorded(fresh: tuple[Project, Archive, Keys], name: str) -> None:
    _, archive, keys = fresh
    give, said = REFUSED[name]
    with pytest.raises(GatepostError) as refused:
        give(archive, keys)
    assert said in str(refused.value)
    events = [event.event for event in archive.journal.read()]
    assert events == (["frozen", "approved"] if name == "twice by one" else ["frozen"])
    assert integrity.verify(archive) == []


def test_keys_of_other_kinds_and_with_a_password_are_refused(fresh: tuple[Project, Archive, Keys]) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    plain, secret = form.NoEncryption(), form.BestAvailableEncryption(b"secret")
    _, archive, keys = fresh
    for key, lock in ((ec.generate_private_key(ec.SECP256R1()), plain), (ed25519.Ed25519PrivateKey.generate(), secret)):
        data = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock)
        with pytest.raises(ApprovalError, match="is no Ed25519 private key in PEM without a password"):
            by_file(data)(archive, keys)


def test_a_go_for_one_step_opens_one_step(fresh: tuple[Project, Archive, Keys]) -> None:
    project, archive, keys = fresh
    project.step(archive)
    for missing in (2, 1):
        said = f"waits for {missing} of 2 approvals of step selection; a reviewer gives one: "
        command = f"gatepost approve {archive.root} --step selection --key FILE"
        with pytest.raises(ApprovalError) as refused:
            project.step(archive)
        assert said + command in str(refused.value)
        assert said + command in status_text(archive)
        assert "run it" not in status_text(archive)
        approve(archive, "selection", keys["bob" if missing == 2 else "alice"], statement="GO")
    approve(archive, "confirmation@8", keys["alice"], statement="GO")
    assert "run it: pytest" in status_text(archive)
    project.step(archive)
    with pytest.raises(ApprovalError, match="waits for 1 of 1 approvals of step confirmation@32"):
        project.step(archive)
    assert not archive.attempt_folders(), "nothing was begun"
    log = status_text(archive, log=True)
    assert [line.split()[1] for line in log.splitlines() if line.startswith("20")].count("approved") == 3
    approve(archive, "confirmation@32", keys["bob"], statement="GO")
    assert project.step(archive).terminal
    assert problem(project, archive.root) == ""


def test_no_approval_comes_after_an_attempt_or_after_the_end(approved: Approved) -> None:
    for step, said in (
        ("selection", "--step selection: was attempted already"),
        ("confirmation@32", "--step confirmation@32: was attempted already"),
        ("confirmation@64", "--step confirmation@64: will never run; decision: REPLICATED"),
    ):
        for name in ("alice", "bob"):
            with pytest.raises(ApprovalError) as refused:
                approve(approved.archive, step, approved.keys[name], statement="GO")
            assert said in str(refused.value)


def test_a_protocol_that_asks_nobody_takes_no_approval(tmp_path: Path) -> None:
    archive, keys = create_project(tmp_path / "project").freeze(), make_keys(tmp_path / "keys")
    with pytest.raises(ApprovalError, match="protocol toy registers no reviewers"):
        approve(archive, "selection", keys["alice"], statement="GO")


def test_a_private_key_is_private_is_never_overwritten_and_lies_in_no_archive(approved: Approved) -> None:
    key = approved.keys["alice"]
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    with pytest.raises(ApprovalError, match="exists already"):
        dsse.generate_key(key)
    assert key.read_bytes() == before
    link = key.with_name(f"link to nothing {os.getpid()}")
    link.symlink_to(key.with_name("nothing"))
    with pytest.raises(ApprovalError, match="exists already"):
        dsse.generate_key(link)
    for folder in ("", "approvals", "steps/selection"):
        inside = approved.archive.root / folder / "key"
        with pytest.raises(ApprovalError, match="lies in the archive"):
            dsse.generate_key(inside)
        assert not inside.exists()
    with pytest.raises(FileNotFoundError):
        dsse.generate_key(key.parent / "no folder" / "key")


def test_an_approval_waits_for_no_live_run(fresh: tuple[Project, Archive, Keys]) -> None:
    _, archive, keys = fresh
    with archive.lock(), pytest.raises(GatepostError, match="another live run holds this archive"):
        approve(archive, "selection", keys["alice"], statement="GO")


DIE_AT = """
import os, signal, sys
from pathlib import Path
from gatepost.approve import approve
from gatepost.archive import Archive

countdown = int(sys.argv[3])

def dying(call):
    def called(*arguments, **options):
        global countdown
        countdown -= 1
        if countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)
    return called

for name in ("link", "rename", "unlink", "mkdir", "fsync"):
    setattr(os, name, dying(getattr(os, name)))
approve(Archive(Path(sys.argv[1])), "selection", Path(sys.argv[2]), statement="GO")
"""


def test_an_approval_that_dies_at_any_change_counts_whole_or_not_at_all(fresh: tuple[Project, Archive, Keys]) -> None:
    project, archive, keys = fresh
    project.step(archive)
    approve(archive, "selection", keys["alice"], statement="GO")
    told = 0
    for call in range(1, 40):
        copy = Archive(shutil.copytree(archive.root, project.root / "receipts" / f"copy-{call}"))
        done = subprocess.run(
            [sys.executable, "-c", DIE_AT, str(copy.root), str(keys["bob"]), str(call)],
            check=False,
            capture_output=True,
        )
        assert done.returncode in (0, -9), done.stderr
        integrity.verify(copy)
        events = copy.journal.read()
        if len(events) == len(archive.journal.read()):
            told += 1
            approve(copy, "selection", keys["bob"], statement="GO")
        project.step(copy)
        assert problem(project, copy.root) == ""
        assert len(list((copy.root / "approvals").iterdir())) == 2
        if done.returncode == 0:
            break
    assert done.returncode == 0
    assert 4 <= told < call - 1, "it died before and after the approval counted"


@pytest.mark.parametrize("package", ["securesystemslib", "cryptography"])
def test_without_a_library_nothing_is_signed_and_nothing_starts(
    fresh: tuple[Project, Archive, Keys], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, archive, keys = fresh
    project.step(archive)
    for name in ("alice", "bob"):
        approve(archive, "selection", keys[name], statement="GO")
    monkeypatch.setitem(sys.modules, package, None)
    sentence = rf"needs {package}, which is not installed: pip install 'gatepost\[approval\]'$"
    for call in (
        lambda: project.step(archive),
        lambda: void(approve(archive, "confirmation@8", keys["alice"], statement="GO")),
        lambda: void(dsse.generate_key(keys["alice"].with_name("new"))),
    ):
        with pytest.raises(MissingExtraError, match=sentence):
            call()
    assert not keys["alice"].with_name("new").exists()
    assert archive.finished_steps() == [Step("design")]
    assert problem(project, archive.root) == (
        f"{archive.root}: approvals: inconclusive: their signatures cannot be checked here: "
        "pip install 'gatepost[approval]'"
    )
