"""A wheel, an editable install and a checkout all find gates, schemas and studies; the core stays light."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gatepost import bundled
from gatepost.approve import approve
from gatepost.errors import DataError
from tests.approvals import freeze, make_keys
from tests.archives import create_project

ROOT = Path(__file__).resolve().parents[2]
MAX_CORE_BYTES = 320 * 10**6


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def tracked(folder: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


def test_the_wheel_holds_what_the_checkout_holds(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {path.removeprefix("src/") for path in tracked("src")}
    expected |= {f"gatepost/{path}" for folder in ("gates", "schemas") for path in tracked(folder)}
    expected |= {f"gatepost/{path}" for path in tracked("studies") if not path.endswith("make_tasks.py")}
    assert expected <= names
    strangers = {name for name in names - expected if ".dist-info/" not in name}
    assert not strangers, "nothing else is shipped"
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_an_unpacked_wheel_finds_its_folders_and_replays(unpacked: Path, tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.run(archive)
    program = (
        "from gatepost import bundled; import gatepost, sys\n"
        "print(*(bundled.folder(name) for name in ('gates', 'schemas', 'studies')))\n"
        "from gatepost.__main__ import main\n"
        f"sys.exit(main(['replay', {str(archive.root)!r}, '--gates', 'gates']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    folders, *report = done.stdout.splitlines()
    assert folders.split() == [str(unpacked / "gatepost" / name) for name in ("gates", "schemas", "studies")]
    assert any("decision: REPLICATED selected=32" in line for line in report)


def test_a_wheel_beside_the_checkout_that_it_is_from(unpacked: Path, tmp_path: Path) -> None:
    """Every shipped gate and task domain is there twice: a copy is no fault, and one that differs is named."""
    for name in ("gates", "studies", "receipts/native-seam-replicated"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}

    def run(*command: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    commands = (
        ("gatepost", "replay", "receipts/native-seam-replicated"),
        ("pytest", "-q", "-m", "cpu", "receipts", "-p", "no:cacheprovider"),
    )
    for command in commands:
        status, said = run(*command)
        assert status == 0, said
        assert "decision: NATURAL_SEAM_REPLICATED selected=160" in said
    for name, what in (
        ("gates/natural_close.py", "gate natural_close version 1"),
        ("studies/native_seam/domain.py", "VERSION 1 of study native_seam"),
    ):
        changed, shipped = tmp_path / name, unpacked / "gatepost" / name
        original = changed.read_bytes()
        changed.write_bytes(original + b"# changed\n")
        for command in commands:
            status, said = run(*command)
            assert status == 1
            assert f"{what} is defined in {shipped}" in said
            assert "and the files differ; change " in said
            assert f"{name}: another " in said
        changed.write_bytes(original)


def test_an_editable_install_finds_the_checkout() -> None:
    assert bundled.folder("gates") == ROOT / "gates"
    with pytest.raises(DataError, match="installation is incomplete"):
        bundled.folder("no_such_folder")


@pytest.fixture(scope="module")
def core_python() -> Path:
    """The environment with the core alone, made as a user's would be."""
    subprocess.run(["make", "--silent", ".venv-core/.installed"], cwd=ROOT, check=True, capture_output=True)
    return ROOT / ".venv-core" / "bin" / "python"


def test_the_core_has_no_engine_and_stays_small(core_python: Path) -> None:
    site = next((core_python.parent.parent / "lib").glob("python*/site-packages"))
    heavy = {"torch", "transformers", "vllm", "tokenizers", "safetensors"}
    assert not {path.name for path in site.iterdir()} & heavy
    size = sum(path.lstat().st_size for path in core_python.parent.parent.rglob("*") if path.is_file())
    assert size < MAX_CORE_BYTES, f"{size / 1e6:.0f} MB"


def test_the_core_replays_and_refuses_an_engine_in_one_sentence(core_python: Path, tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.run(archive)
    pytest_run = [str(core_python), "-m", "pytest", "-q", "-m", "cpu", "receipts", "-p", "no:cacheprovider"]
    done = subprocess.run(pytest_run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "decision: REPLICATED selected=32" in done.stdout
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    program = (
        "from gatepost.engines.child import ChildSession\n"
        "from gatepost.testing import build_spec\n"
        "options = dict(device='cpu', dtype='float32', attention='sdpa', use_cache=True, max_model_len=64,"
        " threads=1, deterministic=False)\n"
        f"ChildSession(build_spec('transformers', model_path={str(tmp_path)!r}, options=options))"
    )
    refused = subprocess.run([str(core_python), "-c", program], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "not installed: pip install 'gatepost[transformers]'" in refused.stderr.splitlines()[-1]


def test_the_archives_in_the_repository_replay_with_the_core_alone(core_python: Path, tmp_path: Path) -> None:
    archives = shutil.copytree(ROOT / "receipts", tmp_path / "receipts")
    command = [str(core_python), "-m", "pytest", "-q", "-m", "cpu", str(archives), "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_core_takes_no_signature_for_good(core_python: Path, tmp_path: Path) -> None:
    """A replay of approved steps is inconclusive where there is no crypto library, and nothing starts."""
    project, keys = create_project(tmp_path / "project"), make_keys(tmp_path / "keys")
    archive = freeze(project, keys)
    for name in ("alice", "bob"):
        approve(archive, "selection", keys[name], statement="GO")
    project.step(archive)
    project.step(archive)
    pytest_run = [str(core_python), "-m", "pytest", "-m", "cpu", "receipts", "-p", "no:cacheprovider"]
    done = subprocess.run(pytest_run, cwd=project.root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = "approvals: inconclusive: their signatures cannot be checked here: pip install 'gatepost[approval]'"
    failures = [line for line in done.stdout.splitlines() if said in line and not line.startswith("FAILED")]
    assert len(failures) > 1
    assert "not faithful" not in done.stdout, "what nobody checked is no forgery"
    command = [str(core_python), "-m", "gatepost"]
    for arguments in (["verify", "receipts/toy"], ["keygen", "key"], ["replay", "receipts/toy"]):
        done = subprocess.run([*command, *arguments], cwd=project.root, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "pip install 'gatepost[approval]'" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
