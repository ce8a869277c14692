"""What a walk through an archive finds and refuses; kinds of files beyond these: tests/faults/test_tree_faults.py."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import tree
from gatepost.errors import IntegrityError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "archive"
    (root / "log").mkdir(parents=True)
    (root / "log" / "1.json").write_bytes(b"12345")
    (root / "catalog.json").write_bytes(b"{}")
    (root / ".lock").write_bytes(b"{}")
    (root / "protocol.json").write_bytes(b"")
    return root


def test_files_have_sizes_and_catalog_and_lock_are_none_of_them(root: Path) -> None:
    (root / "log" / "catalog.json").write_bytes(b"7")
    found = tree.read(root)
    assert found.files == {"log/1.json": 5, "log/catalog.json": 1, "protocol.json": 0}
    assert found.folders == {"log"}


def link(name: str, to: str) -> Callable[[Path], None]:
    return lambda root: os.link(root / to, root / name)


@pytest.mark.parametrize(
    ("links", "refused"),
    [
        ([], None),
        ([link("log/2.json", "log/1.json")], None),
        ([link("../outside", "log/1.json")], "of 2 names only 1"),
        ([link("log/2.json", "log/1.json"), link("../outside", "log/1.json")], "of 3 names only 2"),
        ([link("log/2.json", "log/1.json"), link("log/3.json", "protocol.json")], None),
        ([link("log/2.json", "log/1.json"), link("../outside", "protocol.json")], "of 2 names only 1"),
    ],
)
def test_a_file_has_all_its_names_in_the_archive(
    root: Path, links: list[Callable[[Path], None]], refused: str | None
) -> None:
    for make in links:
        make(root)
    if refused is None:
        assert set(tree.read(root).files) >= {"log/1.json", "protocol.json"}
        return
    with pytest.raises(IntegrityError, match=f"is a hard link, {refused} in the archive") as caught:
        tree.read(root)
    assert str(caught.value).endswith("expected a file of its own: copy the archive")
