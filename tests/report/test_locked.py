"""What nobody may see yet is not in a report, and what an archive says cannot become markup."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.errors import UserCodeError
from gatepost.evidence import CONTENT_CHANNELS
from gatepost.gatefiles import Gates
from gatepost.html_report import render, report_of
from gatepost.html_report.facts import READS
from gatepost.html_report.markup import escape
from gatepost.replay import replay
from tests.archives import create_project
from tests.report.conftest import ARCHIVES, RECEIPTS, Page, page
from tests.scoring.study import create_study, says

CANARY = "CANARY"


def test_a_report_reads_no_channel_that_shows_content() -> None:
    assert not set(READS) & CONTENT_CHANNELS


def planted(archive: Archive) -> Iterator[str]:
    """The files of an archive that hold the canary, as bytes or as ids that spell it."""
    for path in sorted(archive.root.rglob("*")):
        if path.suffix == ".parquet":
            if CANARY in str(pyarrow.parquet.read_table(path).to_pydict()):
                yield path.name
        elif path.is_file() and CANARY in path.read_text():
            yield path.name


def test_sealed_text_prompts_and_tasks_stay_out(tmp_path: Path) -> None:
    """Before scoring, the sealed answers lie in the archive, and so do tasks with their hidden examples."""
    study = create_study(tmp_path)
    tasks = study.root / "probe.jsonl"
    lines = [jsonfile.loads(line, source="task") for line in tasks.read_bytes().splitlines()]
    tasks.write_bytes(b"".join(jsonfile.canonical({**task, "remark": f"{CANARY}-TASK"}) + b"\n" for task in lines))
    archive = study.freeze()
    say = says(lambda task: f"{CANARY}-SAID {task['task_id']}")
    decision = study.run(archive, until="scoring", probe=say, base=say, designed=say)
    assert str(decision.step) == "scoring@16"
    assert set(planted(archive)) >= {"text.parquet", "probe.jsonl"}
    shown = render(report_of(study.replay(archive), Gates())).decode()
    assert CANARY not in shown
    assert "scoring" in shown


def test_withheld_and_graded_text_stay_out(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    domain = project.root / "studies" / "toy" / "domain.py"
    domain.write_text(domain.read_text().replace('f"Say {task[', f'f"{CANARY}-PROMPT Say {{task['))
    for split in ("first", "second"):
        tasks = project.root / "studies" / "toy" / f"{split}.jsonl"
        tasks.write_text(tasks.read_text().replace('"place":"', f'"place":"{CANARY}-TASK '))
    archive = project.freeze(edit=lambda draft: draft.replace('"First: dog"', f'"First: {CANARY}-SAID"'))
    project.run(archive)
    assert set(planted(archive)) >= {"text.parquet", "grades.parquet", "prompts.parquet", "first.jsonl"}
    replayed = replay(archive.root, gates=project.gates, studies=project.studies)
    assert replayed.faithful
    assert CANARY not in render(report_of(replayed, project.gates)).decode()


def test_what_an_attempt_failed_of_stays_out(tmp_path: Path) -> None:
    """A grader that quotes what it choked on leaves that in the history, and what was sampled in the attempt."""
    project = create_project(tmp_path)
    domain = project.root / "studies" / "toy" / "domain.py"
    whole = domain.read_text()
    domain.write_text(whole.replace("    return parsed == task", "    raise ValueError(repr(parsed))\n    return task"))
    archive = project.freeze(edit=lambda draft: draft.replace('"First: dog"', f'"First: {CANARY}-SAID"'))
    while str(project.next_step(archive)) != "confirmation@32":
        project.step(archive)
    with pytest.raises(UserCodeError):
        project.step(archive)
    assert {"text.parquet"} < set(planted(archive)), "in the attempt, and in the history"
    replayed = replay(archive.root, gates=project.gates, studies=project.studies)
    shown = render(report_of(replayed, project.gates)).decode()
    assert CANARY not in shown
    assert "failed" in shown


def strings(name: str) -> Iterator[str]:
    """Every text of an archive's text channels that is long enough to be recognised."""
    for path in (RECEIPTS / name).glob("steps/*/*.parquet"):
        table = pyarrow.parquet.read_table(path)
        for column in {"text", "answer", "parsed", "program", "grade"} & set(table.column_names):
            yield from (str(value) for value in table[column].to_pylist() if value is not None)


@pytest.mark.parametrize("name", [name for name in ARCHIVES if name.startswith(("native", "verified"))])
def test_no_text_of_the_archives_in_the_repository_is_shown(name: str) -> None:
    texts = {line.strip() for text in strings(name) for line in text.splitlines() if len(line.strip()) >= 12}
    assert len(texts) > 10
    shown = Page(page(name)).text
    assert not [text for text in texts if text in shown]


HOSTILE = (
    "</h1><script>alert(1)</script>", '" onload="alert(1)', "<svg/onload=alert(1)>", "&lt;b&gt;", "]]><!--", "{{7*7}}",
    "$\\frac{1}{0}$", "</style><style>*{display:none}", "\N{RIGHT-TO-LEFT OVERRIDE}txet",
)  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_a_protocol_says_is_text(tmp_path: Path, hostile: str) -> None:
    project = create_project(tmp_path)
    gate = project.root / "gates" / "toy.py"
    noted = f', note="n" + {hostile!r})'
    gate.write_text(gate.read_text().replace('">=", min_tasks)', f'">=", min_tasks{noted}'))

    def edit(draft: str) -> str:
        quoted = jsonfile.canonical(hostile).decode()
        for old in ('"Which cap is enough?"', '"32 ids are."', '"It is a test."', '"saying so"'):
            draft = draft.replace(old, quoted)
        return draft

    archive = project.freeze(edit=edit)
    project.run(archive)
    shown = render(
        report_of(replay(archive.root, gates=project.gates, studies=project.studies), project.gates)
    ).decode()
    parsed = Page(shown)
    assert not {"script", "iframe", "b"} & {tag for tag, _ in parsed.elements}
    assert not [attributes for _, attributes in parsed.elements if any(name.startswith("on") for name in attributes)]
    assert len(parsed.all("style")) == 1
    assert parsed.words.count(hostile.replace("\u202e", "\u27e8U+202E\u27e9")) >= 4
    assert hostile not in shown or not set(hostile) & set("<>&\"'\u202e")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#x27;"),
        ("nul\0", "nul\u27e8U+0000\u27e9"),
        ("\u2066left\u2069", "\u27e8U+2066\u27e9left\u27e8U+2069\u27e9"),
        ("line\nbreak\ttab", "line\nbreak\ttab"),
        ("\x7f\x9f\ufeff", "\u27e8U+007F\u27e9\u27e8U+009F\u27e9\u27e8U+FEFF\u27e9"),
        ("عربي 中文 é", "عربي 中文 é"),
    ],
)
def test_what_is_not_seen_is_spelt_out(text: str, shown: str) -> None:
    assert escape(text) == shown
