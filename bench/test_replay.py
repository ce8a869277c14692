"""What a replay costs: whole processes, and the readers under it, each beside its alternative in the same run.

make bench        pytest-benchmark prints each group with ratios to its fastest member
"""

import json
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from gatepost import jsonfile
from gatepost.audit import rows as tables
from gatepost.evidence import Row
from gatepost.fingerprint import RowKey

ROOT = Path(__file__).resolve().parents[1]
ARCHIVES = sorted(path.parent for path in (ROOT / "receipts").glob("*/protocol.json"))
SAMPLES, TOKENS = 48, 1024


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """As many ids as the published run of study B has."""
    ids = array("i", range(TOKENS))
    lengths = array("i", [472] + [1] * (TOKENS - 1))
    return [Row(RowKey(f"task-{n // 3}", n % 3), n, 472, ids, lengths, "length", {}) for n in range(SAMPLES)]


def run(*command: str) -> None:
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.benchmark(group="process start to verdict")
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_replay(benchmark: BenchmarkFixture, archive: Path) -> None:
    benchmark.pedantic(run, args=("-m", "gatepost", "replay", str(archive)), rounds=5, warmup_rounds=1)


@pytest.mark.benchmark(group="process start to verdict")
def test_importing_pyarrow_alone(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(run, args=("-c", "import pyarrow.parquet"), rounds=5, warmup_rounds=1)


@pytest.mark.benchmark(group="a plain pytest run")
@pytest.mark.parametrize("plugin", ["gatepost", "no:gatepost"])
def test_plugin(benchmark: BenchmarkFixture, tmp_path: Path, plugin: str) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    options = ("-p", plugin) if plugin.startswith("no:") else ()
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(tmp_path), "--rootdir", str(tmp_path))
    benchmark.pedantic(run, args=command, rounds=8, warmup_rounds=1)


@pytest.mark.benchmark(group="read 48 x 1024 ids")
def test_parquet(benchmark: BenchmarkFixture, rows: list[Row], tmp_path: Path) -> None:
    tables.write_rows(tmp_path / "rows.parquet", rows)
    assert benchmark(tables.read_rows, tmp_path / "rows.parquet") == tuple(rows)


@pytest.mark.benchmark(group="read 48 x 1024 ids")
def test_jsonl(benchmark: BenchmarkFixture, rows: list[Row], tmp_path: Path) -> None:
    lines = [json.dumps({"ids": row.token_ids.tolist(), "lengths": [472] + [1] * (TOKENS - 1)}) for row in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    benchmark(lambda: [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()])


@pytest.mark.benchmark(group="parse a receipt")
@pytest.mark.parametrize("reader", ["strict", "json"])
def test_json_reader(benchmark: BenchmarkFixture, reader: str) -> None:
    checks = [
        {"name": f"check_{n}", "observed": n / 7, "relation": ">=", "limit": 0.8, "k": n, "n": 48} for n in range(300)
    ]
    data = jsonfile.canonical({"checks": checks})
    benchmark((lambda: jsonfile.loads(data, source="x")) if reader == "strict" else (lambda: json.loads(data)))
