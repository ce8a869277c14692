"""``gatepost audit --ray``: the bytes that it prints, what it says without a cluster, and that nothing of one stays."""

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gatepost.__main__ import main
from tests.audit.faulty_rows import write_pieces
from tests.audit.row_tables import mixed_rows, rows_of
from tests.audit.traces import loop, text

RULE = ["--tail-tokens", "256", "--max-period-tokens", "64"]
SAMPLES, PIECE = 10_000, 125
needs_ray = pytest.mark.usefixtures("_ray")


@pytest.fixture
def _ray() -> None:
    pytest.importorskip("ray", reason="needs the extra ray: make test-ray")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand samples in eighty row groups."""
    rng = np.random.default_rng(11)
    traces = [text(rng, 400) if number % 5 else loop(rng, 400, period=7 + number // 50) for number in range(500)]
    whole = rows_of([traces[number % 500] + np.int32(number // 500) for number in range(SAMPLES)])
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    return write_pieces(path, [whole.slice(start, PIECE) for start in range(0, SAMPLES, PIECE)])


class Command:
    """The command as a process; whatever it starts can be told by a mark in its environment."""

    def __init__(self, *arguments: str) -> None:
        self._mark = f"GATEPOST_TEST_MARK={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gatepost", "audit", *arguments],
            env={**os.environ, name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ends(self) -> tuple[int, bytes, str]:
        """Status, output and what was said, once it has ended; nothing that it started is there any more."""
        out, said = self.process.communicate(timeout=240)
        deadline = time.monotonic() + 20
        while (left := list(self.processes())) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert left == []
        return self.process.returncode, out, said.decode()

    def processes(self) -> Iterator[tuple[int, str]]:
        """Number and title of each process that is still there."""
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                        yield int(folder.name), (folder / "cmdline").read_bytes().decode()
                except OSError:  # it ended
                    continue

    def worker_at_work(self) -> int:
        """The first process that audits a piece, as soon as there is one."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            for number, title in self.processes():
                if title.startswith("ray::MapBatches("):
                    return number
            time.sleep(0.01)
        raise AssertionError(f"no worker was at work: {self.process.communicate()}")


def short_folders() -> set[str]:
    return {path.name for path in Path("/tmp").glob("gatepost-*")}


@needs_ray
def test_ten_thousand_samples_give_the_same_bytes(rows: Path) -> None:
    before = short_folders()
    arguments = [str(rows), *RULE, "--json"]
    status, here, said = Command(*arguments).ends()
    assert (status, said) == (0, "")
    status, on_ray, said = Command(*arguments, "--ray", "local").ends()
    assert status == 0, said
    assert on_ray == here
    assert on_ray.count(b'"task_id"') == SAMPLES
    assert short_folders() <= before


@needs_ray
def test_a_killed_worker_changes_no_byte(rows: Path) -> None:
    """Ray says on standard output that a worker died: it must not end up in the document."""
    arguments = [str(rows), *RULE, "--json", "--nearest"]
    _, here, _ = Command(*arguments).ends()
    command = Command(*arguments, "--ray", "local")
    os.kill(killed := command.worker_at_work(), signal.SIGKILL)
    status, on_ray, said = command.ends()
    assert status == 0, said
    assert f"Worker PID: {killed}" in said
    assert on_ray == here


@needs_ray
@pytest.mark.parametrize("output", [["--json"], ["-o", "audit.json"], []])
def test_a_refusal_is_the_one_of_here_and_nothing_is_half_written(
    rows: Path, tmp_path: Path, output: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"task_id": "t", "sample_index": 0, "token_ids": [1, true]}\n')
    arguments = [str(rows), "bad.jsonl", *RULE, *output]
    here = Command(*arguments).ends()
    assert here[2] == "gatepost: bad.jsonl:1: token_ids[1] is True, expected a whole number in [0, 2147483648)\n"
    assert Command(*arguments, "--ray", "local").ends() == here == (1, b"", here[2])
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.jsonl"]


@needs_ray
def test_an_interrupted_audit_leaves_nothing(rows: Path, tmp_path: Path) -> None:
    before = short_folders()
    output = tmp_path / "audit.json"
    command = Command(str(rows), *RULE, "--nearest", "--ray", "local", "-o", str(output))
    command.worker_at_work()
    command.process.send_signal(signal.SIGINT)
    status, _, _ = command.ends()
    assert status != 0
    assert list(tmp_path.iterdir()) == []
    assert short_folders() <= before


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@needs_ray
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("auto", "Could not find any running Ray instance"),
        ("127.0.0.1:PORT", "refused"),
        ("ray://127.0.0.1:PORT", "refused"),
        ("nonsense", "nonsense"),
        ("", "expected local, auto, HOST:PORT or ray://HOST:PORT"),
    ],
)
def test_no_cluster_there(
    rows: Path, address: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))  # where Ray notes the cluster that runs on this machine
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    address = address.replace("PORT", str(free_port()))
    started = time.monotonic()
    status, out, said = Command(str(rows), "--ray", address).ends()
    assert (status, out) == (1, b"")
    assert said.startswith(f"gatepost: no Ray cluster at {address!r}: ")
    assert problem in said
    assert said.count("\n") == 1
    assert time.monotonic() - started < 30


def test_ray_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    path = write_pieces(tmp_path / "rows.parquet", [mixed_rows(12)])
    assert main(["audit", str(path), *RULE, "--ray", "local", "--json"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith("the audit on Ray needs ray, which is not installed: pip install 'gatepost[ray]'\n")
