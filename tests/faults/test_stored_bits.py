"""A bit that flips in what is stored is named: by the catalog, and under new digests by the checksum of its page.

``GATEPOST_FAULTS=all`` flips 10,000 bits.
"""

import random
import shutil
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gatepost import integrity, jsonfile, stored
from gatepost.__main__ import main
from gatepost.archive import Archive, find_archives
from gatepost.audit import rows as tables
from gatepost.audit.pages import chunks, pages, require_checksums
from gatepost.audit.sums import sums_of
from gatepost.errors import DataError, GatepostError, IntegrityError
from gatepost.ladder import Step
from tests.archives import Project, reseal, rewrite
from tests.faults.conftest import problem
from tests.faults.write_side import EVERY

ROOT = Path(__file__).resolve().parents[2]
RECEIPTS = find_archives(ROOT / "receipts")
FLIPS = 10_000 if EVERY else 180
SELECTION = Step("selection")


def flipped(data: bytes, position: int, bit: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


@pytest.mark.parametrize("root", RECEIPTS, ids=lambda root: root.name)
def test_no_bit_of_an_archive_flips_in_silence(root: Path, tmp_path: Path) -> None:
    """Any file, any byte of it, any bit of that: the first file at fault is that one, or one that no longer fits it."""
    copy = shutil.copytree(root, tmp_path / root.name)
    files = sorted(path for path in copy.rglob("*") if path.is_file() and path.stat().st_size)
    choose = random.Random(root.name)
    for _ in range(-(-FLIPS // len(RECEIPTS))):
        path = choose.choice(files)
        before = path.read_bytes()
        position, bit = choose.randrange(len(before)), choose.randrange(8)
        path.write_bytes(flipped(before, position, bit))
        with pytest.raises(GatepostError) as caught:
            integrity.verify(Archive(copy))
        at_fault = {path.name, "catalog.json"} if path.name == "protocol.json" else {path.name}
        assert any(name in str(caught.value) for name in at_fault), (
            f"{path}, byte {position}, bit {bit}: {caught.value}"
        )
        assert str(copy) in str(caught.value)
        path.write_bytes(before)
    assert integrity.verify(Archive(copy)) is not None


def rebind_bytes(archive: Archive, step: Step) -> None:
    """Make manifest, receipt, selection and catalog fit the bytes of a step, and leave what they say of its rows."""
    folder = archive.step_folder(step)
    manifest = jsonfile.read(folder / "rows.json")
    for entry in manifest["files"]:
        data = (folder / entry["path"]).read_bytes()
        entry.update(sha256=jsonfile.digest(data).removeprefix("sha256:"), size_bytes=len(data))
    jsonfile.replace(folder / "rows.json", jsonfile.canonical(manifest))
    digest = jsonfile.digest((folder / "rows.json").read_bytes())
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=digest))
    reseal(archive)


@pytest.mark.parametrize("name", ["rows.parquet", "prompts.parquet", "tasks.parquet"])
def test_a_bit_in_a_page_is_named_under_new_digests(copied: tuple[Project, Archive], name: str) -> None:
    """By somebody who makes every digest anew: file, column, row group and page, before anything is decoded."""
    project, archive = copied
    path = archive.step_folder(SELECTION) / name
    before, choose = path.read_bytes(), random.Random(name)
    found = list(pages(BytesIO(before), str(path)))
    assert len(found) >= 3
    for page in found:
        position = page.start + choose.randrange(page.size_bytes)
        path.write_bytes(flipped(before, position, choose.randrange(8)))
        rebind_bytes(archive, SELECTION)
        integrity.verify(archive)
        with pytest.raises(DataError) as caught:
            stored.verify(archive)
        assert str(caught.value).startswith(f"{page.where}: its checksum is 0x")
        assert f"{page.where}: its checksum is 0x" in problem(project, archive.root)
    path.write_bytes(before)
    rebind_bytes(archive, SELECTION)
    stored.verify(archive)
    assert problem(project, archive.root) == ""


def test_a_bit_around_the_pages_is_refused_or_changes_nothing(copied: tuple[Project, Archive]) -> None:
    """No checksum covers page headers and the footer: a file is not readable, not what was bound, or says the same."""
    _, archive = copied
    path = archive.step_folder(SELECTION) / "rows.parquet"
    before, sums, choose = path.read_bytes(), sums_of(path), random.Random(7)
    within = {byte for page in pages(BytesIO(before), "x") for byte in range(page.start, page.start + page.size_bytes)}
    around = [(byte, bit) for byte in range(len(before)) if byte not in within for bit in range(8)]
    refused = 0
    for byte, bit in choose.sample(around, 2000 if EVERY else 60):
        path.write_bytes(flipped(before, byte, bit))
        rebind_bytes(archive, SELECTION)
        try:
            stored.verify(archive)
        except (DataError, IntegrityError) as error:
            refused += str(path) in str(error)
        else:
            assert sums_of(path) == sums, f"byte {byte}, bit {bit}"
    assert refused > 6


def test_rows_without_page_checksums_are_refused(
    copied: tuple[Project, Archive], capsys: pytest.CaptureFixture[str]
) -> None:
    """pyarrow takes them without a word, also when it is told to verify checksums."""
    project, archive = copied
    path = archive.step_folder(SELECTION) / "rows.parquet"
    table = pq.read_table(path)
    pq.write_table(table, path, compression="zstd", store_schema=False)
    assert pq.read_table(path, page_checksum_verification=True).equals(table)
    rebind_bytes(archive, SELECTION)
    said = f"{path}: column task_id, row group 0, page 0 at byte 4: has no checksum"
    assert said in problem(project, archive.root)
    assert main(["verify", str(archive.root)]) == 1
    assert said in capsys.readouterr().err


def test_other_rows_under_new_digests_are_caught_by_the_logical_digest(
    copied: tuple[Project, Archive], capsys: pytest.CaptureFixture[str]
) -> None:
    _, archive = copied
    path = archive.step_folder(SELECTION) / "rows.parquet"
    rows = tables.read_rows(path)
    path.unlink()
    tables.write_rows(path, rows[::-1])
    rebind_bytes(archive, SELECTION)
    assert main(["verify", str(archive.root)]) == 1
    assert "rows.json: field rows_digest is 'sha256:" in capsys.readouterr().err


def test_rows_that_another_version_wrote_otherwise_are_the_same(copied: tuple[Project, Archive]) -> None:
    """Other pages, other packing, other row groups: the logical digest holds, the bytes have to be bound anew."""
    project, archive = copied
    path = archive.step_folder(SELECTION) / "rows.parquet"
    before, table = sums_of(path), pq.read_table(path)
    for options in (
        {"compression": "none"},
        {"row_group_size": 5},
        {"data_page_version": "2.0"},
        {"data_page_size": 64},
        {"use_dictionary": False, "compression": "gzip"},
    ):
        pq.write_table(table, path, store_schema=False, write_page_checksum=True, **options)
        assert sums_of(path) == before
        rebind_bytes(archive, SELECTION)
        stored.verify(archive)
        assert problem(project, archive.root) == ""


def test_what_a_stream_gives_is_what_reading_gives() -> None:
    for path in sorted(ROOT.glob("receipts/*/steps/*/rows.parquet")):
        rows = tables.read_rows(path)
        assert sums_of(path) == (len(rows), sum(row.sampled_tokens for row in rows), tables.digest_of(rows))


def one_page() -> tuple[bytes, int, int]:
    """A file of one page, and where its header begins and its data ends."""
    sink = BytesIO()
    pq.write_table(pa.table({"x": pa.array([7] * 9, pa.int32())}), sink, write_page_checksum=True, use_dictionary=False)
    (chunk,) = chunks(sink, "x")
    return sink.getvalue(), chunk.start, chunk.end


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"", "has no page header"),
        (b"\x15\x00\x15\x02\x18\xff\xff\x03", "has no page header"),  # a text that is longer than the rest
        (b"\x15" + b"\xff" * 11, "has no page header"),  # an integer of more than 64 bits
        (b"\x1c" * 20, "has no page header"),  # nested without an end
        (b"\x19" * 20, "has no page header"),
        (b"\x1b\x00\x00", "has no page header"),  # a map, which none has
        (b"\x15\x00\x15\x02\x18\x01A\x00", "has no page header"),  # a size that is text
        (b"\x15\x00\x15\x02\x15\x03\x15\x00\x00", "is -2 bytes long"),
        (b"\x15\x00\x15\x02\x15\xfe\xff\x07\x15\x00\x00", "bytes long, expected 0 to"),
        (b"\x15\x00\x15\x02\x15\x02\x00A", "has no checksum"),
        (b"\x15\x00\x15\x02\x15\x02\x15\x00\x00A", "its checksum is 0xd3d99e8b, its header says 0x00000000"),
    ],
)
def test_page_headers_that_say_anything(header: bytes, said: str) -> None:
    data, start, end = one_page()
    with pytest.raises(DataError, match="x: column x, row group 0, page 0 at byte 4: ") as caught:
        require_checksums(BytesIO(data[:start] + header.ljust(end - start, b"\x00") + data[end:]), "x")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("footer", "said"),
    [
        (b"", "it has no footer"),
        (b"PAR1", "it has no footer"),
        (b"\x00\x00\x00\x00PAR1", "it has no footer"),
        (b"\x00\xff\xff\xff\xffPAR1", "it has no footer"),
        (b"\x00\x01\x00\x00\x00PAR1", "its footer says no columns (field 4)"),
        (b"\x4c\x00\x00\x03\x00\x00\x00PAR1", "its footer says no columns (field 4)"),
        (b"\x49\x1c\x19\x1c\x00\x00\x00\x07\x00\x00\x00PAR1", "its footer says no columns (field 3)"),
        (b"\x49\x1c\x19\x1c\x00\x04\x00\x00\x00PAR1", "its footer says no columns (it ends within)"),
    ],
)
def test_footers_that_say_anything(footer: bytes, said: str) -> None:
    with pytest.raises(DataError, match=r"^x: not a readable Parquet file: ") as caught:
        require_checksums(BytesIO(b"PAR1" + bytes(32) + footer), "x")
    assert said in str(caught.value)


def test_a_column_that_lies_outside_the_file_is_refused() -> None:
    data, _, end = one_page()
    offset = data.index(b"\x26\x08", end)  # field 9 of the column, an integer: 4
    with pytest.raises(DataError, match=r"x: column x, row group 0: is bytes -4 to \d+ of "):
        require_checksums(BytesIO(data[:offset] + b"\x26\x07" + data[offset + 2 :]), "x")
