"""The two records of an import that stand for evidence which was not published, a writer beside its reader."""

from collections.abc import Iterable
from pathlib import Path

from gatepost import jsonfile, schema
from gatepost.absence import AbsentRows, PromptDigest
from gatepost.errors import DataError
from gatepost.verdict import JSON


def write_absent_rows(path: Path, absent: AbsentRows) -> None:
    """Write what is known of rows that lie elsewhere."""
    _write(path, {"schema": "gatepost/absent_rows/1", **vars(absent), "claims": dict(absent.claims)})


def read_absent_rows(path: Path) -> AbsentRows:
    """Read what is known of rows that lie elsewhere."""
    return AbsentRows(**_read(path, "absent_rows"))


def write_prompt_digests(path: Path, prompts: Iterable[PromptDigest]) -> None:
    """Write lengths and digests of rendered prompts."""
    _write(path, {"schema": "gatepost/prompt_digests/1", "prompts": [vars(prompt) for prompt in prompts]})


def read_prompt_digests(path: Path) -> tuple[PromptDigest, ...]:
    """Read lengths and digests of rendered prompts, in stored order."""
    return tuple(PromptDigest(**prompt) for prompt in _read(path, "prompt_digests")["prompts"])


def _write(path: Path, document: dict[str, JSON]) -> None:
    kind = document["schema"].split("/")[1]
    data = jsonfile.canonical(document, source=str(path))
    schema.validate(jsonfile.loads(data, source=str(path)), kind=kind, source=str(path))
    jsonfile.write_new(path, data)


def _read(path: Path, kind: str) -> dict[str, JSON]:
    document = jsonfile.read_canonical(path)
    schema.validate(document, kind=kind, source=str(path))
    if not isinstance(document, dict):
        raise DataError(f"{path}: is a {type(document).__name__}, expected an object")
    return {name: value for name, value in document.items() if name != "schema"}
