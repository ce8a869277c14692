"""What auditing rows costs: whole commands from process start to exit, and the parts, beside what one would write.

Rows are study A's mix, see ``bench/audit_rows.py``: loops of the published periods, half of them noisy, and texts.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from pytest_benchmark.fixture import BenchmarkFixture

from bench.turns import TABLE, Goal, Measured, Work, in_turns
from gatepost.audit.row_model import Place, checked_rows, id_list, token_count
from tests.audit.row_tables import rows_of

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "bench" / "audit_rows.py"
MAX_PEAK_KIB = 300 * 1024
NAIVE = "JSONL, json and the naive detector"

SIZES = {
    (48, 49_152): {"parquet": 5, "arrow": 7.5, "npz": 7.5},
    (1_000, 8_192): {"parquet": 25, "arrow": 40},
}
"""Samples and ids of each -> format and how many times as fast."""


def python(*command: str, environment: Mapping[str, str] | None = None) -> str:
    run = [sys.executable, *command]
    return subprocess.run(run, cwd=ROOT, check=True, capture_output=True, text=True, env=environment).stdout


def write_rows(path: Path, count: int, tokens: int) -> Path:
    python(str(ROWS), "rows", str(path), str(count), str(tokens))
    return path


def by_naive(path: Path) -> Work:
    return lambda: json.loads(python(str(ROWS), "naive", str(path)))


def by_command(path: Path) -> Work:
    def work() -> list[list[float] | None]:
        (file,) = json.loads(python("-m", "gatepost", "audit", str(path), "--json"))["files"]
        return [None if row["period"] is None else [row["period"], row["match_rate"]] for row in file["rows"]]

    return work


@pytest.mark.benchmark(group="whole command")
@pytest.mark.parametrize(("count", "tokens"), SIZES)
def test_command(benchmark: BenchmarkFixture, tmp_path: Path, count: int, tokens: int) -> None:
    lines = write_rows(tmp_path / "rows.jsonl", count, tokens)
    works = {
        f"gatepost audit, {suffix}": (
            by_command(write_rows(tmp_path / f"rows.{suffix}", count, tokens)),
            Goal(factor),
        )
        for suffix, factor in SIZES[count, tokens].items()
    }
    in_turns(benchmark, f"{count} x {tokens} ids", (NAIVE, by_naive(lines)), works, rounds=5 if count < 100 else 3)


PEAK = """
import sys
from gatepost.__main__ import main
main(sys.argv[1:])
sys.stdout.flush()
with open("/proc/self/status") as status:
    print(status.read().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""


def cost(path: Path) -> tuple[float, int]:
    """Processor seconds of an audit, which a busy machine stretches less than the clock's, and its peak in KiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "audit", str(path)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(done.stderr.split()[-1])  # behind lines of progress


@pytest.mark.benchmark(group="whole command")
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_ten_times_the_samples(benchmark: BenchmarkFixture, tmp_path: Path, suffix: str) -> None:
    few, many = (write_rows(tmp_path / f"{count}.{suffix}", count, 8_192) for count in (10_000, 100_000))
    costs: dict[Path, list[tuple[float, int]]] = {few: [], many: []}

    def round_of_all() -> None:
        for path in (few, many, few):
            costs[path].append(cost(path))

    benchmark.pedantic(round_of_all, rounds=1)
    small, ((large_seconds, large_kib),) = costs[few], costs[many]
    for work, ratios in (
        ("processor time a sample", [large_seconds / 10 / seconds for seconds, _ in small]),
        ("peak memory", [large_kib / peak_kib for _, peak_kib in small]),
    ):
        name, seconds = f"gatepost audit, {suffix}, 100 000 x 8192 ids: {work}", min(seconds for seconds, _ in small)
        row = Measured(name, "the same at 10 000", Goal(1.1, of_its_time=True), seconds, tuple(ratios))
        TABLE.append(row)
        benchmark.extra_info[work] = str(row)
    benchmark.extra_info["peak_kib"] = large_kib
    assert large_kib < MAX_PEAK_KIB


ROW_SCHEMA = {
    "type": "object",
    "required": ["task_id", "sample_index", "token_ids"],
    "properties": {
        "task_id": {"type": "string", "minLength": 1},
        "sample_index": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        "token_ids": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}},
    },
}


VALIDATED_ROWS = 8


@pytest.mark.benchmark(group="row validation")
def test_row_validation(benchmark: BenchmarkFixture) -> None:
    ids = np.random.default_rng(1).integers(0, 151_936, 49_152, dtype=np.int32)
    batch, plain = rows_of([ids] * VALIDATED_ROWS), ids.tolist()
    rows = [{"task_id": "task-0", "sample_index": number, "token_ids": plain} for number in range(VALIDATED_ROWS)]
    validator, place = Draft202012Validator(ROW_SCHEMA), Place(Path("rows"), None, 0)

    def by_schema() -> int:
        for row in rows:
            validator.validate(row)
        return VALIDATED_ROWS * len(plain)

    works: dict[str, tuple[Work, Goal]] = {
        "validation on columns": (lambda: token_count(checked_rows(batch, place)), Goal(5_000)),
        "validation on lists": (lambda: sum(len(id_list(row["token_ids"], "token_ids")) for row in rows), Goal(100)),
    }
    work = f"{VALIDATED_ROWS} rows of 49 152 ids"
    in_turns(benchmark, work, ("jsonschema over whole rows", by_schema), works)


ROWS_OF_TEST = "ROWS = [{'task_id': f't{n}', 'sample_index': 0, 'period': None} for n in range(10_000)]\n"
PARAMETRISED = f"""import pytest
{ROWS_OF_TEST}
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{{row['task_id']}}/{{row['sample_index']}}")
def test_no_sample_loops(row):
    assert row["period"] is None
"""
EACH_ROW = f"""
{ROWS_OF_TEST}
def test_no_sample_loops(each_row):
    each_row(ROWS, lambda row: row["period"] and f"period {{row['period']}}")
"""


@pytest.mark.benchmark(group="gate over rows")
def test_gate_over_rows(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    def run(name: str, code: str) -> Work:
        path = tmp_path / f"test_{name}.py"
        path.write_text(code)
        # What other plugins take to start is none of this.
        alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        options = ["-q", "-p", "gatepost.plugin", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]

        def work() -> bool:
            return " passed in " in python("-m", "pytest", *options, str(path), environment=alone)

        return work

    works = {"a gate over rows, whole pytest run": (run("each_row", EACH_ROW), Goal(15))}
    baseline = ("one parametrised pytest item per row", run("parametrised", PARAMETRISED))
    in_turns(benchmark, "10 000 rows, none failing", baseline, works)
