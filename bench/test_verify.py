"""How fast an archive is verified, beside hashing the same files, and beside reading and hashing the same ids.

Ids of a vocabulary of 151,936 drawn at random, which hardly pack, and loops, which pack to nothing. ``gatepost verify``
is a whole process: it hashes all files, checks every page, decodes all ids and hashes them, and says what is on record.
Seconds of the processor are told beside the rates, for a machine that is busy with other things.
"""

import os
import random
import resource
import subprocess
import sys
from array import array

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.audit.sums import sums_of
from gatepost.evidence import Row
from gatepost.fingerprint import RowKey
from gatepost.ladder import Step
from tests.archives import create_project, reseal, rewrite

GIGABYTES = float(os.environ.get("GATEPOST_BENCH_GB", "1"))
IDS_OF_A_ROW, VOCABULARY = 61_440, 151_936
SELECTION = Step("selection")
ROUNDS = 3


@pytest.fixture(scope="module", params=["random", "loops"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """A finished archive with so many bytes of ids in one step."""
    project = create_project(tmp_path_factory.mktemp("large"))
    archive = project.freeze()
    project.run(archive)
    path = archive.step_folder(SELECTION) / "rows.parquet"
    path.unlink()
    tables.write_rows(path, rows(request.param))
    manifest = jsonfile.read(path.with_name("rows.json"))
    for entry in manifest["files"]:
        if entry["path"] == path.name:
            entry.update(sha256=jsonfile.sha256_of(path), size_bytes=path.stat().st_size)
    manifest.update(sums_of(path)._asdict())
    jsonfile.replace(path.with_name("rows.json"), jsonfile.canonical(manifest))
    digest = jsonfile.digest(path.with_name("rows.json").read_bytes())
    rewrite(path.with_name("receipt.json"), lambda receipt: receipt.update(manifest=digest))
    reseal(archive)
    return archive


def rows(kind: str) -> list[Row]:
    choose = random.Random(0)
    drawn = array("I", choose.randbytes(4 * 2**22))
    pool = array("i", [value % VOCABULARY for value in drawn] if kind == "random" else [*range(300)] * (2**22 // 300))
    starts = [choose.randrange(len(pool) - IDS_OF_A_ROW) for _ in range(round(GIGABYTES * 1e9 / 4 / IDS_OF_A_ROW))]
    return [
        Row(RowKey(f"task-{number // 3}", number % 3), number, 472, pool[at : at + IDS_OF_A_ROW], None, "length", {})
        for number, at in enumerate(starts)
    ]


def measure(benchmark: BenchmarkFixture, archive: Archive, *command: str) -> None:
    """Time a whole process, and tell it by the bytes of ids in the archive."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    benchmark.pedantic(subprocess.run, args=(command,), kwargs={"check": True, "capture_output": True}, rounds=ROUNDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / ROUNDS
    gigabytes = 4e-9 * jsonfile.read(archive.step_folder(SELECTION) / "rows.json")["sampled_tokens"]
    benchmark.extra_info["gigabytes_of_ids"] = gigabytes
    benchmark.extra_info["gigabytes_per_second"] = gigabytes / benchmark.stats["median"]
    benchmark.extra_info["gigabytes_per_second_of_processor"] = gigabytes / seconds


@pytest.mark.benchmark(group="verify an archive of raw ids")
def test_verify(benchmark: BenchmarkFixture, large: Archive) -> None:
    measure(benchmark, large, sys.executable, "-m", "gatepost", "verify", str(large.root))


@pytest.mark.benchmark(group="verify an archive of raw ids")
def test_sha256sum_of_the_same_files(benchmark: BenchmarkFixture, large: Archive) -> None:
    files = [str(path) for path in large.root.rglob("*") if path.is_file()]
    measure(benchmark, large, "sha256sum", *files)


READ_AND_HASH = """
import hashlib, sys
import pyarrow.parquet as pq
sha = hashlib.sha256()
for batch in pq.ParquetFile(sys.argv[1]).iter_batches(batch_size=16, columns=["token_ids"]):
    sha.update(batch.column(0).values.buffers()[1])
print(sha.hexdigest())
"""


@pytest.mark.benchmark(group="verify an archive of raw ids")
def test_plain_pyarrow_read_and_hash(benchmark: BenchmarkFixture, large: Archive) -> None:
    """The least that anybody can do to say that the ids are those: decode them, hash them."""
    measure(benchmark, large, sys.executable, "-c", READ_AND_HASH, str(large.step_folder(SELECTION) / "rows.parquet"))
