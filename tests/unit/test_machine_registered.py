"""What a plan registers of the machine: how it is written, and a real child process that meets it or does not."""

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.engines.child import ChildSession
from gatepost.errors import GatepostError
from gatepost.preflight import PreflightRefusedError
from gatepost.replay import replay
from tests.archives import Project, create_project

GATE = "gates.environment = { version = 1 }\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path)


def on(machine: str, *, gate: str = GATE) -> Callable[[str], str]:
    """The change to a draft that registers a machine, and has the selection judge it."""

    def edit(text: str) -> str:
        assert "packages = {}\n" in text
        text = text.replace("packages = {}\n", f"packages = {{}}\nmachine = {machine}\n")
        return text.replace("gates.toy_engine", f"{gate}gates.toy_engine", 1)

    return edit


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ("{}", r"\$\.engine\.machine"),
        ("1", r"\$\.engine\.machine"),
        ('{ gpu = "NVIDIA H200" }', "'gpu' was unexpected"),
        ('{ device_name = "" }', r"\$\.engine\.machine\.device_name"),
        ("{ driver = 580.159 }", r"\$\.engine\.machine\.driver"),
        ('{ driver = "580" }', r"\$\.engine\.machine\.driver"),
        ('{ driver = ">=580.1" }', r"\$\.engine\.machine\.driver"),
        ('{ driver = "580.159.04\\n" }', r"\$\.engine\.machine\.driver"),
        ("{ python = 3.12 }", r"\$\.engine\.machine\.python"),
        ('{ python = "3.x" }', r"\$\.engine\.machine\.python"),
        ('{ python = "3.12." }', r"\$\.engine\.machine\.python"),
        ('{ python = "3.12.1.0" }', r"\$\.engine\.machine\.python"),
        ('{ python = "==3.12" }', r"\$\.engine\.machine\.python"),
    ],
)
def test_freezing_refuses_a_machine(project: Project, machine: str, message: str) -> None:
    with pytest.raises(GatepostError, match=message):
        project.freeze(edit=on(machine))


def test_freezing_refuses_a_machine_that_nothing_compares(project: Project) -> None:
    with pytest.raises(GatepostError, match=r"engine\.machine: no stage lists the gate environment"):
        project.freeze(edit=on('{ python = "3.12" }', gate=""))


def test_a_plan_without_a_machine_says_nothing_of_it(project: Project) -> None:
    document = jsonfile.read(project.freeze().root / "protocol.json")
    assert "machine" not in document["engine"]


def test_the_registered_python_is_let_through(project: Project) -> None:
    major, minor, _ = platform.python_version_tuple()
    archive = project.freeze(edit=on(f'{{ python = "{major}.{minor}" }}'))
    project.step(archive)
    assert str(project.step(archive, ChildSession)) == "open: confirmation@32"
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ('{ python = "2.7" }', "machine.python 3."),
        ('{ device_name = "NVIDIA H200" }', "machine.device_name "),
        ('{ driver = "580.159.04" }', "machine.driver unknown == 580.159.04"),
    ],
)
def test_another_machine_is_refused_before_it_samples(project: Project, machine: str, said: str) -> None:
    archive = project.freeze(edit=on(machine))
    project.step(archive)
    with pytest.raises(PreflightRefusedError, match=f"environment: {said}"):
        project.step(archive, ChildSession)
    assert [str(step) for step in archive.finished_steps()] == ["design"]
