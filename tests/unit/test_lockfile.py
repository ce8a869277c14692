"""A lock of the environment: what counts as a pin, and how it becomes part of the frozen plan."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.engines import inventory
from gatepost.engines.child import ChildSession
from gatepost.errors import DataError, GatepostError, IntegrityError, RegistrationError
from gatepost.freeze import FrozenPlan, plan
from gatepost.lockfile import read_pins
from gatepost.protocol import BoundFile, Protocol
from gatepost.replay import replay
from tests.archives import Project, create_project

SHIPPED = Path(__file__).resolve().parents[2] / "requirements" / "vllm-cuda.lock"
HASH = "--hash=sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("content", "pins"),
    [
        ("torch==2.11.0\n", {"torch": "2.11.0"}),
        ("torch==2.11.0", {"torch": "2.11.0"}),
        ("torch==2.11.0\r\nnumpy==2.3.5\r\n", {"torch": "2.11.0", "numpy": "2.3.5"}),
        ("# head\n\ntorch==2.11.0  # via vllm\n    # via x\n", {"torch": "2.11.0"}),
        ("torch == 2.11.0", {"torch": "2.11.0"}),
        ("torch==2.11.0+cu130", {"torch": "2.11.0+cu130"}),
        ("tokenspeed-triton==3.7.10.post20260531", {"tokenspeed-triton": "3.7.10.post20260531"}),
        ("a==1!2.0rc1", {"a": "1!2.0rc1"}),
        ("Huggingface_Hub==1.22.0", {"huggingface-hub": "1.22.0"}),
        ("ruamel.yaml-_.clib==1", {"ruamel-yaml-clib": "1"}),
        ("uvicorn[standard,extra]==0.50.0", {"uvicorn": "0.50.0"}),
        (f"torch==2.11.0 {HASH}", {"torch": "2.11.0"}),
        (f"torch==2.11.0 \\\n    {HASH} \\\n    {HASH}\n    # via vllm\nnumpy==1\n", {"torch": "2.11.0", "numpy": "1"}),
        ("torch==\\\n2.11.0\n", {"torch": "2.11.0"}),
    ],
)
def test_reads_what_pip_and_uv_write(tmp_path: Path, content: str, pins: dict[str, str]) -> None:
    path = tmp_path / "environment.lock"
    path.write_bytes(content.encode())
    assert read_pins(path) == pins


NO_PINS = {
    "nothing": (b"", "pins nothing, expected one package==version a line"),
    "comments alone": (b"# torch==2.11.0\n\n", "pins nothing"),
    "no version": (b"numpy==1\ntorch\n", ":2: 'torch' pins no single version, expected package==version"),
    "a range": (b"torch>=2.11.0\n", ":1: 'torch>=2.11.0' pins no single version"),
    "a compatible release": (b"torch~=2.11.0\n", ":1: .* pins no single version"),
    "two versions": (b"torch==2.11.0,<3\n", ":1: .* pins no single version"),
    "a wildcard": (b"torch==2.11.*\n", ":1: .* pins no single version"),
    "an arbitrary version": (b"torch===built-at-home\n", ":1: .* pins no single version"),
    "a version that is none": (b"torch==built-at-home\n", ":1: .* is no pin"),
    "one equals sign": (b"torch=2.11.0\n", ":1: .* is no pin"),
    "a file": (b"torch @ https://example.org/torch-2.11.0-py3-none-any.whl\n", ":1: .* pins no single version"),
    "a path": (b"./torch.whl\n", ":1: './torch.whl' is no pin"),
    "an editable install": (b"-e .\n", ":1: '-e .' is no pin"),
    "another lock": (b"-r other.lock\n", ":1: '-r other.lock' is no pin"),
    "an index": (b"--index-url https://example.org/simple\ntorch==1\n", ":1: .* is no pin"),
    "a marker": (
        b"torch==2.11.0 ; python_version >= '3.12'\n",
        ":1: torch has the marker .*python_version.*, expected package==version: resolve for one platform",
    ),
    "two in a line": (b"torch==2.11.0 numpy==1\n", ":1: .* is no pin"),
    "a hash that is none": (b"torch==2.11.0 --hash=sha256:xyz\n", ":1: .* is no pin"),
    "another option": (b"torch==2.11.0 --no-binary=torch\n", ":1: .* is no pin"),
    "a line that nothing continues": (b"torch==2.11.0 \\\n", ":1: .* is no pin"),
    "a fault behind a continued line": (b"torch==1 \\\n  " + HASH.encode() + b"\n\n?\n", r":4: '\?' is no pin"),
    "a fault on a continued line": (b"\ntorch==1 \\\n  numpy==1\n", ":2: .* is no pin"),
    "one twice": (b"torch==1\nnumpy==1\ntorch==1\n", ":3: torch is pinned on line 1 already"),
    "one twice, in two versions": (b"torch==1\ntorch==2\n", ":2: torch is pinned on line 1 already"),
    "one twice, spelt differently": (b"a-b==1\nA_B==1\n", ":2: a-b is pinned on line 1 already"),
    "one twice, with an extra": (b"a==1\na[b]==1\n", ":2: a is pinned on line 1 already"),
    "bytes": (b"torch==1\xff\n", "byte 8 is not UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbftorch==1\n", ":1: .* is no pin"),
}


@pytest.mark.parametrize("name", NO_PINS)
def test_refuses_what_is_no_lock(tmp_path: Path, name: str) -> None:
    content, message = NO_PINS[name]
    path = tmp_path / "environment.lock"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"environment.lock.*{message}"):
        read_pins(path)


LONG = 1_000_000
"""Bytes of a file that took minutes where a pattern tried each of its characters anew."""

LONG_LOCKS = {
    "spaces before a comment": (" " * LONG + "# a\na==1", {"a": "1"}),
    "spaces before nothing": ("a==1\n" + " " * LONG, {"a": "1"}),
    "spaces before a hash": ("a==1" + " " * LONG + HASH, {"a": "1"}),
    "spaces inside": ("a==1" + " " * LONG + "b", None),
    "tabs and spaces inside": ("a==1" + "\t " * (LONG // 2) + "b", None),
    "wide spaces inside": ("a==1" + "\u3000" * (LONG // 3) + "b", None),
    "continued lines": ("\\\n" * (LONG // 2) + "a==1", {"a": "1"}),
    "continued lines alone": ("a==1\n" + "\\\n" * (LONG // 2), {"a": "1"}),
    "hashes": ("a==1" + " --hash=sha256:ab" * (LONG // 17), {"a": "1"}),
    "continued hashes": ("a==1" + " \\\n --hash=sha256:ab" * (LONG // 20), {"a": "1"}),
    "hashes that are none": ("a==1 " + "--hash=" * (LONG // 7), None),
    "a hash without an end": ("a==1 --hash=a:" + "a" * LONG + "!", None),
    "comments": (" #" * (LONG // 2) + "\na==1", {"a": "1"}),
    "no comments": ("a" + "x#" * (LONG // 2), None),
    "a name": ("a" * LONG, None),
    "a name of dots": ("a." * (LONG // 2), None),
    "open brackets": ("a==1;" + "(" * LONG, None),
    "empty lines": ("\n" * LONG + "a==1", {"a": "1"}),
}


@pytest.mark.parametrize("name", LONG_LOCKS)
def test_a_long_lock_takes_no_longer_than_its_length(tmp_path: Path, name: str) -> None:
    content, pins = LONG_LOCKS[name]
    path = tmp_path / "environment.lock"
    path.write_text(content)
    began = time.process_time()
    if pins is None:
        with pytest.raises(DataError, match=r"environment\.lock:1: .*, expected package==version"):
            read_pins(path)
    else:
        assert read_pins(path) == pins
    assert time.process_time() - began < 2


def test_the_shipped_lock_is_the_published_environment() -> None:
    """The numbers are those of study A's published environment."""
    pins = read_pins(SHIPPED)
    assert len(pins) == 189
    assert (pins["vllm"], pins["torch"], pins["transformers"]) == ("0.24.0", "2.11.0", "5.13.0")
    assert "://" not in SHIPPED.read_text(), "a lock names no index"


# Binding


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path)


def locking(
    project: Project, lock: str, *, packages: str = "", path: str = "../../environment.lock"
) -> Callable[[str], str]:
    """Write a lock; returns the change to a draft that names it and has the selection judge the environment."""
    (project.root / "environment.lock").write_text(lock)

    def edit(text: str) -> str:
        assert "packages = {}\n" in text
        text = text.replace("packages = {}\n", f"lock = {path!r}\n{packages}\n")
        return text.replace("gates.toy_engine", "gates.environment = { version = 1 }\ngates.toy_engine", 1)

    return edit


def test_a_lock_is_bound_by_digest_and_registers_its_pins(project: Project) -> None:
    edit = locking(project, "Torch==2.11.0\nnumpy==2.3.5\n", packages='packages = { gatepost = "0.1.0" }')
    archive = project.freeze(edit=edit)
    assert archive.protocol.engine["packages"] == {"gatepost": "0.1.0", "numpy": "2.3.5", "torch": "2.11.0"}
    assert archive.protocol.locks == ("environment.lock",)
    assert "lock" not in archive.protocol.engine
    bound = archive.root / "bound" / "environment.lock"
    assert bound.read_text() == "Torch==2.11.0\nnumpy==2.3.5\n"
    archive.verify_bound("environment.lock")
    bound.write_text("torch==2.11.0\nnumpy==2.3.5\n")
    with pytest.raises(IntegrityError, match=r"bound/environment.lock: SHA-256 is .*, the protocol bound"):
        archive.locked_packages()


@pytest.mark.parametrize(
    ("lock", "packages", "path", "message"),
    [
        ("torch\n", "", "../../environment.lock", r"environment.lock:1: 'torch' pins no single version"),
        ("torch==1\n", "", "../../missing.lock", r"missing.lock: does not exist"),
        ("torch==1\n", 'packages = { torch = "1" }', "../../environment.lock", r"packages: torch is in the lock"),
        ("a-b==1\n", 'packages = { "A_B" = "2" }', "../../environment.lock", r"A_B is in the lock .* too, as 1"),
        ("torch==1\n", "packages = 1", "../../environment.lock", r"engine.packages is 1, expected a table"),
        ("torch==1\n", "packages = {}\nlocks = 1", "../../environment.lock", r"'locks' was unexpected"),
    ],
)
def test_refuses_a_draft(project: Project, lock: str, packages: str, path: str, message: str) -> None:
    with pytest.raises(GatepostError, match=message):
        project.freeze(edit=locking(project, lock, packages=packages, path=path))
    assert not (project.root / "receipts" / "toy").exists()


def test_a_lock_is_named_by_a_path(project: Project) -> None:
    edit = locking(project, "torch==1\n")
    with pytest.raises(RegistrationError, match=r"toy.toml: engine.lock is 5, expected a string"):
        project.freeze(edit=lambda text: edit(text).replace("lock = '../../environment.lock'", "lock = 5"))


def test_a_lock_that_is_bound_like_any_file_has_to_be_registered(project: Project) -> None:
    """Its pins would look registered, and no gate would compare them."""
    (project.root / "environment.lock").write_text("torch==1\n")
    entry = '\nbound = [{ path = "../../environment.lock", role = "lock" }]\n'
    with pytest.raises(RegistrationError, match=r"torch is missing, expected 1 as in environment\.lock"):
        project.freeze(edit=lambda text: text.replace("\n[study]", f"{entry}[study]"))
    named = project.freeze(
        edit=lambda text: text.replace("\n[study]", f"{entry}[study]").replace("packages = {}", 'packages.torch = "1"')
    )
    assert named.protocol.locks == ("environment.lock",)


@pytest.mark.parametrize(
    ("packages", "difference"),
    [
        ({"torch": "1", "numpy": "2"}, ""),
        ({"torch": "1", "numpy": "2", "more": "3"}, ""),
        ({"torch": "1"}, "protocol: could not be frozen: engine.packages: numpy is missing, expected 2 as in"),
        ({"torch": "1.0", "numpy": "2"}, "engine.packages: torch is 1.0, expected 1 as in environment.lock"),
        ({}, "engine.packages: torch is missing"),
    ],
)
def test_replay_compares_lock_and_protocol(project: Project, packages: dict[str, str], difference: str) -> None:
    """Who writes a protocol by hand may bind one lock and register another."""
    project.freeze("template", edit=locking(project, "torch==1\nnumpy==2\n"))
    draft = project.root / "studies" / "toy" / "template.toml"
    frozen = plan(draft, gates=project.gates, studies=project.studies)
    document = jsonfile.loads(frozen.data, source="test")
    document["id"], document["engine"]["packages"] = "forged", packages
    data = jsonfile.canonical(document)
    protocol = Protocol.from_json(document, digest=jsonfile.digest(data))
    archive = Archive.create(project.root / "receipts", FrozenPlan(protocol, data, frozen.bound))
    project.step(archive)
    differences = replay(archive.root, gates=project.gates, studies=project.studies).differences
    assert any(difference in line for line in differences) if difference else not differences


def test_a_draft_without_a_lock_binds_none(project: Project) -> None:
    protocol = project.freeze().protocol
    assert protocol.locks == ()
    assert all(isinstance(file, BoundFile) and file.role == "split" for file in protocol.bound)


# The gate, on what the child process of an engine really lists


def test_an_engine_in_the_locked_environment_is_let_through(project: Project) -> None:
    installed = inventory.installed()
    lock = "".join(f"{name}=={installed[name]}\n" for name in ("pytest", "packaging", "rfc8785"))
    archive = project.freeze(edit=locking(project, lock))
    project.step(archive)
    assert str(project.step(archive, ChildSession)) == "open: confirmation@32"
    step = archive.finished_steps()[1]
    verdict = next(v for v in archive.judgements()[step][0].verdicts if v.gate == "environment")
    assert [check.name for check in verdict.checks] == ["packaging", "pytest", "rfc8785", "registered_packages"]
    assert (verdict.checks[-1].k, verdict.checks[-1].n) == (3, 3)
    assert "pyarrow" in (verdict.checks[-1].note or "")
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful


def test_an_engine_in_another_environment_is_refused_before_it_samples(project: Project) -> None:
    archive = project.freeze(edit=locking(project, "pytest==0.0.1\nno-such-package==1.0\n"))
    project.step(archive)
    with pytest.raises(GatepostError) as caught:
        project.step(archive, ChildSession)
    assert "no-such-package missing == 1" in str(caught.value)
    assert "pytest" in str(caught.value)
    assert "registered_packages 0 == 1 (0/2)" in str(caught.value)
    assert [str(step) for step in archive.finished_steps()] == ["design"]
