"""Folders of earlier studies: nothing comes from there and nothing goes there, by whatever name."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost.archive import Archive
from gatepost.errors import RegistrationError
from tests.scoring.study import Study, create_study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study beside the folder ``old``."""
    (tmp_path / "old").mkdir()
    return create_study(tmp_path)


def forbid(root: str, *, tasks: str = "probe.jsonl", model: str | None = None) -> Callable[[str], str]:
    """A draft that forbids a root and takes its tasks and its model from somewhere."""

    def edit(text: str) -> str:
        text = text.replace("forbidden_roots = []", f'forbidden_roots = ["{root}"]')
        text = text.replace('{ probe = "probe.jsonl" }', f'{{ probe = "{tasks}" }}')
        return (
            text if model is None else text.replace('repository = "script"', f'repository = "script"\npath = "{model}"')
        )

    return edit


@pytest.mark.parametrize("root", ["old", "elsewhere/../old", "{tmp_path}/old", "old/tasks"])
@pytest.mark.parametrize("name", ["old/tasks/probe.jsonl", "linked/tasks/probe.jsonl"])
def test_a_bound_file(study: Study, root: str, name: str) -> None:
    (study.root / "old" / "tasks").mkdir()
    shutil.copy(study.root / "probe.jsonl", study.root / "old" / "tasks")
    (study.root / "linked").symlink_to(study.root / "old")
    with pytest.raises(RegistrationError, match=rf"draft.toml: .*{name}: lies under the forbidden root"):
        study.freeze(forbid(root.format(tmp_path=study.root), tasks=name))


@pytest.mark.parametrize("root", ["older", "ol", "probe", "receipts/old"])
def test_what_lies_elsewhere_is_allowed(study: Study, root: str) -> None:
    study.freeze(forbid(root))


def test_an_archive_is_not_written_there(study: Study) -> None:
    with pytest.raises(RegistrationError, match=r"receipts/small: lies under the forbidden root 'receipts'"):
        study.freeze(forbid("receipts"))
    assert list((study.root / "receipts").iterdir()) == []


def test_an_archive_does_not_run_there(study: Study) -> None:
    """It may be read and replayed there: that changes nothing."""
    archive = study.freeze(forbid("old"))
    study.step(archive)
    moved = Archive(Path(shutil.move(archive.root, study.root / "old")))
    with pytest.raises(RegistrationError, match=r"old/small: lies under the forbidden root 'old'"):
        study.step(moved)
    assert moved.attempt_folders() == []
    assert study.replay(moved).faithful


def local_model(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")


def pinned(study: Study, edit: Callable[[str], str]) -> Callable[[str], str]:
    """The edit, with the model's revisions replaced by the digest that freezing asks for."""
    zeros = f'"{"0" * 40}"'
    with pytest.raises(RegistrationError, match="the pin is dirty") as caught:
        study.freeze(edit)
    found = re.search(r"sha256:[0-9a-f]{64}", str(caught.value))
    assert found is not None
    return lambda text: edit(text).replace(zeros, f'"{found[0]}"')


def test_a_model(study: Study) -> None:
    local_model(study.root / "old" / "tiny")
    with pytest.raises(RegistrationError, match=r"old/tiny: lies under the forbidden root 'old'"):
        study.freeze(pinned(study, forbid("old", model="old/tiny")))


def test_a_model_that_was_moved_there(study: Study) -> None:
    local_model(study.root / "models" / "tiny")
    archive = study.freeze(pinned(study, forbid("old", model="models/tiny")))
    study.step(archive)
    shutil.move(study.root / "models" / "tiny", study.root / "old")
    (study.root / "models" / "tiny").symlink_to(study.root / "old" / "tiny")
    with pytest.raises(RegistrationError, match=r"models/tiny: lies under the forbidden root 'old'"):
        study.step(archive)
