"""A step whose files were taken away, added or exchanged is caught, though every digest was made anew."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engine import Prompt
from gatepost.evidence import Grade
from gatepost.fingerprint import RowKey
from gatepost.ladder import Step
from tests.archives import Project, reseal, rewrite
from tests.faults.conftest import problem, rebind

DESIGN, SELECTION, CONFIRMATION = Step("design"), Step("selection"), Step("confirmation", "32")
STRANGER = RowKey("nobody", 4)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        *((DESIGN, name) for name in ("tasks", "parents")),
        *((SELECTION, name) for name in ("tasks", "parents", "prompts", "rows")),
        *((CONFIRMATION, name) for name in ("tasks", "parents", "prompts", "rows", "text", "grades")),
    ],
)
def test_evidence_that_was_taken_away_is_named(copied: tuple[Project, Archive], step: Step, name: str) -> None:
    project, archive = copied
    (archive.step_folder(step) / f"{name}.parquet").unlink()
    rebind(archive, step)
    assert f"steps/{step}/{name}.parquet: is missing" in problem(project, archive.root)


def test_a_session_that_was_taken_away_is_named(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    (archive.step_folder(SELECTION) / "session.json").unlink()
    rebind(archive, SELECTION)
    assert "steps/selection/session.json: is missing" in problem(project, archive.root)


@pytest.mark.parametrize("name", ["text", "grades"])
def test_what_a_blind_stage_withholds_cannot_lie_in_it(copied: tuple[Project, Archive], name: str) -> None:
    project, archive = copied
    folder = archive.step_folder(SELECTION)
    keys = [row.key for row in tables.read_rows(folder / "rows.parquet")]
    if name == "text":
        tables.write_text(folder / "text.parquet", dict.fromkeys(keys, "secret"))
    else:
        tables.write_grades(folder / "grades.parquet", {key: Grade(key, None, False) for key in keys})
    rebind(archive, SELECTION)
    assert f"steps/selection/{name}.parquet: is not part of" in problem(project, archive.root)


@pytest.mark.parametrize(
    "name",
    ["steps/selection/rows2.parquet", "steps/selection/stream.jsonl", "steps/selection/scores.parquet",
     "steps/design/session.json", "steps/design/preflight.json", "bound/.hidden", "log/0099.json", "notes.txt"],
)  # fmt: skip
def test_a_file_that_a_step_does_not_have_is_named(copied: tuple[Project, Archive], name: str) -> None:
    project, archive = copied
    (archive.root / name).write_bytes(b"{}")
    archive.write_catalog()
    assert name in problem(project, archive.root)


@pytest.mark.parametrize(
    "name", ["notes", "steps/selection/sub", "steps/other", "attempts/0001-design", "log/0099.json", ".writing-x",
             "steps/selection/.writing-x", "bound/sub"],
)  # fmt: skip
def test_a_folder_that_an_archive_does_not_have_is_named(copied: tuple[Project, Archive], name: str) -> None:
    project, archive = copied
    (archive.root / name).mkdir()
    assert name in problem(project, archive.root), "though it is empty, and no catalog can list it"


def test_what_an_interrupted_write_left_is_a_note_alone(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    (archive.step_folder(SELECTION) / ".writing-0123").write_bytes(b"half")
    assert problem(project, archive.root) == ""
    noted = archive.catalog()["root"]
    assert ".writing-0123: is not in catalog.json" in problem(project, archive.root, expected_root=noted)


def exchange_text(archive: Archive) -> None:
    path = archive.step_folder(CONFIRMATION) / "text.parquet"
    text = tables.read_text(path)
    path.unlink()
    tables.write_text(path, {**text, STRANGER: "extra"})


def drop_text(archive: Archive) -> None:
    path = archive.step_folder(CONFIRMATION) / "text.parquet"
    text = tables.read_text(path)
    path.unlink()
    tables.write_text(path, dict(list(text.items())[1:]))


def add_grade(archive: Archive) -> None:
    path = archive.step_folder(CONFIRMATION) / "grades.parquet"
    grades = tables.read_grades(path)
    path.unlink()
    tables.write_grades(path, {**grades, STRANGER: Grade(STRANGER, None, False)})


def shorten_prompts(archive: Archive) -> None:
    change_prompts(archive, lambda prompts: [replace(prompt, token_ids=prompt.token_ids[-3:]) for prompt in prompts])


def double_prompts(archive: Archive) -> None:
    change_prompts(archive, lambda prompts: prompts * 2)


def change_prompts(archive: Archive, change: Callable[[list[Prompt]], list[Prompt]]) -> None:
    path = archive.step_folder(CONFIRMATION) / "prompts.parquet"
    prompts = list(tables.read_prompts(path))
    path.unlink()
    tables.write_prompts(path, change(prompts))


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (exchange_text, "text.parquet: nobody sample 4: is not in rows.parquet"),
        (drop_text, "text.parquet: second-0 sample 0: is missing"),
        (add_grade, "grades.parquet: nobody sample 4: is not in rows.parquet"),
        (shorten_prompts, "prompt_tokens is"),
        (double_prompts, "prompts.parquet: prompts of tasks"),
    ],
)
def test_files_of_one_step_agree(copied: tuple[Project, Archive], forge: Callable[[Archive], None], said: str) -> None:
    project, archive = copied
    forge(archive)
    rebind(archive, CONFIRMATION)
    assert said in problem(project, archive.root)


@pytest.mark.parametrize(
    "change",
    [
        lambda session: session.update(protocol=f"sha256:{'1' * 64}"),
        lambda session: session.update(step={"stage": "confirmation", "rung": "32"}),
        lambda session: session.update(engine=None),
    ],
)
def test_a_session_of_something_else_is_caught(
    copied: tuple[Project, Archive], change: Callable[[dict[str, Any]], None]
) -> None:
    project, archive = copied
    rewrite(archive.step_folder(SELECTION) / "session.json", change)
    rebind(archive, SELECTION)
    assert "steps/selection/session.json: field" in problem(project, archive.root)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document.update(protocol=f"sha256:{'1' * 64}"), "is of protocol"),
        (lambda document: document.update(step={"stage": "confirmation", "rung": "32"}), "confirmation@32; expected"),
        (lambda document: document.update(attempt=9), "field attempt is 9, expected 2"),
        (lambda document: document["judgement"].update(outcome="fail"), "outcome is fail, but the attempt passed"),
        (lambda document: document["engine"].update(max_model_len=1), "is 4096, before generation it was 1"),
        (lambda document: document["engine"].update(kind=5), "preflight.json: "),
        (lambda document: document.update(judgement=1), "preflight.json: field $.judgement"),
    ],
)
def test_what_let_a_step_through_is_judged_again(
    copied: tuple[Project, Archive], change: Callable[[dict[str, Any]], None], said: str
) -> None:
    project, archive = copied
    rewrite(archive.step_folder(SELECTION) / "preflight.json", change)
    reseal(archive)
    assert said in problem(project, archive.root)


def test_what_let_a_step_through_is_there_where_a_gate_judged(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    path = archive.step_folder(SELECTION) / "preflight.json"
    path.rename(archive.step_folder(CONFIRMATION) / "preflight.json")
    reseal(archive)
    assert "selection/preflight.json: is missing, but gates judge" in problem(project, archive.root)
    path.write_bytes((archive.step_folder(CONFIRMATION) / "preflight.json").read_bytes())
    archive.write_catalog()
    assert "confirmation@32/preflight.json: exists, but no gate judged" in problem(project, archive.root)


def test_a_manifest_lists_a_file_once(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    folder = archive.step_folder(DESIGN)
    rewrite(folder / "rows.json", lambda manifest: manifest["files"].append(manifest["files"][0]))
    digest = jsonfile.digest((folder / "rows.json").read_bytes())
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=digest))
    reseal(archive)
    assert "rows.json: field files" in problem(project, archive.root)


def test_true_is_not_one(copied: tuple[Project, Archive]) -> None:
    project, archive = copied

    def change(receipt: dict[str, Any]) -> None:
        receipt["judgements"][0]["verdicts"][0]["checks"][0]["observed"] = True

    rewrite(archive.step_folder(CONFIRMATION) / "receipt.json", change)
    archive.write_catalog()
    assert "toy_closes[32]: recorded close_share" in problem(project, archive.root)


def test_a_selection_is_of_its_schema(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    rewrite(archive.root / "selection.json", lambda selection: selection.update({"pass": 1}))
    archive.write_catalog()
    assert "selection.json: field $.pass" in problem(project, archive.root)
