"""Who can approve is part of the plan: what must not be frozen, and that a plan without it freezes as before."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.errors import GatepostError
from tests.approvals import GATE, Keys, asks, freeze, make_keys, public
from tests.archives import Project, create_project

Edit = Callable[[str, dict[str, str]], str]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path / "project")


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return make_keys(tmp_path / "keys")


def swapped(old: str, new: str) -> Edit:
    """Replace a passage that has to be there; keys by their names in braces."""

    def edit(text: str, keys: dict[str, str]) -> str:
        for name, key in keys.items():
            text = text.replace(key, f"<{name}>")
        assert old in text, old
        text = text.replace(old, new)
        for name, key in keys.items():
            text = text.replace(f"<{name}>", key).replace(f"<{name} in upper case>", f"ed25519:{key[8:].upper()}")
        return text

    return edit


REFUSED: dict[str, tuple[Edit, str]] = {
    "a reviewer who is the author": (
        swapped('bob = "<bob>"', 'bob = "<author>"'),
        r"approvals\.reviewers\.bob is ed25519:\w+, the key of approvals\.author",
    ),
    "a reviewer who is the author in other letters": (
        swapped('bob = "<bob>"', 'bob = "<author in upper case>"'),
        r"approvals\.reviewers\.bob is ed25519:\w+, the key of approvals\.author",
    ),
    "one reviewer under two names": (
        swapped('bob = "<bob>"', 'bob = "<alice>"'),
        r"approvals\.reviewers\.bob is ed25519:\w+, the key of approvals\.reviewers\.alice",
    ),
    "one reviewer under two names in other letters": (
        swapped('bob = "<bob>"', 'bob = "<alice in upper case>"'),
        r"approvals\.reviewers\.bob is ed25519:\w+, the key of approvals\.reviewers\.alice",
    ),
    "a key that is too short": (swapped("<bob>", "ed25519:00"), r"\$\.approvals\.reviewers\.bob"),
    "a key with a line end": (swapped("<bob>", "<bob>\\n"), r"\$\.approvals\.reviewers\.bob"),
    "a key without its kind": (swapped("<bob>", "ab" * 32), r"\$\.approvals\.reviewers\.bob"),
    "a key of another kind": (swapped("<bob>", "rsa:" + "ab" * 32), r"\$\.approvals\.reviewers\.bob"),
    "a key that is no text": (swapped('"<bob>"', "12"), r"\$\.approvals\.reviewers\.bob"),
    "a key that is no point": (
        swapped("<bob>", "ed25519:02" + "00" * 31),
        r"approvals\.reviewers\.bob is .*: not a point of the curve",
    ),
    "a key under which anybody signs": (
        swapped("<bob>", "ed25519:01" + "00" * 31),
        r"approvals\.reviewers\.bob is .*: a point of small order",
    ),
    "an author under whose key anybody signs": (
        swapped('author = "<author>"', f'author = "ed25519:{"00" * 32}"'),
        r"approvals\.author is .*: a point of small order",
    ),
    "no author": (swapped('author = "<author>"\n', ""), r"'author' is a required property"),
    "no reviewers": (
        swapped('reviewers = { alice = "<alice>", bob = "<bob>" }', "reviewers = {}"),
        r"\$\.approvals\.reviewers",
    ),
    "no numbers": (swapped("steps = { design = 0, selection = 2, confirmation = 1 }\n", ""), r"'steps' is a required"),
    "a field that nobody knows": (swapped("steps = {", "quorum = 2\nsteps = {"), r"'quorum' was unexpected"),
    "a stage that is none": (
        swapped("selection = 2", "selection = 2, selektion = 1"),
        r"approvals\.steps\.selektion: is no stage; stages are confirmation, design, selection",
    ),
    "a step for a stage": (swapped("confirmation = 1", '"confirmation@32" = 1'), r"\$\.approvals\.steps"),
    "a stage that is left out": (
        swapped("design = 0, ", ""),
        r"approvals\.steps\.design: is not given, expected a number, 0 for none",
    ),
    "more than there are reviewers": (
        swapped("selection = 2", "selection = 3"),
        r"approvals\.steps\.selection is 3, but there are 2 reviewers",
    ),
    "less than none": (swapped("selection = 2", "selection = -1"), r"\$\.approvals\.steps\.selection"),
    "a part of one": (swapped("selection = 2", "selection = 1.5"), r"\$\.approvals\.steps\.selection"),
    "a number in words": (swapped("selection = 2", 'selection = "2"'), r"\$\.approvals\.steps\.selection"),
    "none at all": (
        swapped("selection = 2, confirmation = 1", "selection = 0, confirmation = 0"),
        r"approvals\.steps: no stage needs any",
    ),
    "a stage without the gate": (
        swapped(f"{GATE}gates.toy_engine", "gates.toy_engine"),
        r"stage selection: does not list the gate approval, but its steps need 2 approvals",
    ),
    "the gate in a stage that needs none": (
        swapped("gates.toy_sizes", f"{GATE}gates.toy_sizes"),
        r"stage design: lists the gate approval, but its steps need 0 approvals",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_plan_that_cannot_be_approved_is_refused(project: Project, keys: Keys, name: str) -> None:
    edit, message = REFUSED[name]
    known = {owner: public(key) for owner, key in keys.items()}
    with pytest.raises(GatepostError, match=message):
        project.freeze(edit=lambda text: edit(asks(keys)(text), known))
    assert not (project.root / "receipts" / "toy").exists()


@pytest.mark.parametrize(
    "steps",
    [
        {"design": 0, "selection": 2, "confirmation": 1},
        {"design": 1, "selection": 0, "confirmation": 0},
        {"design": 2, "selection": 2, "confirmation": 2},
    ],
)
def test_a_plan_that_can_be_approved_is_frozen(project: Project, keys: Keys, steps: dict[str, int]) -> None:
    archive = freeze(project, keys, steps=steps)
    assert {name: archive.protocol.approvals_needed(name) for name in steps} == steps


def test_a_key_in_upper_case_is_the_same_key(project: Project, keys: Keys) -> None:
    known = {owner: public(key) for owner, key in keys.items()}
    edit = swapped('bob = "<bob>"', 'bob = "<bob in upper case>"')
    archive = project.freeze(edit=lambda text: edit(asks(keys)(text), known))
    assert archive.protocol.approvals == freeze(project, keys, "lower").protocol.approvals


def test_the_gate_alone_is_refused(project: Project) -> None:
    with pytest.raises(GatepostError, match="stage selection: lists the gate approval, but its steps need 0 approvals"):
        project.freeze(edit=lambda text: text.replace("gates.toy_engine", f"{GATE}gates.toy_engine"))


def test_a_plan_that_asks_nobody_says_nothing_of_it(project: Project) -> None:
    archive = project.freeze()
    assert archive.protocol.approvals is None
    assert "approvals" not in jsonfile.read(archive.root / "protocol.json")
    assert not (archive.root / "approvals").exists()
    assert not re.search("approv", (archive.root / "catalog.json").read_text())
