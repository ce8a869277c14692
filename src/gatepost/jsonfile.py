"""The one strict JSON reader, the RFC 8785 writer, and the only way in which gatepost writes files.

Strict means: UTF-8 without a byte order mark, no NaN or Infinity, no number that overflows a double, no repeated
key, no integer beyond 2^53, no lone surrogate, nothing after the document. Python's own reader accepts all of
these, and another reader of the same file then sees other data.
"""

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, NoReturn

import rfc8785

from gatepost.errors import DataError, IntegrityError
from gatepost.verdict import JSON

MAX_INTEGER = 2**53
MAX_DEPTH = 200
"""Deeper documents are refused, so that no reader of a canonical file runs out of stack."""

MAX_RECORD_BYTES = 64 * 2**20
"""A longer JSON record is refused, so that a file of nothing but holes cannot take all memory."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def loads(data: bytes, *, source: str, columns: Set[str] = frozenset()) -> JSON:
    """Parse one JSON document strictly. Raises ``DataError`` naming ``source`` and what is wrong.

    Args:
        columns: fields of the outermost object that are long lists of numbers, which the caller checks as a whole.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: byte {error.start} is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise DataError(f"{source}: starts with a byte order mark, expected plain UTF-8")

    def refuse_constant(name: str) -> NoReturn:
        raise DataError(f"{source}: {name} is not a JSON number")

    def integer(digits: str) -> int:
        if len(digits) > 17 or abs(int(digits)) > MAX_INTEGER:
            shown = digits if len(digits) <= 24 else f"{digits[:8]}… ({len(digits)} digits)"
            raise DataError(f"{source}: integer {shown} is beyond 2^53; store it as a string")
        return int(digits)

    def real(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise DataError(f"{source}: number {digits[:24]} overflows a double")
        return value

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(items)
        if len(document) != len(items):
            twice = next(key for key, count in Counter(key for key, _ in items).items() if count > 1)
            raise DataError(f"{source}: key {twice!r:.80} appears twice in one object")
        return document

    try:
        document = json.loads(
            text,
            parse_constant=refuse_constant,
            parse_int=None if columns else integer,
            parse_float=real,
            object_pairs_hook=pairs,
        )
    except json.JSONDecodeError as error:
        raise DataError(f"{source}: not JSON at line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise DataError(f"{source}: nested deeper than {MAX_DEPTH} levels") from None
    except ValueError:  # an integer of more digits than Python turns into a number
        raise DataError(f"{source}: an integer is beyond 2^53; store it as a string") from None
    checked = document
    if columns and isinstance(document, dict):
        checked = {key: value for key, value in document.items() if key not in columns}
    _refuse_what_others_read_otherwise(checked, source, MAX_DEPTH)
    return document


def _refuse_what_others_read_otherwise(value: JSON, source: str, depth: int) -> None:
    if depth == 0:
        raise DataError(f"{source}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        if _LONE_SURROGATE.search(value):
            raise DataError(f"{source}: a string holds a lone surrogate, which is not Unicode text")
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise DataError(f"{source}: integer {value} is beyond 2^53; store it as a string")
    elif isinstance(value, list):
        for item in value:
            _refuse_what_others_read_otherwise(item, source, depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_what_others_read_otherwise(key, source, depth - 1)
            _refuse_what_others_read_otherwise(item, source, depth - 1)


def canonical(document: JSON, *, source: str = "document") -> bytes:
    """The RFC 8785 bytes of a document. Raises ``DataError`` where it has none that the strict reader takes.

    (RFC 8785 writes the double 2^53 + 2 as an integer, which no reader can tell from an integer out of range.)
    """
    try:
        data = rfc8785.dumps(document)
        loads(data, source=source)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeEncodeError, DataError) as error:
        raise DataError(f"{source}: has no canonical form: {error}") from None
    return data


def digest(data: bytes) -> str:
    """``sha256:`` and 64 hex digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def loads_canonical(data: bytes, *, source: str) -> JSON:
    """Parse a document that must be stored as its own RFC 8785 bytes, so that its digest has one meaning."""
    document = loads(data, source=source)
    if canonical(document, source=source) != data:
        raise IntegrityError(f"{source}: bytes are not the RFC 8785 form of their content; the file was edited")
    return document


def same(first: JSON, second: JSON) -> bool:
    """Whether two documents are stored as the same bytes. (For Python ``True == 1 == 1.0``; for a reader not.)"""
    return canonical(first) == canonical(second)


def read_bytes(path: Path, *, at_most: int | None = None) -> bytes:
    """Read a regular file whole. Raises ``DataError`` for one that is longer than ``at_most`` bytes."""
    with open_regular(path) as stream:
        size_bytes = os.fstat(stream.fileno()).st_size
        if at_most is not None and size_bytes > at_most:
            raise DataError(f"{path}: is {size_bytes} bytes long, expected at most {at_most}")
        return stream.read()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a regular file as hex digits, however long the file is."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading, through a descriptor that cannot be a link, a device or a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise DataError(f"{path}: does not exist") from None
    except ValueError:
        raise DataError(f"{str(path)!r}: holds a NUL, which no path can") from None
    except OSError as error:
        reason = {errno.ELOOP: "is a symbolic link", errno.ENXIO: "is a socket"}.get(error.errno or 0)
        if reason is None:
            raise IntegrityError(f"{path}: cannot be read: {error.strerror}") from None
        raise IntegrityError(f"{path}: {reason}, expected a regular file") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IntegrityError(f"{path}: is not a regular file")
    return os.fdopen(descriptor, "rb")


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, sorted. An absent folder holds nothing: version control does not keep an empty one."""
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise IntegrityError(f"{folder}: is a file, expected a folder") from None


def read(path: Path) -> JSON:
    """Read any JSON file strictly."""
    return loads(read_bytes(path, at_most=MAX_RECORD_BYTES), source=str(path))


def read_canonical(path: Path) -> JSON:
    """Read a JSON file that gatepost froze."""
    return read_frozen(path)[0]


def read_frozen(path: Path) -> tuple[JSON, str]:
    """The same, together with the digest by which other records name it."""
    data = read_bytes(path, at_most=MAX_RECORD_BYTES)
    return loads_canonical(data, source=str(path)), digest(data)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet: whole, durable and read back, or not at all.

    The bytes go to a new file in the same folder, are synced and compared, and are then linked to their name,
    which fails if the name is taken: a frozen file can never be overwritten, nor seen half written.
    """
    temporary = _write_temporary(path, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise IntegrityError(f"{path}: exists already; gatepost never overwrites a record") from None
    finally:
        temporary.unlink()
    sync_folder(path.parent)


def replace(path: Path, data: bytes) -> None:
    """Replace the one kind of file that may change, an index over the others, in one atomic rename."""
    temporary = _write_temporary(path, data)
    try:
        temporary.rename(path)
    except OSError:
        temporary.unlink()
        raise
    sync_folder(path.parent)


def write_canonical(path: Path, document: JSON) -> bytes:
    """Write a new file in RFC 8785 bytes, and return them."""
    data = canonical(document, source=str(path))
    write_new(path, data)
    return data


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, those above it too, and their names durable. One that is there already stays as it is."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an error of a call that knows no name, such as that of a full disk, say which file it is about."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


TEMPORARY_PREFIX = ".writing-"


def _write_temporary(path: Path, data: bytes) -> Path:
    temporary = path.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    try:
        with naming(path), temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if temporary.read_bytes() != data:
            raise IntegrityError(f"{path}: what was written is not what can be read back")
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    return temporary
