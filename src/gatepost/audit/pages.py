"""Has every page of a Parquet file a checksum, and does it hold?

pyarrow verifies the checksums that it finds, names no column where one does not hold, takes a file that has none, and
ends the process when it is asked for the columns of some damaged footers. So footer and page headers are read here:
Thrift structs in the compact protocol, whose numbered fields are those of ``parquet-format``.
"""

import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from gatepost.errors import DataError

_MAGIC = b"PAR1"
_HEADER_BYTES = 2**16
"""No page header is longer: beside numbers it holds the least and the largest value of its page."""

_MAX_DEPTH = 16
_STOP, _TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 0, 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12

Fields = Mapping[int, Any]
"""A struct: field number -> integer, bytes, boolean, list or struct."""


class Chunk(NamedTuple):
    """One column of one row group: its name, how many values it has, and where its pages lie."""

    where: str
    column: str
    values: int
    start: int
    end: int


class Page(NamedTuple):
    """Where the bytes of a page lie in a file, after its header; ``crc`` is ``None`` for a page without a checksum."""

    where: str
    start: int
    size_bytes: int
    crc: int | None


def require_checksums(stream: BinaryIO, source: str) -> None:
    """Raise ``DataError`` naming column, page and byte for the first page whose checksum is missing or does not hold.

    Args:
        stream: the whole file, seekable; it is read page by page.
    """
    for page in pages(stream, source):
        if page.crc is None:
            raise DataError(f"{page.where}: has no checksum; evidence is written with one for every page")
        stream.seek(page.start)
        if (found := zlib.crc32(stream.read(page.size_bytes))) != page.crc:
            raise DataError(f"{page.where}: its checksum is {found:#010x}, its header says {page.crc:#010x}")


def pages(stream: BinaryIO, source: str) -> Iterator[Page]:
    """All pages of a file that a reader comes to. Raises ``DataError`` where a header is none."""
    for chunk in chunks(stream, source):
        position, number = chunk.start, 0
        while position < chunk.end:
            where = f"{chunk.where}, page {number} at byte {position}"
            stream.seek(position)
            header = io.BytesIO(stream.read(min(_HEADER_BYTES, chunk.end - position)))
            try:
                fields = _struct(header, _MAX_DEPTH)
                size_bytes, crc = _integer_of(fields, 3), _integer_of(fields, 4, needed=False)
            except (EOFError, ValueError):
                raise DataError(f"{where}: has no page header") from None
            start = position + header.tell()
            if not 0 <= size_bytes <= chunk.end - start:
                raise DataError(f"{where}: is {size_bytes} bytes long, expected 0 to {chunk.end - start}")
            yield Page(where, start, size_bytes, crc & 0xFFFFFFFF if 4 in fields else None)
            position, number = start + size_bytes, number + 1


def chunks(stream: BinaryIO, source: str) -> list[Chunk]:
    """The columns that hold values, by the footer. Raises ``DataError`` for a file that has none."""
    size_bytes = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size_bytes - 8))
    tail = stream.read(8)
    length = struct.unpack("<I", tail[:4])[0] if len(tail) == 8 else 0
    if tail[4:] != _MAGIC or not 0 < length <= size_bytes - 12:
        raise DataError(f"{source}: not a readable Parquet file: it has no footer")
    stream.seek(size_bytes - 8 - length)
    try:
        fields = _struct(io.BytesIO(stream.read(length)), _MAX_DEPTH)
        found = [
            _chunk(_of(column, 3, dict), f"{source}: column {{}}, row group {number}")
            for number, group in enumerate(_of(fields, 4, list))
            for column in _of(group, 1, list)
        ]
    except (EOFError, ValueError) as error:
        raise DataError(f"{source}: not a readable Parquet file: its footer says no columns ({error})") from None
    for chunk in found:
        if not 0 <= chunk.start <= chunk.end <= size_bytes:
            raise DataError(f"{chunk.where}: is bytes {chunk.start} to {chunk.end} of {size_bytes}")
    # No page of an empty column is ever read, and where there are none their offset is 0.
    return [chunk for chunk in found if chunk.values]


def _chunk(fields: Fields, where: str) -> Chunk:
    name = b".".join(_of(fields, 3, list)).decode("utf-8")
    start = _integer_of(fields, 9)
    dictionary = _integer_of(fields, 11, needed=False)
    if 0 < dictionary < start:
        start = dictionary
    return Chunk(where.format(name), name, _integer_of(fields, 5), start, start + _integer_of(fields, 7))


def _of(fields: Any, number: int, kind: type) -> Any:
    value = fields.get(number) if isinstance(fields, dict) else None
    if type(value) is not kind:
        raise ValueError(f"field {number}")
    return value


def _integer_of(fields: Fields, number: int, *, needed: bool = True) -> int:
    if not needed and number not in fields:
        return 0
    return int(_of(fields, number, int))


def _struct(data: BinaryIO, depth: int) -> dict[int, Any]:
    if not depth:
        raise ValueError("nested too deep")
    fields: dict[int, Any] = {}
    number = 0
    while (head := _byte(data)) & 0x0F != _STOP:
        number = number + (head >> 4) if head >> 4 else _integer(data)
        fields[number] = _value(data, head & 0x0F, depth - 1)
    return fields


def _value(data: BinaryIO, kind: int, depth: int) -> Any:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE
    if kind in _INTEGERS:
        return _integer(data)
    if kind == _STRUCT:
        return _struct(data, depth)
    if kind in _LISTS:
        return _list(data, depth)
    if kind not in (_BYTE, _DOUBLE, _BINARY):
        raise ValueError(f"type {kind}")
    length = {_BYTE: 1, _DOUBLE: 8}.get(kind) or _varint(data)
    if len(read := data.read(length)) < length:
        raise EOFError
    return read


def _list(data: BinaryIO, depth: int) -> list[Any]:
    if not depth:
        raise ValueError("nested too deep")
    head = _byte(data)
    size, kind = head >> 4, head & 0x0F
    if size == 15:
        size = _varint(data)
    kind = _BYTE if kind in (_TRUE, _FALSE) else kind  # in a list, a boolean is a byte
    return [_value(data, kind, depth - 1) for _ in range(size)]


def _integer(data: BinaryIO) -> int:
    value = _varint(data)
    return value >> 1 ^ -(value & 1)


def _varint(data: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(data)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise ValueError("an integer of more than 64 bits")


def _byte(data: BinaryIO) -> int:
    read = data.read(1)
    if not read:
        raise EOFError("it ends within")
    return read[0]
