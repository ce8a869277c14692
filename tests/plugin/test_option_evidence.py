"""``--gatepost-evidence`` and ``--gatepost-absent``: a clone without its rows is never green by leaving them out."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from gatepost.archive import Archive
from gatepost.detach import detach
from tests.archives import Project
from tests.plugin.conftest import Run, lines_with

COUNTED = {"toy_closes[8]", "toy_closes[32]", "toy_closes[64]", "toy_engine[8]", "toy_engine[32]", "toy_engine[64]"}
WORD = "inconclusive"
ABSENT = ["selection::evidence", *(f"selection::cache_contract[{cap}]" for cap in (8, 32, 64)), "ladder"]
"""Of the selection alone, whose rows are longest: its evidence, what looks at ids, and what rests on that."""


@pytest.fixture
def store(project: Project) -> Path:
    gate = "gates.cache_contract = { version = 1 }\ngates.toy_engine"
    archive = project.freeze(edit=lambda draft: draft.replace("gates.toy_engine", gate, 1))
    project.run(archive)
    size = (archive.root / "steps" / "selection" / "rows.parquet").stat().st_size
    store = project.root / "store"
    store.mkdir()
    moved = detach(archive, store, gates=project.gates, studies=project.studies, over_bytes=size - 1)
    assert moved == ["steps/selection/rows.parquet"]
    return store


def named(result: pytest.RunResult, word: str) -> list[str]:
    """Items with that word, of a verbose run."""
    found = [line for line in result.outlines if f" {word} " in line and "::" in line]
    return [line.partition("protocol.json::")[2].split()[0] for line in found]


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_with_the_folder_all_is_judged(store: Path, run: Run, workers: list[str]) -> None:
    run("receipts", "--gatepost-evidence", "store", *workers).assert_outcomes(passed=16)


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_without_it_what_rests_on_ids_fails_by_name(store: Path, run: Run, workers: list[str]) -> None:
    result = run("receipts", "-v", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=11, failed=5)
    if not workers:
        assert named(result, "FAILED") == ABSENT
    (kept,) = store.iterdir()
    why = "not judged here: steps/selection/rows.parquet is not here (no evidence root is given): "
    result.stdout.fnmatch_lines([f"{why}* bytes, SHA-256 {kept.name}"])


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_reported_it_is_counted_apart_and_neither_skipped_nor_passed(store: Path, run: Run, workers: list[str]) -> None:
    result = run("receipts", "-v", "--gatepost-absent", "report", *workers)
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes() == {"passed": 11, "inconclusive": 5}
    if not workers:
        assert named(result, "INCONCLUSIVE") == ABSENT
    assert {name.partition("::")[2] for name in named(result, "PASSED") if name.startswith("selection")} == COUNTED
    assert lines_with(result, "note: not judged here: selection: cache_contract[32]: steps/selection/rows.parquet")
    assert lines_with(result, "decision: REPLICATED selected=32")
    (line,) = lines_with(result, "    cache_contract   ")
    assert (line.count("not judged here"), line.count("pass")) == (3, 0)


def test_a_quiet_run_says_so_too(store: Path, run: Run) -> None:
    result = run("receipts", "-q", "--gatepost-absent", "report")
    assert lines_with(result, "toy: decision: REPLICATED selected=32; not judged here: 4")


def test_a_file_for_other_programs_says_so_too(store: Path, run: Run, project: Project) -> None:
    run("receipts", "--gatepost-absent", "report", "--junitxml", "results.xml")
    (suite,) = ElementTree.parse(project.root / "results.xml").iter("testsuite")
    said = [case.get("name") for case in suite.iter("testcase") for p in case.iter("property") if p.get("name") == WORD]
    assert said == [name.rpartition("::")[2] for name in ABSENT]
    assert suite.get("tests") == "11", "as it counts them"


@pytest.mark.parametrize("option", ["fail", "report"])
def test_what_contradicts_the_record_fails_either_way(store: Path, run: Run, option: str) -> None:
    (kept,) = store.iterdir()
    kept.write_bytes(b"other")
    result = run("receipts", "--gatepost-absent", option, "--gatepost-evidence", "store")
    result.assert_outcomes(failed=16)
    assert lines_with(result, f"{kept.name}: SHA-256 is ")


def test_a_file_that_is_missing_without_a_word_fails_either_way(store: Path, run: Run, project: Project) -> None:
    (project.root / "receipts" / "toy" / "elsewhere.json").unlink()
    for option in ("fail", "report"):
        result = run("receipts", "--gatepost-absent", option, "--gatepost-evidence", "store")
        result.assert_outcomes(failed=16)
        assert lines_with(result, "steps/selection/rows.parquet: is missing, but catalog.json lists it")


def test_a_folder_that_is_none_is_wrong_usage(store: Path, run: Run) -> None:
    for value in ("nowhere", "receipts/toy/protocol.json"):
        result = run("receipts", "--gatepost-evidence", value)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert lines_with(result, f"--gatepost-evidence: {value} is not a folder")


def test_an_archive_that_has_all_is_the_same_with_any_folder(project: Project, run: Run) -> None:
    project.run(project.freeze("whole"))
    (project.root / "empty").mkdir()
    for options in ([], ["--gatepost-evidence", "empty"], ["--gatepost-absent", "report"]):
        run("receipts/whole", *options).assert_outcomes(passed=13)
    assert Archive(project.root / "receipts" / "whole").evidence is None
