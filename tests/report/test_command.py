"""``gatepost report``: what it writes, what it refuses, and how it ends."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gatepost.__main__ import main
from gatepost.archive import Archive
from gatepost.detach import detach
from tests.archives import Project, create_project, reseal, rewrite
from tests.report.conftest import RECEIPTS, Page, page

NAME = "native-seam-replicated"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The toy project, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return create_project(tmp_path)


def test_a_faithful_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    out.write_text("an earlier one")
    assert main(["report", str(RECEIPTS / NAME), "-o", str(out)]) == 0
    assert out.read_text() == page(NAME)
    assert capsys.readouterr().out == f"{out}: decision: NATURAL_SEAM_REPLICATED selected=160\n"
    assert list(tmp_path.iterdir()) == [out]


def test_a_record_that_is_not_faithful_is_told_first_and_loud(project: Project) -> None:
    archive = project.freeze()
    project.run(archive)

    def claim_one_more(receipt: dict) -> None:
        (check,) = receipt["judgements"][1]["verdicts"][0]["checks"]
        check["k"] -= 1

    rewrite(archive.step_folder(archive.finished_steps()[1]) / "receipt.json", claim_one_more)
    reseal(archive)
    assert main(["report", str(archive.root)]) == 1
    text = Path("report.html").read_text()
    assert "Faithful." not in Page(text).text
    assert "not faithful: selection: toy_closes[32]" in Page(text).text
    assert text.index("Not faithful.") < text.index("Decision")


def test_where_an_archive_lies_is_not_in_its_page(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by a path from above, from within, or from the root: its notes, and all else, are the same."""
    archive = project.freeze()
    project.step(archive)
    archive.begin(project.next_step(archive))
    pages = []
    within, above = archive.root, project.root
    ways = [(above, str(archive.root)), (above, "receipts/toy"), (within, "."), (within, "../toy")]
    for at, (folder, name) in enumerate(ways):
        monkeypatch.chdir(folder)
        out = project.root / f"{at}.html"
        folders = ["--gates", str(project.root / "gates"), "--studies", str(project.root / "studies")]
        assert main(["report", name, "-o", str(out), *folders]) == 0
        pages.append(out.read_text())
    assert len(set(pages)) == 1
    assert str(project.root) not in pages[0]
    assert "never closed" in pages[0]


def test_an_archive_that_is_not_whole_has_no_page(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    archive = project.freeze()
    project.run(archive)
    (archive.root / "log" / "0002.json").unlink()
    assert main(["report", str(archive.root)]) == 1
    assert "log/0002.json: is missing" in capsys.readouterr().err
    assert not Path("report.html").exists()


def test_evidence_elsewhere_is_told_and_ends_with_three(project: Project) -> None:
    archive = project.freeze()
    project.run(archive)
    store = project.root / "store"
    store.mkdir()
    detach(archive, store, gates=project.gates, studies=project.studies, over_bytes=0)
    assert main(["report", str(archive.root)]) == 3
    text = Path("report.html").read_text()
    assert "Faithful as far as judged." in Page(text).text
    assert "not judged here" in Page(text).text
    assert main(["report", str(archive.root), "--evidence", str(store)]) == 0
    assert "Faithful." in Page(Path("report.html").read_text()).text
    assert str(project.root) not in text


def test_an_unfinished_study_says_what_is_open(project: Project) -> None:
    archive = project.freeze()
    assert main(["report", str(archive.root)]) == 0
    assert "Nothing is decided yet: design is the one open step." in Page(Path("report.html").read_text()).text
    project.step(archive)
    assert main(["report", str(archive.root)]) == 0
    assert "selection is the one open step" in Page(Path("report.html").read_text()).text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: holds no archive"),
        (["{archive}", "-o", "{archive}/report.html"], "lies in the archive"),
        (["{archive}", "-o", "{archive}/steps/selection/report.html"], "lies in the archive"),
        (["{archive}", "-o", "missing/report.html"], "missing: is not a folder"),
        (["{archive}", "-o", "studies"], "studies: is a folder, expected the name of a file"),
    ],
)
def test_what_is_refused(project: Project, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    archive = project.freeze()
    project.run(archive)
    before = sorted(project.root.rglob("*"))
    assert main(["report", *(one.format(archive=archive.root) for one in arguments)]) == 1
    assert said in capsys.readouterr().err
    assert sorted(project.root.rglob("*")) == before


def test_evidence_lies_in_a_folder(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["report", str(project.freeze().root), "--evidence", "missing"])
    assert capsys.readouterr().err.endswith("argument --evidence: missing is not a folder\n")


def test_without_the_extra_one_sentence_says_how_to_get_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from gatepost.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "report", str(RECEIPTS / NAME), "-o", str(tmp_path / "x.html")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "gatepost: a report needs matplotlib, which is not installed: pip install 'gatepost[report]'\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", said)
    assert list(tmp_path.iterdir()) == []


def test_an_index_needs_no_drawing(tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from gatepost.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "report", str(RECEIPTS), "-o", str(tmp_path / "x.html")]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True)
    text = (tmp_path / "x.html").read_text()
    assert main(["report", str(RECEIPTS), "-o", str(tmp_path / "y.html")]) == 0
    assert text == (tmp_path / "y.html").read_text()
    shown = Page(text).text
    assert "18 archives" in shown
    assert "Whole." in shown
    for root in RECEIPTS.iterdir():
        assert root.name in shown
        assert Archive(root).catalog()["root"] in shown


@pytest.mark.parametrize("change", ["flip", "add", "remove", "receipt", "catalog"])
def test_an_index_names_what_is_not_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str) -> None:
    for name in (NAME, "engine-geometry-eager"):
        shutil.copytree(RECEIPTS / name, tmp_path / "all" / name)
    root = tmp_path / "all" / NAME
    receipt = root / "steps" / "selection" / "receipt.json"
    if change == "flip":
        receipt.write_bytes(receipt.read_bytes().replace(b'"k":44', b'"k":45', 1))
    elif change == "add":
        (root / "steps" / "more.json").write_text("{}")
    elif change == "remove":
        (root / "selection.json").unlink()
    elif change == "receipt":
        receipt.write_text("[]")
        Archive.write_catalog(Archive(root))
    else:
        (root / "catalog.json").write_text('{"files":7}')
    assert main(["report", str(tmp_path / "all"), "-o", str(tmp_path / "x.html")]) == 1
    shown = Page((tmp_path / "x.html").read_text()).text
    named = {"flip": "receipt.json", "add": "more.json", "remove": "selection.json", "receipt": "receipt.json"}
    assert f"{NAME}: " in shown
    assert named.get(change, "catalog.json") in shown
    assert "1 of 2 archives" in shown
    assert str(tmp_path) not in shown
    assert "not all whole" in capsys.readouterr().out
