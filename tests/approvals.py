"""Keys and drafts for tests of approvals. Keys are made anew, as a user makes them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import securesystemslib.dsse  # noqa: F401 - pytester forgets what its runs imported, and this cannot be imported twice

from gatepost.archive import Archive
from gatepost.dsse import generate_key, load_key
from gatepost.ed25519 import key_text
from tests.archives import Project

Keys = Mapping[str, Path]
"""Name -> private key."""

NAMES = ("author", "alice", "bob", "eve")
GATE = "gates.approval = { version = 1 }\n"
STEPS = {"design": 0, "selection": 2, "confirmation": 1}


def make_keys(folder: Path) -> Keys:
    """A private key for the author, for two reviewers, and for somebody whom nobody registers."""
    folder.mkdir()
    for name in NAMES:
        generate_key(folder / name)
    return {name: folder / name for name in NAMES}


def public(key: Path) -> str:
    """The public key of a private one, as it is written."""
    return key_text(load_key(key).public)


def asks(keys: Keys, steps: Mapping[str, int] = STEPS) -> Callable[[str], str]:
    """Have the toy draft ask alice and bob for approvals; its stages list the gate where their steps need any."""
    numbers = ", ".join(f"{stage} = {number}" for stage, number in steps.items())
    section = (
        f'[approvals]\nauthor = "{public(keys["author"])}"\n'
        f'reviewers = {{ alice = "{public(keys["alice"])}", bob = "{public(keys["bob"])}" }}\n'
        f"steps = {{ {numbers} }}\n\n"
    )

    def edit(text: str) -> str:
        head, *stages = text.replace("[study]", f"{section}[study]", 1).split("[[stages]]")
        return "[[stages]]".join([head, *map(listed, stages)])

    def listed(stage: str) -> str:
        name = stage.split('"')[1]
        return stage.replace("gates.", f"{GATE}gates.", 1) if steps.get(name) else stage

    return edit


def freeze(project: Project, keys: Keys, name: str = "toy", steps: Mapping[str, int] = STEPS) -> Archive:
    """A frozen toy study that asks for approvals, before its first step."""
    return project.freeze(name, edit=asks(keys, steps))
