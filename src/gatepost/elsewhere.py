"""Large evidence outside the archive: which files may lie elsewhere, what says so, and where they are found.

1. Only what ``LARGE`` names may lie elsewhere: ids, decoded text, the stream of an attempt. All else stays.
2. ``elsewhere.json`` names each such file. It holds nothing that catalog and manifest do not bind: it is derived from
   them again and compared as a whole. So the catalog, which goes on listing the files, need not list it, and its root
   is the same before and after. Nobody wins by writing one: what is absent is judged nowhere, and passes nowhere.
3. A file that lies in the archive counts. Else the one in the evidence root that is named by its SHA-256, if a root is
   given. Bytes other than those are refused; a file that is in neither place is named.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gatepost import jsonfile, schema
from gatepost.archive import Archive
from gatepost.errors import IntegrityError
from gatepost.ladder import steps_of
from gatepost.tree import Tree
from gatepost.verdict import JSON

RECORD = "elsewhere.json"

LARGE = {"rows.parquet": ("completions", "token_ids"), "text.parquet": ("text",), "stream.jsonl": ()}
"""File that may lie elsewhere -> the channels of gates that are read from it."""


REGENERATE = "gatepost freeze DRAFT --into AGAIN; pytest AGAIN --gatepost-live, once for each step"
"""What samples again under the registered seeds. Whether the same ids come out is up to engine and machine."""


class Located(NamedTuple):
    """The files of one folder, by name: ``here`` says where they can be read, ``away`` what to say of the others."""

    here: Mapping[str, Path]
    away: Mapping[str, str]


def entries(archive: Archive) -> dict[str, dict[str, JSON]]:
    """What ``elsewhere.json`` says, by path in the archive; nothing where there is no such record."""
    path = archive.root / RECORD
    if not path.exists():
        return {}
    document = jsonfile.read_canonical(path)
    schema.validate(document, kind="elsewhere", source=str(path))
    return {entry["path"]: entry for entry in document["files"]}


def record_of(archive: Archive, names: Sequence[str]) -> dict[str, JSON]:
    """The record of these files, derived from what binds them. Raises ``IntegrityError`` for one that has to stay."""
    listed = {entry["path"]: entry for entry in archive.catalog()["files"]}
    return {
        "schema": "gatepost/elsewhere/1",
        "protocol": archive.protocol.digest,
        "files": [_entry(archive, name, listed) for name in sorted(set(names))],
    }


def _entry(archive: Archive, name: str, listed: Mapping[str, JSON]) -> dict[str, JSON]:
    folder, _, file = name.rpartition("/")
    step = folder.removeprefix("steps/") if folder.startswith("steps/") else folder.partition("-")[2]
    stage = next((archive.protocol.stage(one.stage) for one in steps_of(archive.protocol) if str(one) == step), None)
    if file not in LARGE or name not in listed or stage is None:
        raise IntegrityError(
            f"{archive.root / RECORD}: {name} may not lie elsewhere, expected one of {', '.join(LARGE)} of a step or "
            "an attempt that catalog.json lists"
        )
    manifest = archive.root / folder / "rows.json"
    held = jsonfile.read_canonical(manifest) if manifest.exists() and file == "rows.parquet" else {}
    imported = archive.journal.read()[0].event == "imported"
    return {
        "path": name,
        "size_bytes": listed[name]["size_bytes"],
        "sha256": listed[name]["sha256"],
        **{field: held.get(field) for field in ("rows", "sampled_tokens", "rows_digest")},
        "channels": list(LARGE[file]),
        "regenerate": {
            "engine": archive.protocol.engine["kind"],
            "seed_rule": archive.protocol.seed_rule,
            "base_seed": stage.base_seed,
            "step": step,
            "command": None if imported else REGENERATE,
        },
    }


def accounted(archive: Archive, found: Tree) -> tuple[Tree, frozenset[str]]:
    """The tree without the record but with the files that it names, and which of these do not lie in the archive."""
    files = dict(found.files)
    if files.pop(RECORD, None) is None:
        return found, frozenset()
    away = {name: entry["size_bytes"] for name, entry in entries(archive).items() if name not in files}
    return Tree({**files, **away}, found.folders), frozenset(away)


def verify(archive: Archive, away: frozenset[str]) -> list[str]:
    """Raise ``IntegrityError`` unless the record says what binds its files, and the evidence root has no other bytes.

    Returns a note on each that is not at hand.
    """
    recorded = entries(archive)
    if (archive.root / RECORD).exists() and not jsonfile.same(
        jsonfile.read_canonical(archive.root / RECORD), record_of(archive, list(recorded))
    ):
        raise IntegrityError(f"{archive.root / RECORD}: is not what catalog.json and the manifests say of these files")
    return [note for name in sorted(away) if (note := _verify_one(archive, recorded[name])) is not None]


def _verify_one(archive: Archive, entry: Mapping[str, JSON]) -> str | None:
    path = _in_root(archive, entry)
    if path is None:
        return _absent(archive, entry)
    sha256, size_bytes = jsonfile.sha256_of(path), path.stat().st_size
    if (sha256, size_bytes) != (entry["sha256"], entry["size_bytes"]):
        raise IntegrityError(
            f"{path}: SHA-256 is {sha256}, of {size_bytes} bytes; {entry['path']} has {entry['sha256']}, of "
            f"{entry['size_bytes']} bytes"
        )
    return None


def not_at_hand(archive: Archive) -> list[str]:
    """What to say of each file that lies elsewhere and cannot be read."""
    return [
        _absent(archive, entry)
        for name, entry in entries(archive).items()
        if not (archive.root / name).exists() and _in_root(archive, entry) is None
    ]


def locate(archive: Archive, folder: Path, names: Sequence[str]) -> Located:
    """Where the files of a step's or an attempt's folder are, of these names."""
    recorded, here, away = entries(archive), dict[str, Path](), dict[str, str]()
    for name in names:
        path = folder / name
        entry = recorded.get(path.relative_to(archive.root).as_posix())
        if path.exists():
            here[name] = path
        elif entry is not None:
            outside = _in_root(archive, entry)
            if outside is None:
                away[name] = _absent(archive, entry)
            else:
                here[name] = outside
    return Located(here, away)


def _in_root(archive: Archive, entry: Mapping[str, JSON]) -> Path | None:
    if archive.evidence is None:
        return None
    path = archive.evidence / str(entry["sha256"])
    return path if path.is_symlink() or path.exists() else None


def _absent(archive: Archive, entry: Mapping[str, JSON]) -> str:
    where = "no evidence root is given" if archive.evidence is None else f"nor in {archive.evidence}"
    return f"{entry['path']} is not here ({where}): {entry['size_bytes']} bytes, SHA-256 {entry['sha256']}"
