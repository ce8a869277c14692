"""A study of one's own from nothing: the files under ``scaffold/``, with what can be found out filled in."""

import importlib.metadata
import json
import re
import shutil
from pathlib import Path
from string import Template
from typing import Any

from gatepost import bundled, jsonfile
from gatepost.engines.model_folder import Source
from gatepost.errors import DataError, RegistrationError
from gatepost.fingerprint import tree_root
from gatepost.freeze import find_folder
from gatepost.roots import starts_near

EMBEDDED_MODEL = "models/tiny_thinker"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""What the protocol's schema allows as an id and as the name of a study."""

_SCAFFOLD = Path(__file__).resolve().parent / "scaffold"
FILES = (
    ".gitattributes",
    "README.md",
    "pytest.ini",
    "gates/thinks_first.py",
    "tests/test_gate.py",
    "study/domain.py",
    "study/pins.toml",
    "study/protocol.toml",
    "study/tasks/selection.jsonl",
)
_FILLED_IN = ("README.md", "study/pins.toml")


def create(name: str, parent: Path, *, model: Path | None = None) -> Path:
    """Write a project folder with a study, a gate and its test, whole or not at all.

    Args:
        name: of the folder, of the study and of its protocol.
        parent: folder in which it is made.
        model: local folder of a model that thinks between ``<think>`` and ``</think>``; the embedded one if ``None``.

    Raises ``RegistrationError`` for a name that is taken or cannot be one, and ``DataError`` for a model that is not
    there or lacks an id that a protocol registers.
    """
    root = parent.resolve() / name
    _require_free(name, root)
    found = _found(root, _embedded(root) if model is None else model)
    building = root.with_name(f"{jsonfile.TEMPORARY_PREFIX}{name}")
    try:
        building.mkdir()
    except FileExistsError:
        raise DataError(f"{building}: left by an interrupted init; remove it and try again") from None
    try:
        for file in FILES:
            data = (_SCAFFOLD / file).read_bytes()
            if file in _FILLED_IN:
                values = {"name": name} if file.endswith(".md") else {"name": json.dumps(name), **found}
                data = Template(data.decode()).substitute(values).encode()
            path = building / file.replace("study/", f"studies/{name}/", 1)
            jsonfile.make_folder(path.parent)
            jsonfile.write_new(path, data)
        building.rename(root)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    jsonfile.sync_folder(root.parent)
    return root


def _require_free(name: str, root: Path) -> None:
    if not NAME.fullmatch(name):
        expected = "1 to 100 letters, digits, '_', '.' and '-', the first a letter or a digit"
        raise RegistrationError(f"name {name!r:.120} cannot be that of a study, expected {expected}")
    if (bundled.folder("studies") / name).exists():
        raise RegistrationError(f"name {name!r} is that of a study that comes with gatepost, choose another one")
    if root.exists() or root.is_symlink():
        raise RegistrationError(f"{root}: exists already and is never overwritten, choose another name")


def _embedded(root: Path) -> Path:
    """The embedded model: in a checkout that the package or the new folder lies in. A wheel does not bring it."""
    try:
        return find_folder(EMBEDDED_MODEL, [*starts_near(root), bundled.folder("gates").parent], field="model")
    except DataError:
        raise DataError(
            f"the embedded model is not here: run this in a checkout of gatepost, which has {EMBEDDED_MODEL}, or name "
            "the folder of a model with --model PATH"
        ) from None


def _found(root: Path, model: Path) -> dict[str, str]:
    """Placeholder -> TOML value: what the model's folder and the installed packages say."""
    if not model.is_dir():
        raise DataError(f"--model: {model} is not a folder, expected that of a model")
    model = model.resolve()
    if not str(model).isprintable():
        raise DataError(f"--model: {str(model)!r} has characters that a draft cannot name")
    files = Source(model, model, None, None).digests()
    if not any(name.endswith(".safetensors") for name in files):
        raise DataError(f"--model: {model} holds no *.safetensors, expected a model to load")
    ids = _token_ids(model / "tokenizer.json")
    eos = _field(model / "tokenizer_config.json", "eos_token")
    values: dict[str, Any] = {
        "repository": model.name,
        "path": _registered_path(root, model),
        "revision": tree_root(files),
        "think_open": _id_of("<think>", ids, model),
        "think_close": _id_of("</think>", ids, model),
        "model_eos_id": _end_of_sequence(model / "config.json"),
        "tokenizer_eos_id": _id_of(eos.get("content") if isinstance(eos, dict) else eos, ids, model),
        **{package: _version(package) for package in ("torch", "transformers")},
    }
    return {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}


def _registered_path(root: Path, model: Path) -> str:
    """Relative to the nearest folder above both, from which it is looked up; absolute where that is the root."""
    shared = next((folder for folder in root.parents[:-1] if model.is_relative_to(folder)), None)
    return str(model if shared is None else model.relative_to(shared))


def _field(path: Path, name: str) -> Any:
    """A field of a model's JSON file, which its tools read more leniently than records are."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise DataError(f"{path}: is a {type(document).__name__}, expected an object")
    return document.get(name)


def _end_of_sequence(config: Path) -> int:
    value = _field(config, "eos_token_id")
    if type(value) is not int:
        raise DataError(f"{config}: eos_token_id is {value!r:.80}, expected one id")
    return value


def _token_ids(tokenizer: Path) -> dict[str, int]:
    """Text -> id of the tokens that are never split."""
    added = _field(tokenizer, "added_tokens")
    try:
        return {token["content"]: int(token["id"]) for token in added}
    except (TypeError, KeyError, ValueError):
        raise DataError(f"{tokenizer}: added_tokens is {added!r:.80}, expected tokens with content and id") from None


def _id_of(token: object, ids: dict[str, int], model: Path) -> int:
    if not isinstance(token, str) or token not in ids:
        raise DataError(f"{model}: {token!r:.80} is not one id in added_tokens of tokenizer.json, expected it to be")
    return ids[token]


def _version(package: str) -> str:
    """Of the release: the build (``+cpu``) would keep others from running the study on theirs."""
    try:
        return importlib.metadata.version(package).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        raise DataError(f"{package} is not installed: pip install 'gatepost[transformers]', then try again") from None
