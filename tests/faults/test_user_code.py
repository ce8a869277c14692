"""Gates and task domains are code that projects write: whatever goes wrong in it is one error that names it."""

from pathlib import Path

import pytest

from gatepost.errors import RegistrationError, UserCodeError
from gatepost.gatefiles import Gates
from gatepost.studyfiles import load_domain
from tests.archives import Project, create_project
from tests.faults.test_interruption import forget_gates

SHARE = '    yield share("close_share", closed, len(evidence.plan.keys), ">=", min_close_share)\n'
BAD_RULES = {
    "raises": ("    yield 1 / 0\n", r"raised ZeroDivisionError: division by zero judging stage selection at 8"),
    "exits": ("    raise SystemExit(0)\n    yield\n", r"raised SystemExit: 0"),
    "skips": ("    import pytest\n    pytest.skip('no')\n    yield\n", r"raised Skipped: no"),
    "gives nothing": ("    return None\n", r"gave None judging .*, expected one Check after the other"),
    "yields a number": ("    yield 1\n", r"gave 1 judging .*, expected a Check"),
    "raises late": (SHARE + "    yield from [][0]\n", r"raised IndexError"),
}


@pytest.mark.parametrize("name", BAD_RULES)
def test_a_gate_that_does_not_judge(tmp_path: Path, name: str) -> None:
    rule, message = BAD_RULES[name]
    project = create_project(tmp_path)
    archive = project.freeze()
    project.step(archive)
    edit_gates(project, SHARE, rule)
    with pytest.raises(UserCodeError, match=rf"gate toy_closes \(version 1, .*toy.py\) {message}"):
        project.step(archive)
    (folder,) = archive.attempt_folders()
    assert (folder / "rows.parquet").exists(), "what was sampled is kept"
    assert archive.journal.read()[-1].event == "failed"


@pytest.mark.parametrize(
    ("reach", "message"),
    [
        ("1 / 0", r"raised ZeroDivisionError: division by zero for stage selection"),
        ("return None", r"gave None for stage selection, expected one Reach after the other"),
        ("yield 0.75", r"gave 0.75 for stage selection, expected a Reach"),
    ],
)
def test_a_reach_that_says_nothing(tmp_path: Path, reach: str, message: str) -> None:
    project = create_project(tmp_path)
    edit_gates(project, "    yield minimum_count(", f"    {reach}\n    return (")
    with pytest.raises(UserCodeError, match=rf"reach of gate toy_closes \(.*\) {message}"):
        project.freeze()


BAD_DOMAINS = {
    "a family of no text": ('return task["animal"]\n', "return 3\n", r"family gave 3 for 'first-0', expected a text"),
    "answers that raise": ('(task["animal"],)', '(task["plant"],)', r"answers raised KeyError: 'plant' for 'first-0'"),
    "one answer": ('(task["animal"],)', 'task["animal"]', r"answers gave 'cat' .*, expected texts"),
    "messages of numbers": ('"user"', "7", r"messages gave .*, expected a list of messages"),
    "a parsed number": ("or None", "and 7", r"parse gave 7, expected a text or None"),
    "a grade of no truth": ("parsed ==", "parsed and", r"grade gave .*, expected True or False"),
    "a grade that exits": (
        "return parsed ==",
        "raise SystemExit(0)\n    return parsed ==",
        r"grade raised SystemExit: 0",
    ),
}


@pytest.mark.parametrize("name", BAD_DOMAINS)
def test_a_domain_that_does_not_keep_its_promise(tmp_path: Path, name: str) -> None:
    old, new, message = BAD_DOMAINS[name]
    project = create_project(tmp_path)
    domain = project.root / "studies" / "toy" / "domain.py"
    assert old in domain.read_text()
    domain.write_text(domain.read_text().replace(old, new))
    archive = project.freeze()
    with pytest.raises(UserCodeError, match=rf"task domain .*domain.py: {message}"):
        project.run(archive)
    assert archive.journal.read()[-1].event == "failed"


@pytest.mark.parametrize("ending", ["raise SystemExit(0)", "raise GeneratorExit", "1 / 0", "import nothing_there"])
def test_a_file_that_cannot_be_imported(tmp_path: Path, ending: str) -> None:
    project = create_project(tmp_path)
    for path in (project.root / "gates" / "toy.py", project.root / "studies" / "toy" / "domain.py"):
        path.write_text(f"{path.read_text()}\n{ending}\n")
    with pytest.raises(RegistrationError, match=r"toy.py: cannot be imported"):
        Gates([project.root / "gates"])
    with pytest.raises(RegistrationError, match=r"domain.py: cannot be imported"):
        load_domain("toy", 1, project.studies, where="test")


def test_a_user_who_interrupts_an_import_is_obeyed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        Gates([tmp_path])


def edit_gates(project: Project, old: str, new: str) -> None:
    """Change the project's gates, read anew by what comes next."""
    gates = project.root / "gates" / "toy.py"
    text = gates.read_text()
    assert old in text
    gates.write_text(text.replace(old, new))
    forget_gates(project)
