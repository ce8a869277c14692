"""What a report costs: the whole command for each archive in the repository, and an index of ten thousand receipts.

Ten thousand receipts are a folder of archives that hold as many between them: copies of one run, of six receipts each.
Time and memory are those of the process that writes the index; making the copies takes longer and is not counted.
"""

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

pytest.importorskip("matplotlib", reason="needs the extra report: matplotlib")

ROOT = Path(__file__).resolve().parents[1]
ARCHIVES = sorted(path.parent for path in (ROOT / "receipts").glob("*/protocol.json"))
RECEIPTS, OF_EACH = 10_000, 6
MAX_SECONDS, MAX_INDEX_SECONDS, MAX_BYTES = 3.0, 30.0, 500_000_000


def write(archive: Path, out: Path) -> None:
    command = [sys.executable, "-m", "gatepost", "report", str(archive), "-o", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


@pytest.mark.benchmark(group="process start to page")
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_page(benchmark: BenchmarkFixture, tmp_path: Path, archive: Path) -> None:
    benchmark.pedantic(write, args=(archive, tmp_path / "page.html"), rounds=3, warmup_rounds=1)
    assert benchmark.stats.stats.min < MAX_SECONDS


@pytest.mark.benchmark(group="process start to index of 10 000 receipts")
def test_index(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    source = ROOT / "receipts" / "verified-macro-gpu"
    assert len(list(source.glob("steps/*/receipt.json"))) == OF_EACH
    for number in range(-(-RECEIPTS // OF_EACH)):
        shutil.copytree(source, tmp_path / "many" / f"study-{number:05}")
    benchmark.pedantic(write, args=(tmp_path / "many", tmp_path / "index.html"), rounds=1)
    assert "10\u202f002 receipts" in (tmp_path / "index.html").read_text()
    assert benchmark.stats.stats.min < MAX_INDEX_SECONDS
    # The largest of all children so far, in kibibytes on Linux: none of a page is larger.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < MAX_BYTES
