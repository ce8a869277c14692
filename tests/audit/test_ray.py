"""The audit on Ray, on a real cluster of two workers: the same answers and refusals as here, also if workers die."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from gatepost.audit import LoopRule, audit, audit_batch, write_batches
from gatepost.audit.tables import audit_each
from gatepost.errors import DataError, GatepostError
from tests.audit.faulty_rows import FAULTY, write_pieces
from tests.audit.row_tables import SUFFIXES, mixed_rows

ray = pytest.importorskip("ray", reason="needs the extra ray: make test-ray")

from gatepost.audit import on_ray as on_ray_module  # noqa: E402
from gatepost.audit.on_ray import MAX_TRIES, audit_files  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Ray's of itself
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RULE = LoopRule(256, 64, 0.99)
RECEIPTS = Path(__file__).resolve().parents[2] / "receipts"
by_rule = partial(audit_batch, rule=RULE)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20, log_to_driver=False)
    yield
    ray.shutdown()


def on_ray(files: list[Path], work: Callable[[pa.RecordBatch], pa.RecordBatch] = by_rule) -> list[pa.RecordBatch]:
    with closing(audit_files(files, work)) as results:
        return [batch for _, batches in results for batch in batches]


def here(files: list[Path]) -> list[dict[str, object]]:
    return [row for _, batches in audit_each(files, RULE) for batch in batches for row in batch.to_pylist()]


def rows_in(batches: list[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_every_format_gives_the_table_that_it_gives_here(tmp_path: Path) -> None:
    files = [write_pieces(tmp_path / f"rows{suffix}") for suffix in SUFFIXES]
    assert audit(files, RULE, ray="auto") == audit(files, RULE)


def test_receipts_give_the_table_that_they_give_here() -> None:
    assert audit(RECEIPTS, ray="auto") == audit(RECEIPTS)


def test_paths_mean_what_they_mean_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers were started in another folder than this one."""
    write_pieces(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    assert rows_in(on_ray([Path("rows.parquet")])) == here([Path("rows.parquet")])
    with pytest.raises(DataError, match=r"^rows\.npz: does not exist"):
        on_ray([Path("rows.npz")])


def test_all_faults_at_once_are_each_refused_as_here(tmp_path: Path) -> None:
    """A file behind a good one, and before one with another fault: the first by order is raised."""
    good = write_pieces(tmp_path / "good.parquet")
    for name, fault in FAULTY.items():
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        path, format = fault(folder)
        if format is not None:  # that of all files
            continue
        files = [good, path, tmp_path / "absent.npz"]
        with pytest.raises(DataError) as by_order:
            here(files)
        with pytest.raises(DataError) as refused:
            on_ray(files)
        assert str(refused.value) == str(by_order.value), name
        assert type(refused.value) is type(by_order.value), name


def test_a_sample_that_comes_twice_in_two_pieces(tmp_path: Path) -> None:
    rows = mixed_rows(24)
    path = write_pieces(tmp_path / "rows.parquet", [rows.slice(0, 8), rows.slice(8, 16), rows.slice(5, 1)])
    with pytest.raises(DataError, match=r"row 24 is of the same task and sample as row 5$"):
        on_ray([path])


def test_ones_own_audit(tmp_path: Path) -> None:
    def count(rows: pa.RecordBatch) -> pa.RecordBatch:
        ids = pa.array([len(ids) for ids in rows.column("token_ids").to_pylist()])
        return pa.RecordBatch.from_arrays([*rows.columns[:2], ids], names=["task_id", "sample_index", "ids"])

    found = rows_in(on_ray([write_pieces(tmp_path / "rows.parquet")], count))
    assert found[13] == {"task_id": "task-4", "sample_index": 1, "ids": 600}
    assert len(found) == 24


@pytest.mark.parametrize(("suffix", "tasks_per_cpu"), [(".parquet", 16), (".parquet", 1), (".arrow", 16), (".npz", 16)])
def test_a_worker_that_is_killed_changes_nothing(
    tmp_path: Path, suffix: str, tasks_per_cpu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From outside, in the middle of a piece: it waits for that, the first time that it is begun."""
    monkeypatch.setattr(on_ray_module, "TASKS_PER_CPU", tasks_per_cpu)
    path, pids = write_pieces(tmp_path / f"rows{suffix}"), tmp_path / "pids"
    pids.mkdir()

    def waits_to_be_killed(rows: pa.RecordBatch) -> pa.RecordBatch:
        in_the_middle = "task-4" in rows.column("task_id").to_pylist()
        if in_the_middle and not any(pids.iterdir()):
            (pids / str(os.getpid())).touch()
            time.sleep(600)
        if in_the_middle:
            (pids / f"{os.getpid()}-again").touch()
        return audit_batch(rows, rule=RULE)

    found = kill_meanwhile(pids, lambda: on_ray([path], waits_to_be_killed))
    assert rows_in(found) == here([path])
    (killed,) = (name for name in names(pids) if name.isdecimal())
    assert not Path("/proc", killed).exists()
    (again,) = (name for name in names(pids) if name.endswith("-again"))
    assert again != f"{killed}-again"


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def kill_meanwhile(pids: Path, work: Callable[[], list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
    """Kill the process that names itself in a folder while the work goes on."""
    from threading import Thread

    def kill() -> None:
        deadline = time.monotonic() + 120
        while not any(pids.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(int(names(pids)[0]), signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    try:
        return work()
    finally:
        killer.join()


@pytest.mark.parametrize("tasks_per_cpu", [16, 1])
@pytest.mark.parametrize(("suffix", "piece"), [(".parquet", "piece 3"), (".arrow", "piece 3"), (".npz", "all of it")])
def test_a_piece_that_kills_every_worker(
    tmp_path: Path, suffix: str, piece: str, tasks_per_cpu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone in a task, or behind other pieces."""
    monkeypatch.setattr(on_ray_module, "TASKS_PER_CPU", tasks_per_cpu)
    good, path = write_pieces(tmp_path / "good.parquet"), write_pieces(tmp_path / f"rows{suffix}")
    tries = tmp_path / "tries"

    def kills(rows: pa.RecordBatch) -> pa.RecordBatch:
        if rows.column("finish_reason")[0].as_py() == "poison":
            with tries.open("a") as log:
                log.write(f"{os.getpid()}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return audit_batch(rows, rule=RULE)

    batches = [mixed_rows(24).slice(start, 4) for start in range(0, 24, 4)]
    poisoned = batches[3].to_pylist()
    poisoned[0]["finish_reason"] = "poison"
    batches[3] = pa.RecordBatch.from_pylist(poisoned, schema=batches[3].schema)
    path.unlink()
    write_pieces(path, batches if suffix != ".npz" else batches[3:])
    with pytest.raises(GatepostError) as refused:
        on_ray([good, path], kills)
    assert str(refused.value).startswith(f"{path}: {piece}: each of the {MAX_TRIES} workers that began it died")
    assert len(set(tries.read_text().split())) == MAX_TRIES


def test_a_bug_of_an_audit_is_no_refusal(tmp_path: Path) -> None:
    def bug(rows: pa.RecordBatch) -> pa.RecordBatch:
        raise ZeroDivisionError("of the audit")

    with pytest.raises(Exception, match="of the audit") as raised:
        on_ray([write_pieces(tmp_path / "rows.parquet")], bug)
    assert not isinstance(raised.value, GatepostError)


def test_the_cluster_that_was_there_stays(tmp_path: Path) -> None:
    write_batches(tmp_path / "rows.npz", [mixed_rows(12)])
    audit(tmp_path / "rows.npz", RULE, ray="local")
    assert ray.is_initialized()
