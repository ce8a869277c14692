"""Whatever an engine's child does, the parent sees one error of the right kind, and no process is left."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gatepost.engine import EngineSpec
from gatepost.engines.child import ChildSession
from gatepost.errors import EngineError, MissingExtraError
from gatepost.testing import build_request, build_spec, collect

HELLO = {"hello": [{"role": "user", "content": "reverse"}]}

FAULTS = [
    ("crash", "crash", "crashed: RuntimeError: scripted crash"),
    ("exit", "crash", "exited with code 3"),
    ("kill", "crash", "was killed by SIGKILL"),
    ("out_of_memory", "out_of_memory", "ran out of memory: MemoryError: scripted lack of memory"),
    ("garbage", "garbage", "not JSON at line 1"),
    ("partial_line", "garbage", "exited in the middle of a message"),
    ("hang", "timeout", "said nothing for 1 s"),
    ("missing_package", "refused", "needs gatepost_scripted_missing_package, which is not installed"),
]


def _generate(session: ChildSession) -> None:
    (prompt,) = session.render(HELLO)
    collect(session, [build_request(prompt, session.facts())])


def _assert_gone(pid: int) -> None:
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)


def _spec(**options: object) -> EngineSpec:
    return build_spec(options=options, idle_timeout_seconds=1.0)


@pytest.mark.parametrize(("fault", "kind", "message"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_a_fault_while_generating(fault: str, kind: str, message: str) -> None:
    session = ChildSession(_spec(rules=[{"fault": fault, "fault_after_tokens": 3}]))
    with pytest.raises(EngineError, match=message) as caught:
        _generate(session)
    assert caught.value.kind == kind
    assert "engine 'scripted'" in str(caught.value)
    _assert_gone(session.pid)
    session.close()


@pytest.mark.parametrize(("fault", "kind", "message"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_a_fault_while_starting(fault: str, kind: str, message: str) -> None:
    spec = build_spec(options={"start_fault": fault}, start_timeout_seconds=1.0 if fault == "hang" else 60.0)
    with pytest.raises(EngineError, match=message) as caught:
        ChildSession(spec)
    assert caught.value.kind == kind


@pytest.mark.parametrize(("fault", "kind"), [("crash", "crash"), ("hang", "timeout"), ("garbage", "garbage")])
def test_a_fault_while_rendering(fault: str, kind: str) -> None:
    with ChildSession(_spec(render_fault=fault)) as session:
        with pytest.raises(EngineError, match="while rendering prompts") as caught:
            session.render(HELLO)
        assert caught.value.kind == kind
        _assert_gone(session.pid)


def test_a_fault_while_closing_still_reaps() -> None:
    session = ChildSession(_spec(close_fault="crash"))
    with pytest.raises(EngineError, match="while closing"):
        session.close()
    _assert_gone(session.pid)


def test_printing_to_stdout_is_no_fault() -> None:
    with ChildSession(_spec(rules=[{"fault": "noise"}], start_fault="noise", close_fault="noise")) as session:
        _generate(session)
    _assert_gone(session.pid)


def test_the_error_quotes_stderr_and_a_log_keeps_it(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    with pytest.raises(EngineError, match="scripted crash") as caught:
        ChildSession(_spec(start_fault="crash"), log_path=log)
    assert "last lines of its stderr:\n" in str(caught.value)
    assert 'raise RuntimeError("scripted crash")' in str(caught.value)
    assert "Traceback" in log.read_text()


def test_an_unread_generation_ends_the_child() -> None:
    session = ChildSession(_spec())
    (prompt,) = session.render(HELLO)
    stream = session.generate([build_request(prompt, session.facts())])
    next(stream)
    with pytest.raises(EngineError, match="is busy generating"):
        session.render(HELLO)
    stream.close()
    _assert_gone(session.pid)
    with pytest.raises(EngineError, match="the session has ended"):
        session.render(HELLO)
    assert session.facts().kind == "scripted"


def test_an_error_in_the_body_ends_the_child() -> None:
    with pytest.raises(KeyboardInterrupt), ChildSession(_spec()) as session:
        raise KeyboardInterrupt
    _assert_gone(session.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_the_child_goes_with_its_parent(number: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(number)
        assert parent.wait(30) != 0
    _wait_until_gone(pid)


PARENT = """
from gatepost.engines.child import ChildSession
from gatepost.testing import build_request, build_spec

with ChildSession(build_spec(options={"rules": [{"think_tokens": None, "stop": False}]})) as session:
    (prompt,) = session.render({"t": [{"role": "user", "content": "reverse"}]})
    facts = session.facts()
    requests = [build_request(prompt, facts, seed=seed, max_think_tokens=2000) for seed in range(2000)]
    for number, event in enumerate(session.generate(requests)):
        if number == 0:
            print(session.pid, flush=True)
"""


HANGING_PARENT = """
from gatepost.engines.child import ChildSession
from gatepost.testing import build_request, build_spec

with ChildSession(build_spec(options={"rules": [{"fault": "hang"}]})) as session:
    (prompt,) = session.render({"t": [{"role": "user", "content": "reverse"}]})
    print(session.pid, flush=True)
    list(session.generate([build_request(prompt, session.facts())]))
"""


def test_the_child_outlives_the_thread_that_started_it() -> None:
    """Linux ends a child with the thread that started it, and a pool ends its threads."""
    before = set(threading.enumerate())
    with ThreadPoolExecutor(1) as pool:
        session = pool.submit(ChildSession, build_spec()).result()
    with session:
        _generate(session)
    _assert_gone(session.pid)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) <= before, "no thread is left either"


def test_a_child_that_hangs_goes_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", HANGING_PARENT], stdout=subprocess.PIPE, env=_environment())
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.5)
        os.killpg(pid, 0)
        parent.kill()
    _wait_until_gone(pid)


def test_a_child_that_hangs_goes_after_the_pipe_is_closed() -> None:
    """As where no kernel ends it with its parent."""
    code = "import time; from gatepost.engines import serve as s; s.ORPHAN_SECONDS = 0; s.end_with_parent()"
    command = [sys.executable, "-c", f"{code}; time.sleep(60)"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, env=_environment(), start_new_session=True)
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(10) == -signal.SIGKILL


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process group {pid} is still there")


def test_an_unknown_engine_starts_nothing() -> None:
    with pytest.raises(EngineError, match="expected one of scripted, transformers, vllm, or module:Class") as caught:
        ChildSession(build_spec("vlm"))
    assert caught.value.kind == "refused"


def test_an_import_string_that_leads_nowhere() -> None:
    with pytest.raises(EngineError, match="needs gatepost_no_such_module, which is not installed"):
        ChildSession(build_spec("gatepost_no_such_module:Engine"))
    with pytest.raises(EngineError, match=r"gatepost\.engines\.scripted has no engine Absent"):
        ChildSession(build_spec("gatepost.engines.scripted:Absent"))


def test_a_missing_extra_names_its_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transformers_spec: Callable[..., EngineSpec]
) -> None:
    # The import system's own way to say that a module is not there, whatever is installed.
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"pip install 'gatepost\[transformers\]'$"):
        ChildSession(transformers_spec())


ENGINES = '''
import math, os, subprocess, sys
from dataclasses import replace
from gatepost.engines.channel import Channel
from gatepost.engines.scripted import ScriptedEngine
from gatepost.engines.wire import MAX_LINE_BYTES, Generated

class NotANumber(ScriptedEngine):
    def facts(self):
        return replace(super().facts(), environment={"ratio": math.nan})

class NotAnEvent(ScriptedEngine):
    def generate(self, requests):
        yield {"finish_reason": "stop"}

class OutOfTurn(ScriptedEngine):
    def render(self, conversations):
        Channel.current.send(Generated())
        return super().render(conversations)

class Endless(ScriptedEngine):
    def render(self, conversations):
        Channel.current.write(b"x" * (MAX_LINE_BYTES + 1))

class OutOfDeviceMemory(ScriptedEngine):
    def render(self, conversations):
        raise RuntimeError("CUDA error: out of memory")

class Orphaning(ScriptedEngine):
    """Dies and leaves a process behind that holds every pipe open."""
    def render(self, conversations):
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "600"])
        for descriptor in range(3, 20):
            try:
                os.set_inheritable(descriptor, True)
            except OSError:
                pass
        subprocess.Popen(["sleep", "600"], close_fds=False)
        os._exit(4)
'''


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("NotANumber", "garbage", "the engine answered garbage"),
        ("NotAnEvent", "garbage", "a dict is not a message"),
        ("OutOfTurn", "garbage", "a Generated message out of turn"),
        ("Endless", "garbage", "bytes, expected at most"),
        ("OutOfDeviceMemory", "out_of_memory", "CUDA error: out of memory"),
        ("Orphaning", "crash", "exited with code 4"),
    ],
)
def test_an_engine_of_ones_own_that_misbehaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, message: str
) -> None:
    (tmp_path / "gatepost_misbehaving.py").write_text(textwrap.dedent(ENGINES))
    monkeypatch.syspath_prepend(tmp_path)
    with (
        pytest.raises(EngineError, match=message) as caught,
        ChildSession(build_spec(f"gatepost_misbehaving:{name}")) as session,
    ):
        _generate(session)
    assert caught.value.kind == kind


def test_the_parent_stays_free_of_the_engines_packages(transformers_spec: Callable[..., EngineSpec]) -> None:
    program = (
        "import sys, gatepost.engines.child, gatepost.engines.transformers, gatepost.testing\n"
        "assert not {'torch', 'transformers', 'vllm', 'pytest'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=_environment())
