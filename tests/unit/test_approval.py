"""Who gave an approval, and what is said where nobody could: the whole of it is in tests/plugin and tests/faults."""

import re
from pathlib import Path

import pytest

from gatepost import approval, jsonfile
from gatepost.approve import approve
from gatepost.archive import Archive
from gatepost.dsse import load_key
from gatepost.errors import ApprovalError, IntegrityError
from tests.approvals import Keys, freeze, make_keys
from tests.archives import Project, create_project


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return make_keys(tmp_path_factory.mktemp("approval") / "keys")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path / "project")


@pytest.fixture
def asked(project: Project, keys: Keys) -> Archive:
    archive = freeze(project, keys)
    project.step(archive)
    return archive


def test_an_approval_has_the_words_of_its_reviewer(asked: Archive, keys: Keys) -> None:
    approve(asked, "selection", keys["alice"], statement="read the plan")
    approve(asked, "selection", keys["bob"], statement="and the tasks")
    found = approval.recorded(asked, asked.journal.read())
    assert [(one.reviewer, one.statement, one.event.step) for one in found] == [
        ("alice", "read the plan", "selection"),
        ("bob", "and the tasks", "selection"),
    ]
    assert {one.approval.holds for one in found} == {True}


@pytest.mark.parametrize(
    ("who", "message"),
    [
        ("author", "here: is the key of the author, who cannot approve; reviewers are alice, bob"),
        ("eve", r"here: ed25519:\w{64} is the key of no reviewer; reviewers are alice, bob"),
    ],
)
def test_who_is_no_reviewer(asked: Archive, keys: Keys, who: str, message: str) -> None:
    with pytest.raises(ApprovalError) as caught:
        approval.reviewer_of(asked, load_key(keys[who]).public, source="here")
    assert re.fullmatch(message, str(caught.value))


def test_a_protocol_without_reviewers_asks_nobody(project: Project, keys: Keys) -> None:
    archive = project.freeze()
    with pytest.raises(ApprovalError, match=r"^here: protocol toy registers no reviewers, so it asks for no approval$"):
        approval.reviewer_of(archive, load_key(keys["alice"]).public, source="here")


def test_a_forged_key_is_refused_with_its_file(asked: Archive, keys: Keys) -> None:
    approve(asked, "selection", keys["alice"], statement="GO")
    (event,) = [event for event in asked.journal.read() if event.event == "approved"]
    path = asked.root / str(event.approval_path)
    other = load_key(keys["eve"]).public.hex()
    document = jsonfile.read(path)
    document["signatures"][0]["keyid"] = other
    path.write_bytes(jsonfile.canonical(document))
    with pytest.raises((ApprovalError, IntegrityError), match=re.escape(str(path))):
        approval.recorded(asked, asked.journal.read())


@pytest.mark.parametrize("name", ["approvals/0009.json", "approvals/x/y.json"])
def test_a_file_that_no_event_tells_of(asked: Archive, name: str) -> None:
    events = asked.journal.read()
    approval.verify(asked, events, ["protocol.json", "steps/approvals/x.json", "approvals.json"])
    with pytest.raises(IntegrityError, match=f"{name}: no event of the history tells of this approval"):
        approval.verify(asked, events, ["protocol.json", name])


def test_without_a_library_the_way_to_it_is_named() -> None:
    assert approval.UNCHECKED.endswith("pip install 'gatepost[approval]'")
