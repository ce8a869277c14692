"""What has to be refused, and in which words: each case goes the way of a user, through the command line.

``drafts.jsonl``    a passage of the toy draft is replaced, and the draft is frozen
``records.jsonl``   a field of a finished archive is changed or taken away, all that binds it made anew, and replayed
``ROWS``            the same for a value, a row or the order of a table of evidence
``COMMANDS``        a command that cannot be meant

A case fails if the exit status is 0, if another sentence is said, if there is a traceback, or if a file is left over.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gatepost import jsonfile
from gatepost.__main__ import main
from tests.archives import Project, create_project
from tests.fuzz import forgery

HERE = Path(__file__).parent


def cases(name: str) -> dict[str, dict[str, Any]]:
    """The lines of a table, by the name of each."""
    lines = (HERE / name).read_bytes().splitlines()
    rows = [jsonfile.loads(line, source=f"{name}:{number}") for number, line in enumerate(lines, start=1)]
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


DRAFTS, RECORDS = cases("drafts.jsonl"), cases("records.jsonl")


def set_value(row: int, column: str, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(column)
        values = table.column(index).to_pylist()
        values[row] = value
        return table.set_column(index, table.schema.field(index), pa.array(values, table.schema.field(index).type))

    return change


def take(*rows: int) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.take([row % table.num_rows for row in rows])


SELECTION, CONFIRMATION = "steps/selection", "steps/confirmation@32"
ALL_BUT_ONE = range(1, 8)
ROWS: dict[str, tuple[str, Callable[[pa.Table], pa.Table], str]] = {
    "a row that is missing": (
        f"{CONFIRMATION}/rows.parquet", take(*ALL_BUT_ONE),
        "rows.parquet: holds second-0/1 where second-0/0 is registered",
    ),
    "a row twice": (
        f"{CONFIRMATION}/rows.parquet", take(0, 0, *ALL_BUT_ONE),
        "rows.parquet: holds second-0/0 where second-0/1 is registered",
    ),
    "rows in another order": (
        f"{CONFIRMATION}/rows.parquet", take(*range(7, -1, -1)),
        "rows.parquet: holds second-3/1 where second-0/0 is registered",
    ),
    "a row of another task": (
        f"{CONFIRMATION}/rows.parquet", set_value(0, "task_id", "first-0"),
        "rows.parquet: first-0 sample 0: prompt_tokens is",
    ),
    "a row under a seed of its own": (
        f"{CONFIRMATION}/rows.parquet", set_value(2, "seed", 7),
        "rows.parquet: second-1/0: seed is 7, stage_two_seed None; registered are",
    ),
    "a row fed with another prompt": (
        f"{CONFIRMATION}/rows.parquet", set_value(0, "prompt_tokens", 3),
        "rows.parquet: second-0 sample 0: prompt_tokens is 3, its prompt in prompts.parquet has",
    ),
    "a continuation that was emptied": (
        f"{SELECTION}/rows.parquet", set_value(0, "token_ids", []),
        "toy_closes[32]: recorded close_share 1 >= 0.75 (12/12), recomputed close_share 0.916667 >= 0.75",
    ),
    "claims that are no object": (
        f"{SELECTION}/rows.parquet", set_value(0, "claims", "[]"),
        "rows.parquet: column claims: '[]', expected an object",
    ),
    "claims with a key twice": (
        f"{SELECTION}/rows.parquet", set_value(0, "claims", '{"a":1,"a":2}'),
        "rows.parquet: column claims: key 'a' appears twice in one object",
    ),
    "a column too few": (
        f"{SELECTION}/rows.parquet", lambda table: table.drop_columns(["seed"]), "rows.parquet: columns [('task_id'",
    ),
    "a column of another type": (
        f"{SELECTION}/rows.parquet",
        lambda table: table.set_column(2, "seed", pa.array([1.5] * table.num_rows)), "('seed', 'double')",
    ),
    "a prompt that is missing": (
        f"{SELECTION}/prompts.parquet", take(0, 1, 2), "prompts.parquet: prompts of tasks",
    ),
    "a prompt twice": (
        f"{SELECTION}/prompts.parquet", take(0, 0, 1, 2, 3), "prompts.parquet: prompts of tasks",
    ),
    "a text that is missing": (
        f"{CONFIRMATION}/text.parquet", take(*ALL_BUT_ONE),
        "text.parquet: second-0 sample 0: is missing, but is in rows.parquet",
    ),
    "a text of a row that is not there": (
        f"{CONFIRMATION}/text.parquet", set_value(0, "sample_index", 9),
        "text.parquet: second-0 sample 0: is missing, but is in rows.parquet",
    ),
    "a text twice": (
        f"{CONFIRMATION}/text.parquet", take(0, 0, *ALL_BUT_ONE), "text.parquet: row second-0 sample 0 appears twice",
    ),
    "a grade that was improved": (
        f"{CONFIRMATION}/grades.parquet", set_value(0, "correct", True), "grades.parquet: second-0 sample 0: recorded",
    ),
    "an answer that was put in its mouth": (
        f"{CONFIRMATION}/grades.parquet", set_value(0, "parsed", "cow"), "grades.parquet: second-0 sample 0: recorded",
    ),
    "a grade that is missing": (
        f"{CONFIRMATION}/grades.parquet", take(*ALL_BUT_ONE),
        "grades.parquet: second-0 sample 0: is missing, but is in rows.parquet",
    ),
    "a task whose answer was changed": (
        f"{SELECTION}/tasks.parquet", set_value(0, "answers", ["cow"]),
        "tasks.parquet: differs from what the task domain derives from bound tasks",
    ),
    "a task that is missing": (
        "steps/design/tasks.parquet", take(0, 1, 2),
        "tasks.parquet: differs from what the task domain derives from bound tasks",
    ),
}  # fmt: skip
"""What is wrong -> (the table, the change, a part of the sentence that refuses it)."""

COMMANDS: dict[str, tuple[list[str], str]] = {
    "a draft that is not there": (["freeze", "nothing.toml"], "nothing.toml: does not exist"),
    "a folder for a draft": (["freeze", "studies/toy"], "studies/toy: is a folder, expected a draft (TOML); in it are"),
    "an archive that is there already": (
        ["freeze", "studies/toy/toy.toml", "--into", "receipts"],
        "receipts/toy: exists already; a frozen protocol is never overwritten, choose another id",
    ),
    "no archive to replay": (["replay", "gates"], "gates: holds no archive, expected a folder with protocol.json"),
    "no archive to verify": (["verify", "gates"], "gates/protocol.json: does not exist"),
    "no archive to look at": (["status", "studies"], "studies/protocol.json: does not exist"),
    "a root of another archive": (["verify", "receipts/toy", "--root", "0" * 64], "catalog.json: root is sha256:"),
    "an approval without a key": (
        ["approve", "receipts/toy", "--step", "selection", "--key", "key"], "key: does not exist",
    ),
    "a key in the place of another": (["keygen", "gates/toy.py"], "gates/toy.py: exists already; a key is never"),
    "a key in an archive": (["keygen", "receipts/toy/key"], "receipts/toy/key: lies in the archive"),
    "a published run that is not there": (["import", "nothing"], "nothing"),
    "prompts of an archive without any": (["prompts", "gates"], "gates: holds no archive, expected a folder"),
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, forgery.Files]:
    project = create_project(tmp_path_factory.mktemp("project") / "toy")
    archive = project.freeze()
    project.run(archive)
    return project, forgery.read(archive.root)


def refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """What a command says that has to fail."""
    status = main(arguments)
    printed = capsys.readouterr()
    assert status == 1
    assert "Traceback" not in printed.err + printed.out
    return printed.err + printed.out


def replayed(capsys: pytest.CaptureFixture[str], root: Path, project: Project) -> str:
    options = ["--gates", str(project.root / "gates"), "--studies", str(project.root / "studies")]
    return refused(capsys, ["replay", str(root), *options])


@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    project, case = create_project(tmp_path / "project"), DRAFTS[name]
    project.freeze("template")
    study = project.root / "studies" / "toy"
    text = (study / "template.toml").read_text().replace('id = "template"', 'id = "toy"')
    assert case["old"] in text
    (study / "toy.toml").write_text(text.replace(case["old"], case["new"]))
    options = ["--gates", str(project.root / "gates"), "--into", str(tmp_path / "receipts")]
    said = refused(capsys, ["freeze", str(study / "toy.toml"), *options])
    assert said.startswith(f"gatepost: {study}/")
    assert f"{study.parent}/{case['said']}" in said
    assert not (tmp_path / "receipts").exists() or not list((tmp_path / "receipts").iterdir())


@pytest.mark.parametrize("name", RECORDS)
def test_a_record(
    finished: tuple[Project, forgery.Files], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (project, files), case = finished, RECORDS[name]
    document = here = copy.deepcopy(jsonfile.loads(files[case["file"]], source=case["file"]))
    *path, last = case["at"]
    for key in path:
        here = here[key]
    if "value" in case:
        assert not jsonfile.same(here.get(last) if isinstance(here, dict) else here[last], case["value"])
        here[last] = case["value"]
    else:
        del here[last]
    root = forgery.write(tmp_path / "toy", forgery.forge_document(files, case["file"], document))
    assert case["said"] in replayed(capsys, root, project)


@pytest.mark.parametrize("name", ROWS)
def test_a_table(
    finished: tuple[Project, forgery.Files], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (project, files), (file, change, sentence) = finished, ROWS[name]
    root = forgery.write(tmp_path / "toy", forgery.forge_table(files, file, change))
    assert sentence in replayed(capsys, root, project)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(
    finished: tuple[Project, forgery.Files], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:  # fmt: skip
    (project, files), (arguments, sentence) = finished, COMMANDS[name]
    monkeypatch.chdir(project.root)
    said = refused(capsys, arguments)
    assert said.startswith("gatepost: ")
    assert sentence in said
    assert forgery.read(project.root / "receipts" / "toy") == files


def test_there_are_at_least_a_hundred_and_each_is_another() -> None:
    sentences = [case["said"] for case in (*DRAFTS.values(), *RECORDS.values())]
    sentences += [sentence for *_, sentence in ROWS.values()] + [sentence for _, sentence in COMMANDS.values()]
    assert len(sentences) > 150
    assert len(set(sentences)) > 140
