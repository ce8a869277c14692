"""The folder that a model is loaded from: where it is, and what is in it."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gatepost.engine import EngineSpec
from gatepost.errors import EngineError

MODEL_FILES = ("config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json")
TOKENIZER_FILES = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
)
"""What decides the model's numbers and the tokenizer's ids. Weights in pickles are never loaded."""


class Source(NamedTuple):
    """Folders of model and tokenizer, and the commits that they hold where they came from a repository."""

    model: Path
    tokenizer: Path
    revision: str | None
    tokenizer_revision: str | None

    def digests(self) -> dict[str, str]:
        """File name -> SHA-256 hex digest of everything that is loaded."""
        files = {**_matching(self.model, MODEL_FILES), **_matching(self.tokenizer, TOKENIZER_FILES)}
        return {name: sha256(path) for name, path in sorted(files.items())}


def locate(spec: EngineSpec) -> Source:
    """Find the folders of a spec, and fetch what the local cache lacks of a repository.

    Raises:
        EngineError: ``refused``, for a repository without a pinned revision, or a revision next to a folder.
    """
    folder = Path(spec.model_path)
    if folder.is_dir():
        if spec.revision is not None or spec.tokenizer_revision is not None:
            raise EngineError(f"{folder} is a local folder: it has no revision, expected null", kind="refused")
        return _with_weights(Source(folder, folder, None, None))
    if spec.revision is None or spec.tokenizer_revision is None:
        raise EngineError(
            f"{spec.model_path} is no local folder, and a repository needs revision and tokenizer_revision",
            kind="refused",
        )
    model = _fetch(spec.model_path, spec.revision, MODEL_FILES)
    tokenizer = _fetch(spec.model_path, spec.tokenizer_revision, ("config.json", *TOKENIZER_FILES))
    return _with_weights(Source(model, tokenizer, model.name, tokenizer.name))


def _with_weights(source: Source) -> Source:
    for pattern in ("config.json", "*.safetensors"):
        if not _matching(source.model, [pattern]):
            raise EngineError(f"{source.model} holds no {pattern}, expected a model to load", kind="refused")
    return source


def _fetch(repository: str, revision: str, patterns: Iterable[str]) -> Path:
    """The snapshot folder of a repository. Its name is the commit that the revision resolved to."""
    from huggingface_hub import snapshot_download

    fetch: Callable[..., str] = partial(snapshot_download, repository, revision=revision, allow_patterns=list(patterns))
    try:
        return Path(fetch())
    except Exception as error:  # offline, unreachable, gated, unknown: the hub has many classes for it
        unreachable = error
    try:
        return Path(fetch(local_files_only=True))
    except OSError:
        raise EngineError(
            f"{repository} at {revision} is not in the local cache and cannot be fetched: {unreachable}", kind="refused"
        ) from unreachable


def _matching(folder: Path, patterns: Iterable[str]) -> Mapping[str, Path]:
    return {path.name: path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}


def sha256(path: Path) -> str:
    """SHA-256 hex digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
