"""`gatepost init`: a name that can be one, whole or nothing, and a model that is there."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gatepost import bundled, jsonfile, new_study
from gatepost.__main__ import main
from gatepost.errors import DataError, IntegrityError, RegistrationError
from gatepost.freeze import plan
from gatepost.gatefiles import Gates

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "tiny_thinker"
VERSIONS = {"torch": "2.13.0+cpu", "transformers": "5.17.0"}


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written here has to be the same without torch, which nothing here runs."""
    known = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: VERSIONS.get(name) or known(name))


def test_every_file_of_the_scaffold_is_written(tmp_path: Path) -> None:
    scaffold = Path(new_study.__file__).parent / "scaffold"
    there = {path.relative_to(scaffold).as_posix() for path in scaffold.rglob("*") if path.is_file()}
    assert set(new_study.FILES) == {name for name in there if "__pycache__" not in name}
    root = new_study.create("mine", tmp_path)
    written = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert written == {name.replace("study/", "studies/mine/", 1) for name in new_study.FILES}
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    unfilled = [path.name for path in root.rglob("*") if path.is_file() and re.search(r"\$[a-z]", path.read_text())]
    assert unfilled == []


def test_what_is_written_can_be_frozen_as_it_is(tmp_path: Path) -> None:
    root = new_study.create("mine", tmp_path)
    frozen = plan(root / "studies/mine/protocol.toml", gates=Gates([root / "gates"]), studies=[])
    assert (frozen.protocol.id, frozen.protocol.study) == ("mine", "mine")
    assert frozen.protocol.engine["packages"] == {"torch": "2.13.0", "transformers": "5.17.0"}, "whatever the build"
    assert "thinks_first" in {entry.name for entry in frozen.protocol.stages[-1].gates}


@pytest.mark.parametrize("name", ["a", "A1", "my-study", "a.b", "0", "a" * 100])
def test_names_that_can_be_one(name: str, tmp_path: Path) -> None:
    assert new_study.create(name, tmp_path) == tmp_path / name
    tomllib.loads((tmp_path / name / "studies" / name / "pins.toml").read_text())


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "_a", "-a", "a b", "a/b", "/tmp/a", "a\n", "é", "a$b", "a" * 101]
)
def test_names_that_cannot(name: str, tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match=r"cannot be that of a study, expected 1 to 100 letters"):
        new_study.create(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_what_a_protocol_allows() -> None:
    schema = jsonfile.read(bundled.folder("schemas") / "protocol.1.schema.json")["properties"]
    for field in (schema["id"], schema["study"]["properties"]["name"]):
        assert field["pattern"] == rf"^{new_study.NAME.pattern}$(?!\n)"


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "link to nothing"])
def test_what_is_there_is_never_overwritten(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "mine"
    if kind == "file":
        taken.write_text("here")
    elif kind == "link to nothing":
        taken.symlink_to(tmp_path / "nowhere")
    else:
        taken.mkdir()
        if kind == "folder":
            (taken / "file").write_text("here")
    with pytest.raises(RegistrationError, match=r"mine: exists already and is never overwritten"):
        new_study.create("mine", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", sorted(path.name for path in bundled.folder("studies").iterdir() if path.is_dir()))
def test_a_shipped_study_keeps_its_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match="comes with gatepost, choose another one"):
        new_study.create(name, tmp_path)


@pytest.mark.parametrize("at", range(len(new_study.FILES)))
def test_whole_or_nothing(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    write = jsonfile.write_new

    def fails(path: Path, data: bytes) -> None:
        if len(written) == at:
            raise IntegrityError(f"{path}: the disk is full")
        written.append(path)
        write(path, data)

    monkeypatch.setattr(jsonfile, "write_new", fails)
    with pytest.raises(IntegrityError, match="the disk is full"):
        new_study.create("mine", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_init_left_is_named(tmp_path: Path) -> None:
    (tmp_path / ".writing-mine").mkdir()
    with pytest.raises(DataError, match=r"\.writing-mine: left by an interrupted init; remove it and try again"):
        new_study.create("mine", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".writing-mine"]


def model_with(folder: Path, file: str, change: Any) -> Path:
    """A copy of the embedded model with one of its files changed."""
    shutil.copytree(MODEL, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    document = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**document, **change}))
    return folder


def added(*contents: str) -> dict[str, Any]:
    return {"added_tokens": [{"content": text, "id": index} for index, text in enumerate(contents, start=900)]}


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("config.json", {"eos_token_id": [0, 2]}, r"config\.json: eos_token_id is \[0, 2\], expected one id"),
        ("config.json", {"eos_token_id": None}, r"eos_token_id is None"),
        ("config.json", {"eos_token_id": True}, r"eos_token_id is True"),
        ("tokenizer_config.json", {"eos_token": None}, r"None is not one id in added_tokens of tokenizer\.json"),
        ("tokenizer_config.json", {"eos_token": {"text": "<|im_end|>"}}, r"None is not one id"),
        ("tokenizer_config.json", {"eos_token": "</s>"}, r"'</s>' is not one id"),
        ("tokenizer.json", added("</think>", "<|im_end|>"), r"'<think>' is not one id"),
        ("tokenizer.json", added("<think>", "<|im_end|>"), r"'</think>' is not one id"),
        ("tokenizer.json", {"added_tokens": None}, r"tokenizer\.json: added_tokens is None"),
        ("tokenizer.json", {"added_tokens": [{"id": 1}]}, r"added_tokens is \[\{'id': 1\}\]"),
    ],
)
def test_a_model_that_lacks_what_a_protocol_registers(
    file: str, change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    model = model_with(tmp_path / "model", file, change)
    with pytest.raises(DataError, match=said):
        new_study.create("mine", tmp_path, model=model)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("eos", ["</s>", {"content": "</s>"}])
def test_ids_are_those_of_the_model_that_is_named(eos: object, tmp_path: Path) -> None:
    model = model_with(tmp_path / "model", "config.json", {"eos_token_id": 5})
    for file, change in (("tokenizer_config.json", {"eos_token": eos}), ("tokenizer.json", added("<think>", "</s>"))):
        (model / file).write_text(json.dumps({**json.loads((model / file).read_text()), **change}))
    added_tokens = added("<think>", "</think>", "</s>")
    (model / "tokenizer.json").write_text(json.dumps(added_tokens))
    root = new_study.create("mine", tmp_path, model=model)
    pins = tomllib.loads((root / "studies/mine/pins.toml").read_text())
    assert (pins["model"]["think_open"]["id"], pins["model"]["think_close"]["id"]) == (900, 901)
    assert (pins["model"]["model_eos_id"], pins["model"]["tokenizer_eos_id"]) == (5, 902)
    assert (pins["sampling"]["stop_ids"], pins["model"]["path"]) == ([5], "model")
    plan(root / "studies/mine/protocol.toml", gates=Gates([root / "gates"]), studies=[])  # the digest is its own


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder, r"--model: .* is not a folder"),
        (lambda folder: folder.mkdir(), r"holds no \*\.safetensors"),
        (
            lambda folder: (folder.mkdir(), (folder / "a.safetensors").write_text("")),
            r"tokenizer\.json: cannot be read",
        ),
    ],
)
def test_a_folder_that_is_no_model(make: Any, said: str, tmp_path: Path) -> None:
    make(tmp_path / "model")
    with pytest.raises(DataError, match=said):
        new_study.create("mine", tmp_path, model=tmp_path / "model")


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_what_could_not_run_here_is_not_written(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == package:
            raise importlib.metadata.PackageNotFoundError(name)
        return VERSIONS[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(DataError, match=rf"{package} is not installed: pip install 'gatepost\[transformers\]'"):
        new_study.create("mine", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_brings_no_model_and_says_what_to_do(tmp_path: Path) -> None:
    """The layout of an installed wheel: gates, schemas and studies beside the package, and no checkout."""
    package = tmp_path / "site" / "gatepost"
    shutil.copytree(ROOT / "src" / "gatepost", package, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    for name in ("gates", "schemas", "studies"):
        shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    project = tmp_path / "project"
    project.mkdir()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gatepost", "init", "mine", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(package.parent)}
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)

    refused = run()
    assert (refused.returncode, refused.stdout, list(project.iterdir())) == (1, "", [])
    assert re.fullmatch(r"gatepost: the embedded model is not here: run this in .* --model PATH\n", refused.stderr)
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    done = run("--model", str(MODEL))
    assert done.returncode == 0, done.stderr
    assert (project / "mine" / ".gitattributes").is_file()


def test_the_command_says_what_is_wrong_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mine"]) == 0
    assert capsys.readouterr().out.startswith("written: mine/, a study with a gate of your own and its test")
    assert main(["init", "mine"]) == 1
    assert capsys.readouterr().err == (
        f"gatepost: {tmp_path}/mine: exists already and is never overwritten, choose another name\n"
    )
