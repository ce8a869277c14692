"""Receipts, then termination, then text; and of the text the choice before the grade: on disk, not by promise."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gatepost import integrity, jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engine import Engine, EngineSpec
from gatepost.errors import GatepostError, IntegrityError, UserCodeError
from gatepost.evidence import Score
from gatepost.ladder import Step
from gatepost.probe import Probe
from gatepost.stepfiles import write_manifest
from gatepost.studyfiles import load_domain
from tests.archives import reseal, rewrite
from tests.scoring.study import MACROS, Study, create_study

SCORING = Step("scoring", "16")
FILES = ["choices.parquet", "parents.parquet", "tasks.parquet"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return create_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def sampled(study: Study) -> Archive:
    """Everything is sampled, a rung is selected, and scoring is the open step."""
    archive = study.freeze()
    assert str(study.run(archive, until="scoring", designed=MACROS)) == "open: scoring@16"
    return archive


@pytest.fixture
def archive(sampled: Archive, tmp_path: Path) -> Archive:
    """A copy of it."""
    return Archive(shutil.copytree(sampled.root, tmp_path / "small"))


@pytest.fixture
def domain(study: Study) -> Any:
    """The module behind the domain, for tests that change it."""
    return sys.modules[load_domain("verified_macro", 1, study.studies, where="test").messages.__module__]


def refused(*arguments: Any) -> Any:
    raise RuntimeError("must not be called")


def test_no_engine_starts(study: Study, archive: Archive) -> None:
    def open_engine(spec: EngineSpec) -> Engine:
        raise AssertionError("an engine was started, but there is nothing to sample")

    assert str(Probe(archive, study.gates, study.studies, open_engine).run()).startswith("decision: MACROS_VERIFIED")
    names = sorted(path.name for path in archive.step_folder(SCORING).iterdir())
    assert names == sorted([*FILES, "receipt.json", "rows.json", "scores.parquet"])


def test_a_choice_is_on_disk_though_nothing_could_be_graded(
    study: Study, archive: Archive, domain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(domain, "grade", refused)
        with pytest.raises(UserCodeError, match="RuntimeError: must not be called"):
            study.step(archive)
    (attempt,) = archive.attempt_folders()
    assert sorted(path.name for path in attempt.iterdir()) == FILES
    chosen = tables.read_choices(attempt / "choices.parquet")
    assert sum(choice.chosen for choice in chosen) == 8, "one of each task in each arm"
    assert integrity.verify(archive) == []
    assert archive.journal.read()[-1].event == "failed"
    study.step(archive)
    scores = tables.read_scores(archive.step_folder(SCORING))
    assert [score.chosen for score in scores] == [choice.chosen for choice in chosen]
    assert study.replay(archive).faithful


DIE_BEFORE_GRADES = """
import os, signal, sys
from pathlib import Path
from gatepost.archive import Archive
from gatepost.audit import rows
from tests.scoring.study import Study

rows.write_scores = lambda path, scores: os.kill(os.getpid(), signal.SIGKILL)
Study(Path(sys.argv[1])).step(Archive(Path(sys.argv[2])))
"""


def test_a_run_killed_between_choice_and_grade_goes_on_with_the_same_choice(study: Study, archive: Archive) -> None:
    command = [sys.executable, "-c", DIE_BEFORE_GRADES, str(study.root), str(archive.root)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert any("never closed" in note for note in integrity.verify(archive))
    (attempt,) = archive.attempt_folders()
    chosen = tables.read_choices(attempt / "choices.parquet")
    study.step(archive)
    assert tables.read_choices(archive.step_folder(SCORING) / "choices.parquet") == chosen
    assert study.replay(archive).faithful


def test_grading_begins_when_the_choices_can_be_read(
    study: Study, archive: Archive, domain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, seen = domain.grade, []

    def grade(task: Mapping[str, Any], parsed: str) -> bool:
        (attempt,) = archive.attempt_folders()
        seen.append(len(tables.read_choices(attempt / "choices.parquet")))
        assert not (attempt / "scores.parquet").exists()
        return bool(right(task, parsed))

    monkeypatch.setattr(domain, "grade", grade)
    monkeypatch.setattr("gatepost.probe.require_faithful", lambda *_, **__: None)
    study.step(archive)
    assert seen == [24] * 24, "four tasks, three samples, two arms"


def test_choosing_is_shown_no_hidden_example(
    study: Study, archive: Archive, domain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: set[str] = set()

    def visible_score(task: Mapping[str, Any], parsed: str) -> int:
        shown.update(task)
        return len(task["hidden"])

    monkeypatch.setattr(domain, "visible_score", visible_score)
    with pytest.raises(UserCodeError, match="visible_score raised KeyError: 'hidden'"):
        study.step(archive)
    assert shown == {"task_id", "library", "visible"}
    (attempt,) = archive.attempt_folders()
    assert not (attempt / "choices.parquet").exists()


def test_a_choice_is_made_once(study: Study, archive: Archive, domain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden examples may have graded the choice of an attempt that failed; another choice would come after them."""
    with monkeypatch.context() as broken:
        broken.setattr(domain, "grade", refused)
        broken.setattr(domain, "visible_score", lambda task, parsed: 7)
        with pytest.raises(UserCodeError, match="RuntimeError: must not be called"):
            study.step(archive)
    with pytest.raises(IntegrityError, match=r"0005-scoring@16/choices.parquet: differs .* a choice is made once"):
        study.step(archive)


def lower(receipt: dict[str, Any]) -> None:
    """Write a smaller observation into the first check that has counts."""
    checks = (check for verdict in receipt["judgements"][0]["verdicts"] for check in verdict["checks"])
    check = next(check for check in checks if check["name"] == "unresolved_share")
    check["k"] = 1


@pytest.mark.parametrize("step", ["probe@16", "base@16", "designed@16"])
def test_nothing_is_parsed_above_a_history_that_does_not_replay(
    study: Study, archive: Archive, domain: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Receipt, selection and catalog fit each other: only judging the ids again gives it away."""
    monkeypatch.setattr(domain, "parse", refused)
    rewrite(archive.root / "steps" / step / "receipt.json", lower)
    reseal(archive)
    with pytest.raises(IntegrityError, match=rf"the history is not faithful.*\n{step}: termination\[16\]: recorded"):
        study.step(archive)
    assert archive.journal.read()[-1].event == "failed"


def test_nothing_is_parsed_above_a_history_that_is_not_whole(
    study: Study, archive: Archive, domain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "parse", refused)
    path = archive.root / "steps" / "base@16" / "text.parquet"
    path.write_bytes(path.read_bytes().replace(b"PAR1", b"PAR2", 1))
    with pytest.raises(IntegrityError, match=r"text.parquet: SHA-256"):
        study.step(archive)


def other_choice(scores: list[dict[str, Any]]) -> None:
    scores[0]["chosen"], scores[1]["chosen"] = scores[1]["chosen"], scores[0]["chosen"]


def other_answer(scores: list[dict[str, Any]]) -> None:
    scores[0]["parsed"] = "ADD1"


def other_score(scores: list[dict[str, Any]]) -> None:
    scores[0]["visible_score"] -= 1


def other_grade(scores: list[dict[str, Any]]) -> None:
    scores[0]["correct"] = not scores[0]["correct"]


def other_validity(scores: list[dict[str, Any]]) -> None:
    scores[0]["valid"] = not scores[0]["valid"]


def other_traits(scores: list[dict[str, Any]]) -> None:
    scores[0]["traits"] = frozenset({"macro", "elegant"})


def one_sample_less(scores: list[dict[str, Any]]) -> None:
    del scores[-1]


@pytest.mark.parametrize(
    "change",
    [other_choice, other_answer, other_score, other_grade, other_validity, other_traits, one_sample_less],
)
def test_changed_scores_are_caught_even_under_new_digests(study: Study, archive: Archive, change: Any) -> None:
    study.step(archive)
    folder = archive.step_folder(SCORING)
    documents = [dict(vars(score)) for score in tables.read_scores(folder)]
    change(documents)
    changed = [Score(**document) for document in documents]
    for name in ("choices.parquet", "scores.parquet", "rows.json"):
        (folder / name).unlink()
    tables.write_choices(folder / "choices.parquet", changed)
    tables.write_scores(folder / "scores.parquet", changed)
    manifest = write_manifest(folder, archive.protocol, SCORING, None)
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=manifest))
    reseal(archive)
    with pytest.raises(IntegrityError, match=r"scores.parquet: recorded .*, recomputed"):
        study.replay(archive)


@pytest.mark.parametrize("name", ["choices.parquet", "scores.parquet"])
def test_a_missing_table_is_caught(study: Study, archive: Archive, name: str) -> None:
    study.step(archive)
    folder = archive.step_folder(SCORING)
    (folder / name).unlink()
    archive.write_catalog()
    with pytest.raises(GatepostError, match=name):
        study.replay(archive)


def test_the_receipt_says_what_was_scored(study: Study, archive: Archive) -> None:
    study.step(archive)
    receipt = jsonfile.read_canonical(archive.step_folder(SCORING) / "receipt.json")
    said = json.dumps(receipt["judgements"])
    for check in ("parse_rate of base", "parse_rate of designed", "reuse_tasks_with_a_macro", "oracle_covered_tasks"):
        assert f'"name": "{check}"' in said
    assert jsonfile.read_canonical(archive.step_folder(SCORING) / "rows.json")["rows"] is None
