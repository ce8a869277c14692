"""Change one thing in an archive, and make every digest and size above it anew, as somebody would who knows how.

What is bound is bound again from the bottom up: bound files, protocol, evidence, manifests, receipts, history,
selection, catalog. A digest that stood for a changed file is replaced wherever it is written; whatever else a record
says stays as it is. So nothing is left to catch the change but what the records mean.
"""

import hashlib
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gatepost import jsonfile
from gatepost.audit import rows as tables
from gatepost.errors import DataError
from gatepost.fingerprint import tree_root
from gatepost.verdict import JSON

Files = dict[str, bytes]
"""Path relative to the archive -> its bytes."""

Table = pa.Table

LAYERS: tuple[Callable[[str], bool], ...] = (
    lambda name: name.startswith("bound/"),
    lambda name: name == "protocol.json",
    lambda name: name.endswith(("/session.json", "/preflight.json", ".parquet", "/stream.jsonl")),
    lambda name: name.startswith("approvals/"),
    lambda name: name.endswith("/rows.json"),
    lambda name: name.endswith("/receipt.json"),
    lambda name: name.startswith("log/"),
    lambda name: name == "selection.json",
    lambda name: name == "catalog.json",
)


def read(root: Path) -> Files:
    """Every file of an archive."""
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def write(root: Path, files: Files) -> Path:
    """Put files into an empty folder, with the folders that an archive always has."""
    shutil.rmtree(root, ignore_errors=True)
    for name in ("attempts", "bound", "log", "steps", *files):
        path = root / name
        if name in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
        else:
            path.mkdir(parents=True, exist_ok=True)
    return root


def forge_document(files: Files, name: str, document: JSON) -> Files:
    """Put another JSON record in the place of one, and bind it. Raises ``DataError`` if it has no canonical form."""
    return bound_again(files, {name: jsonfile.canonical(document)})


def mutate_table(table: pa.Table, source: random.Random) -> tuple[pa.Table, str]:
    """A changed table, and what was changed: ``rows``, their ``order``, or the name of a column."""
    indices = list(range(table.num_rows))
    first, second = source.choice(indices), source.choice(indices)
    how = source.choice(["drop", "double", "order", "value", "value", "value"])
    if how == "value":
        column = source.randrange(table.num_columns)
        field, values = table.schema.field(column), table.column(column).to_pylist()
        values[first] = _other(values[first], values[second], field, source)
        return table.set_column(column, field, pa.array(values, field.type)), field.name
    if how == "drop":
        del indices[first]
    elif how == "double":
        indices.insert(second, first)
    else:
        indices[first], indices[second] = indices[second], indices[first]
    return (table.take(indices) if indices else table.slice(0, 0)), "order" if how == "order" else "rows"


def _other(value: Any, beside: Any, field: pa.Field, source: random.Random) -> Any:
    """Another value that a column can hold."""
    empty = [None] if field.nullable else []
    if pa.types.is_boolean(field.type):
        return not value
    if pa.types.is_integer(field.type):
        known = value or 0
        return source.choice([0, 1, -1, known + 1, known - 1, 2**31 - 1, -(2**31), beside, *empty])
    if pa.types.is_string(field.type):
        known = value or ""
        return source.choice(["", "x", f"{known}x", known[:-1], beside, "\0", *empty])
    known = list(value or [])
    item = source.choice([0, -1, 2**31 - 1, 3] if pa.types.is_integer(field.type.value_type) else ["", "x"])
    return source.choice([[], known[:-1], [*known, item], known[::-1], known * 2, beside, [item, *known[1:]], *empty])


def forge_table(files: Files, name: str, change: Callable[[pa.Table], pa.Table]) -> Files:
    """Change a Parquet table, and bind it again."""
    sink = pa.BufferOutputStream()
    table = change(pq.read_table(pa.BufferReader(files[name])))
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, store_schema=False)
    return bound_again(files, {name: sink.getvalue().to_pybytes()})


def bound_again(files: Files, changed: Files) -> Files:
    """The same archive with some files changed, every binding of them made anew."""
    new: Files = {}
    known: dict[JSON, JSON] = {}
    for belongs in LAYERS:
        for name in sorted(filter(belongs, files)):
            data = changed.get(name, files[name])
            if name.endswith(".json"):
                document = _rebound(jsonfile.loads(data, source=name), known)
                if name.endswith("/rows.json"):
                    _count(document, {**files, **new}, name, known, counted=name not in changed)
                if name == "catalog.json" and name not in changed:
                    _list(document, new)
                data = jsonfile.canonical(document)
            new[name] = data
            for digest in (_sha256, jsonfile.digest):
                if data != files[name]:
                    known[digest(files[name])] = digest(data)
    assert set(new) == set(files)
    return new


def _rebound(value: JSON, known: dict[JSON, JSON]) -> JSON:
    """A document in which every digest that stands for something that changed is the new one."""
    if isinstance(value, dict):
        return {key: _rebound(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [_rebound(item, known) for item in value]
    if isinstance(value, str) and value not in known:  # the detail of an approval ends in a digest
        head, space, tail = value.rpartition(" ")
        return f"{head}{space}{known[tail]}" if space and tail in known else value
    return known[value] if isinstance(value, str) else value


def _count(manifest: Any, files: Files, name: str, known: dict[JSON, JSON], *, counted: bool) -> None:
    """Make sizes, and the counts over the rows, those of the files beside a manifest."""
    folder = name.rpartition("/")[0]
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), list) or not counted:
        return
    for entry in manifest["files"]:
        entry["size_bytes"] = len(files[f"{folder}/{entry['path']}"])
    if manifest["rows"] is not None and known:
        found = _rows(files[f"{folder}/rows.parquet"])
        if found is not None:
            manifest["rows"], manifest["rows_digest"] = len(found), tables.digest_of(found)
            manifest["sampled_tokens"] = sum(row.sampled_tokens for row in found)


def _rows(data: bytes) -> Sequence[Any] | None:
    """Rows as gatepost reads them; ``None`` for a table that it would refuse."""
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"rows-{_sha256(data)[:24]}.parquet"
    path.write_bytes(data)
    try:
        return tables.read_rows(path)
    except (DataError, ValueError):
        return None
    finally:
        path.unlink()


def _list(catalog: Any, files: Files) -> None:
    digests = {name: _sha256(data) for name, data in files.items()}
    catalog["root"] = tree_root(digests)
    catalog["files"] = [
        {"path": name, "sha256": digests[name], "size_bytes": len(files[name])} for name in sorted(files)
    ]


def rows_in(table: bytes) -> int:
    """How many rows a Parquet file has."""
    return int(pq.read_metadata(pa.BufferReader(table)).num_rows)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
