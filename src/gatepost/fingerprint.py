"""Digests that do not depend on how something is stored: of token rows, of token ids, and of a tree of files."""

import hashlib
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

ROWS_DOMAIN = b"gatepost/rows/1\0"
_LITTLE_ENDIAN = struct.pack("=i", 1) == struct.pack("<i", 1)

Ids = Sequence[int] | memoryview
"""Token ids; a view of machine integers is hashed where it lies."""


class RowKey(NamedTuple):
    """Which sample a row is."""

    task_id: str
    sample_index: int

    def __str__(self) -> str:
        return f"{self.task_id}/{self.sample_index}"


def rows_digest(rows: Iterable[tuple[RowKey, Mapping[str, Ids | None]]]) -> str:
    """Logical digest of token rows: the same for every file format and writer version.

    SHA-256 over a domain string and, for each row in order: the task id's UTF-8 bytes with their length, the
    sample index, the number of id lists, and per list, in name order: its name, its length (-1 for a missing list)
    and its ids, all numbers as little-endian signed integers (ids 32 bit, everything else 64 bit).

    Raises ``ValueError`` for an id that is not a signed 32-bit integer.
    """
    sha = hashlib.sha256(ROWS_DOMAIN)
    for key, lists in rows:
        sha.update(_text(key.task_id) + struct.pack("<qq", key.sample_index, len(lists)))
        for name, ids in sorted(lists.items()):
            sha.update(_text(name))
            if ids is None:
                sha.update(struct.pack("<q", -1))
                continue
            try:
                sha.update(struct.pack("<q", len(ids)))
                sha.update(_int32(ids))
            except struct.error as error:
                raise ValueError(f"row {key}: {name}: {error}") from None
    return f"sha256:{sha.hexdigest()}"


def ids_sha256(ids: Ids) -> str:
    """SHA-256 over token ids as little-endian signed 32-bit integers, as hex digits.

    Raises ``ValueError`` for an id that is none.
    """
    try:
        return hashlib.sha256(_int32(ids)).hexdigest()
    except struct.error as error:
        raise ValueError(f"token ids: {error}") from None


def _int32(ids: Ids) -> "bytes | array[int] | memoryview":
    """The bytes of ids as little-endian signed 32-bit integers, without a copy where they lie in memory like that."""
    kind = ids.typecode if isinstance(ids, array) else ids.format if isinstance(ids, memoryview) else ""
    if kind == "i" and _LITTLE_ENDIAN:
        return ids  # type: ignore[return-value]  # an array or a view of it
    return struct.pack(f"<{len(ids)}i", *ids)


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<q", len(data)) + data


def tree_root(files: Mapping[str, str]) -> str:
    """Merkle tree hash (RFC 6962, section 2.1) over a tree of files: relative POSIX path -> SHA-256 hex digest.

    Leaves are ``path NUL digest`` in the order of the paths' UTF-8 bytes, so that a file added, removed, renamed
    or changed gives another root.
    """
    leaves = [
        hashlib.sha256(b"\0" + path.encode() + b"\0" + digest.encode()).digest()
        for path, digest in sorted(files.items(), key=lambda item: item[0].encode())
    ]
    return f"sha256:{_merkle(leaves).hex()}"


def _merkle(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return hashlib.sha256(b"\1" + _merkle(leaves[:split]) + _merkle(leaves[split:])).digest()
