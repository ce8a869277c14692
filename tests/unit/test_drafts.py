"""One draft extends another: what it says stands, what it leaves out is gone, and the protocol shows no trace of it."""

from pathlib import Path

import pytest

from gatepost.errors import GatepostError
from gatepost.freeze import plan
from tests.archives import Project, create_project
from tests.unit.test_freeze import edit, write_draft


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path)


def test_a_draft_extends_the_one_beside_it(project: Project) -> None:
    draft = write_draft(project)
    edit(draft, "[[rungs]]\nmax_think_tokens = 8", "[[rungs]]\nmax_think_tokens = 4")
    variant = draft.with_name("variant.toml")
    variant.write_text(
        'extends = "toy.toml"\nid = "variant"\n'
        "engine.options.max_model_len = 8192\n"
        "[[rungs]]\nmax_think_tokens = 16\n"
        '[[stages]]\nname = "confirmation"\nbase_seed = 99\ngates.toy_closes.min_close_share = 0.5\n'
    )
    base, found = (plan(path, gates=project.gates, studies=project.studies).protocol for path in (draft, variant))
    assert (found.id, found.engine["options"]["max_model_len"]) == ("variant", 8192)
    assert found.engine["options"]["rules"] == base.engine["options"]["rules"]  # tables are merged
    assert [rung.max_think_tokens for rung in found.rungs] == [16]  # other lists are replaced
    assert found.stages[:2] == base.stages[:2]  # named ones are merged by name, and a gate with them
    assert (found.stages[2].base_seed, found.stages[2].samples_per_task) == (99, 2)
    assert dict(found.stages[2].gates[0].thresholds) == {"min_close_share": 0.5}


def test_a_chain_of_drafts(project: Project) -> None:
    draft = write_draft(project)
    draft.with_name("b.toml").write_text('extends = "toy.toml"\nid = "b"\nengine.idle_timeout_seconds = 5\n')
    draft.with_name("c.toml").write_text(
        'extends = "b.toml"\nwithout = ["rungs"]\nid = "c"\nrungs = [{ max_think_tokens = 9 }]\n'
    )
    found = plan(draft.with_name("c.toml"), gates=project.gates, studies=project.studies).protocol
    assert (found.id, found.engine["idle_timeout_seconds"], [rung.name for rung in found.rungs]) == ("c", 5, ["9"])


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ('"variant.toml"', "extends is 'variant.toml', expected another draft in the same folder"),
        ('"../toy.toml"', r"extends is '\.\./toy.toml', expected another draft in the same folder"),
        ("5", "extends is 5, expected a string"),
        ('"nothing.toml"', "nothing.toml"),
    ],
)
def test_a_draft_that_extends_nothing_is_refused(project: Project, base: str, message: str) -> None:
    variant = write_draft(project).with_name("variant.toml")
    variant.write_text(f"extends = {base}\n")
    with pytest.raises(GatepostError, match=message):
        plan(variant, gates=project.gates, studies=project.studies)


def test_what_a_draft_leaves_out(project: Project) -> None:
    variant = write_draft(project).with_name("variant.toml")
    variant.write_text(
        'extends = "toy.toml"\nid = "variant"\n'
        'without = ["stages.confirmation", "stages.selection.gates.toy_engine", "labels"]\n'
        '[labels.exhausted]\nname = "NO"\nlicenses = "a"\ndoes_not_license = "b"\n'
        '[labels.selected]\nname = "YES"\nlicenses = "a"\ndoes_not_license = "b"\n'
    )
    found = plan(variant, gates=project.gates, studies=project.studies).protocol
    assert [stage.name for stage in found.stages] == ["design", "selection"]
    assert [gate.name for gate in found.stages[1].gates] == ["toy_closes"]
    assert set(found.labels) == {"exhausted", "selected"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('without = ["stages.selektion"]', "without: there is no stages.selektion to leave out"),
        ('without = ["rungs.8"]', "without: there is no rungs.8 to leave out"),
        ('without = ["id.x"]', "without: there is no id.x to leave out"),
        ("without = [5]", "without is 5, expected a string"),
        ('without = "id"', "without is 'id', expected a list"),
        ('stages = [{ name = "selection" }, { name = "selection" }]', "stages: names .*, expected all different"),
        ("stages = []", "stages"),  # an empty list is one, and takes the place of the stages before it
    ],
)
def test_a_draft_that_leaves_out_nothing_or_says_it_twice_is_refused(project: Project, text: str, message: str) -> None:
    variant = write_draft(project).with_name("variant.toml")
    variant.write_text(f'extends = "toy.toml"\n{text}\n')
    with pytest.raises(GatepostError, match=message):
        plan(variant, gates=project.gates, studies=project.studies)


def test_a_name_with_a_dot_is_left_out(project: Project) -> None:
    draft = write_draft(project)
    edit(draft, "packages = {}", 'packages = { "ruamel.yaml" = "0.18", ruamel = "1" }')
    variant = draft.with_name("variant.toml")
    variant.write_text('extends = "toy.toml"\nid = "variant"\nwithout = ["engine.packages.ruamel.yaml"]\n')
    found = plan(variant, gates=project.gates, studies=project.studies).protocol
    assert found.engine["packages"] == {"ruamel": "1"}


def test_names_that_come_twice_in_the_draft_before_are_refused(project: Project) -> None:
    draft = write_draft(project)
    edit(draft, 'name = "confirmation"', 'name = "selection"')
    variant = draft.with_name("variant.toml")
    variant.write_text('extends = "toy.toml"\n[[stages]]\nname = "selection"\nbase_seed = 5\n')
    with pytest.raises(GatepostError, match=r"stages: names .*, expected all different"):
        plan(variant, gates=project.gates, studies=project.studies)


def test_a_chain_or_a_nesting_without_an_end_is_refused(project: Project) -> None:
    folder = write_draft(project).parent
    for n in range(1100):
        (folder / f"{n}.toml").write_text(f'extends = "{n + 1}.toml"\n' if n < 1099 else 'id = "x"\n')
    key = ".".join(["a"] * 600)
    (folder / "deep.toml").write_text(f"{key} = 1\n")
    (folder / "deeper.toml").write_text(f'extends = "deep.toml"\n{key} = 2\n')
    for name in ("0.toml", "deeper.toml"):
        with pytest.raises(GatepostError, match=r"nested too deeply|\$"):
            plan(folder / name, gates=project.gates, studies=project.studies)


def test_a_copied_study_under_the_old_name_is_refused(project: Project) -> None:
    """Else the domain beside the draft would be ignored, and tasks be posed and graded by the first one's."""
    draft = write_draft(project)
    copy = draft.parent.with_name("mine")
    copy.mkdir()
    for path in draft.parent.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    with pytest.raises(GatepostError, match=r"study.name is 'toy', so .*/mine/domain.py would not be used.*'mine'"):
        plan(copy / "toy.toml", gates=project.gates, studies=project.studies)
    (copy / "domain.py").unlink()
    plan(copy / "toy.toml", gates=project.gates, studies=project.studies)
