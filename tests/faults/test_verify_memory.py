"""Verifying takes no more memory for an archive of any size: measured in a process of its own."""

import random
import shutil
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.audit.sums import sums_of
from gatepost.evidence import Row
from gatepost.fingerprint import RowKey
from gatepost.ladder import Step
from tests.archives import Project, reseal, rewrite

SELECTION = Step("selection")
IDS_OF_A_ROW = 2**15
MIB = 2**20
VERIFY = """
import sys
from gatepost.__main__ import main
status = main(["verify", sys.argv[1]])
(line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(line.split()[1], file=sys.stderr)
sys.exit(status)
"""


def enlarge(archive: Archive, mib: int, *, random_ids: bool) -> None:
    """Give a step so many mebibytes of ids, and make every record fit them."""
    folder, choose = archive.step_folder(SELECTION), random.Random(mib)
    loop = array("i", [*range(300)] * (IDS_OF_A_ROW // 300 + 1))[:IDS_OF_A_ROW]
    rows = [
        Row(
            RowKey(f"task-{number}", 0), number, 9,
            array("i", choose.randbytes(4 * IDS_OF_A_ROW)) if random_ids else loop, None, "length", {},
        )
        for number in range(mib * MIB // (4 * IDS_OF_A_ROW))
    ]  # fmt: skip
    path = folder / "rows.parquet"
    path.unlink()
    tables.write_rows(path, rows)
    manifest = jsonfile.read(folder / "rows.json")
    for entry in manifest["files"]:
        if entry["path"] == path.name:
            entry.update(sha256=jsonfile.sha256_of(path), size_bytes=path.stat().st_size)
    manifest.update(sums_of(path)._asdict())
    assert manifest["sampled_tokens"] * 4 == mib * MIB
    jsonfile.replace(folder / "rows.json", jsonfile.canonical(manifest))
    digest = jsonfile.digest((folder / "rows.json").read_bytes())
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=digest))
    reseal(archive)


def peak_mib(archive: Archive) -> float:
    """The most memory that ``gatepost verify`` had in use."""
    done = subprocess.run([sys.executable, "-c", VERIFY, str(archive.root)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stderr) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("random_ids", [True, False], ids=["random", "loops"])
def test_memory_does_not_grow_with_the_rows(finished: tuple[Project, Path], tmp_path: Path, random_ids: bool) -> None:
    _, root = finished
    peaks = {}
    for mib in (16, 160):
        archive = Archive(shutil.copytree(root, tmp_path / str(mib) / root.name))
        enlarge(archive, mib, random_ids=random_ids)
        peaks[mib] = peak_mib(archive)
    assert peaks[160] < 300
    assert peaks[160] - peaks[16] < 48, peaks
