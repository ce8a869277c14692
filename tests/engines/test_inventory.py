"""Case i5: the package list is taken before the import, first entry wins, two entries in one folder are a fault."""

from pathlib import Path

import pytest

from gatepost.engines.child import ChildSession
from gatepost.engines.inventory import changed, installed
from gatepost.errors import EngineError
from gatepost.testing import build_spec


def _install(folder: Path, name: str, version: str) -> Path:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return info


def test_the_first_entry_on_the_path_wins(tmp_path: Path) -> None:
    _install(tmp_path / "site", "AlphaLib", "4.3")
    _install(tmp_path / "site/tool/_vendor", "alphalib", "4.1")
    path = [str(tmp_path / "site"), str(tmp_path / "site/tool/_vendor")]
    assert installed(path) == {"alphalib": "4.3"}
    assert installed(path[::-1]) == {"alphalib": "4.1"}


def test_two_entries_in_one_folder_are_a_fault(tmp_path: Path) -> None:
    _install(tmp_path, "some_engine", "0.23.9")
    _install(tmp_path, "Some.Engine", "0.24.0")
    with pytest.raises(EngineError, match=r"2 entries for some-engine \(0\.23\.9, 0\.24\.0\)") as caught:
        installed([str(tmp_path)])
    assert caught.value.kind == "refused"


def test_a_folder_listed_twice_counts_once(tmp_path: Path) -> None:
    _install(tmp_path / "site", "engine", "0.24.0")
    (tmp_path / "alias").symlink_to(tmp_path / "site")
    assert installed([str(tmp_path / name) for name in ("site", "site/", "alias")]) == {"engine": "0.24.0"}


def test_what_an_uninstaller_left_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "engine-0.23.9.dist-info").mkdir()
    assert installed([str(tmp_path), str(tmp_path / "absent")]) == {}


def test_changes_since_show(tmp_path: Path) -> None:
    path = [str(tmp_path)]
    info = _install(tmp_path, "engine", "0.24.0")
    before = installed(path)
    assert changed(before, path) == {}
    _install(tmp_path, "engine", "0.25.1")
    _install(tmp_path, "other", "1.0")
    assert changed(before, path) == {"engine": ["0.24.0", "0.24.0 and 0.25.1"], "other": [None, "1.0"]}
    (info / "METADATA").unlink()
    assert changed(before, path)["engine"] == ["0.24.0", "0.25.1"]


def test_a_child_lists_before_it_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing this engine extends the search path and upgrades a package in place."""
    _install(tmp_path / "site", "gatepost-fake-engine", "0.24.0")
    (tmp_path / "site/gatepost_fake_engine.py").write_text(
        "import pathlib, sys\n"
        "from gatepost.engines.scripted import ScriptedEngine as Engine\n"
        "here = pathlib.Path(__file__).parent\n"
        "sys.path.append(str(here / '_vendor'))\n"
        "old = here / 'gatepost-fake-engine-0.24.0.dist-info/METADATA'\n"
        "old.write_text(old.read_text().replace('0.24.0', '0.25.1'))\n"
    )
    _install(tmp_path / "site/_vendor", "pytest", "0.1")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with ChildSession(build_spec("gatepost_fake_engine:Engine")) as session:
        facts = session.facts()
    assert facts.versions["gatepost-fake-engine"] == "0.24.0"
    assert facts.versions["pytest"] == pytest.__version__
    assert facts.environment["versions_changed"] == {"gatepost-fake-engine": ["0.24.0", "0.25.1"]}
    assert facts.environment["search_path_added_folders"] == 1


def test_a_child_refuses_a_doubtful_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "engine", "0.23.9")
    _install(tmp_path, "engine", "0.24.0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EngineError, match="2 entries for engine") as caught:
        ChildSession(build_spec())
    assert caught.value.kind == "refused"
