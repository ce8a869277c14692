"""``gatepost detach``: when it moves what, and what it refuses."""

import shutil
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.__main__ import NOT_ALL, main
from gatepost.errors import GatepostError, IntegrityError
from tests.elsewhere.conftest import MOVED, ROWS, Home
from tests.faults.conftest import problem, replayed


def test_nothing_is_added_to_an_archive_whose_evidence_lies_elsewhere(detached: Home) -> None:
    with pytest.raises(GatepostError, match="no step is open"):
        detached.project.step(detached.archive)
    with pytest.raises(IntegrityError, match=r"elsewhere\.json: its evidence lies elsewhere, so nothing can be added"):
        detached.archive.write_catalog()


def test_a_second_time_moves_nothing(detached: Home) -> None:
    before = {path: path.read_bytes() for path in sorted(detached.store.iterdir())}
    assert detached.detach() == []
    assert {path: path.read_bytes() for path in sorted(detached.store.iterdir())} == before


def test_only_what_is_longer_is_moved(home: Home) -> None:
    sizes = sorted((home.archive.root / name).stat().st_size for name in MOVED)
    assert home.detach(over_bytes=sizes[-1]) == []
    assert not (home.archive.root / "elsewhere.json").exists()
    assert len(home.detach(over_bytes=sizes[-1] - 1)) == 1
    assert replayed(home.project, home.archive.root, evidence=home.store).unjudged == ()


def test_in_two_turns(home: Home) -> None:
    sizes = {name: (home.archive.root / name).stat().st_size for name in MOVED}
    (first,) = home.detach(over_bytes=sorted(sizes.values())[-2])
    assert first == max(sizes, key=lambda name: sizes[name])
    assert sorted([first, *home.detach()]) == MOVED
    assert replayed(home.project, home.archive.root, evidence=home.store).unjudged == ()


def test_an_open_ladder_is_left_alone(home: Home, tmp_path: Path) -> None:
    archive = home.project.freeze("open")
    home.project.step(archive)
    home.project.step(archive)
    with pytest.raises(GatepostError, match=r"confirmation@32 is open; evidence is moved once the ladder has ended"):
        home._replace(archive=archive).detach()
    shutil.rmtree(archive.root)


@pytest.mark.parametrize("inside", ["", "steps", "bound"])
def test_a_root_in_the_archive_is_refused(home: Home, inside: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home.archive.root / inside)
    for store in (home.archive.root / inside, tmp_path / "link", home.archive.root / "steps" / ".." / inside):
        with pytest.raises(GatepostError, match=r"lies in the archive .*, expected a folder outside it"):
            home._replace(store=store).detach()
    assert problem(home.project, home.archive.root) == ""


def test_other_bytes_under_the_name_are_not_written_over(home: Home) -> None:
    digest = jsonfile.sha256_of(home.archive.root / ROWS)
    (home.store / digest).write_bytes(b"other")
    with pytest.raises(IntegrityError, match=f"{digest}: SHA-256 is .*, expected {digest}, that of .*rows.parquet"):
        home.detach()
    assert (home.store / digest).read_bytes() == b"other"
    assert problem(home.project, home.archive.root) == ""


def test_the_command_line(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """0 for all of it, 3 for what a clone can say, 1 for a contradiction."""
    own = ("--gates", str(home.project.root / "gates"), "--studies", str(home.project.root / "studies"))
    root, store = str(home.archive.root), ("--evidence", str(home.store))
    assert main(["detach", root, "--into", str(home.store), "--over-bytes", "0", *own]) == 0
    out = capsys.readouterr().out
    assert [line.split(",")[0] for line in out.splitlines()[:3]] == [f"moved: {name}" for name in MOVED]
    assert main(["replay", root, *own]) == NOT_ALL == 3
    out = capsys.readouterr().out
    assert f"note: not judged here: selection: peeks[8]: {ROWS} is not here" in out
    assert "decision: REPLICATED selected=32" in out
    assert main(["replay", root, *own, *store]) == 0
    assert "not judged here" not in capsys.readouterr().out
    assert (main(["verify", root]), main(["verify", root, *store])) == (NOT_ALL, 0)
    home.kept(ROWS).write_bytes(b"other")
    assert (main(["replay", root, *own, *store]), main(["verify", root, *store])) == (1, 1)
    assert main(["replay", root, *own]) == NOT_ALL
