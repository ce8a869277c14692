"""``pytest -m gpu``: runs the step that needs an accelerator, or says what is missing; never a silent skip."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run, lines_with
from tests.plugin.test_live import open_at_selection

DEVICE_ENGINE = """
from dataclasses import replace

from gatepost.engines.scripted import ScriptedEngine


class DeviceEngine(ScriptedEngine):
    def __init__(self, spec):
        options = {name: value for name, value in spec.options.items() if name != "device"}
        super().__init__(replace(spec, options=options))
"""


@pytest.fixture
def no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.usefixtures("no_accelerator")
@pytest.mark.parametrize("arguments", [["-m", "gpu"], ["--gatepost-live"]])
def test_no_accelerator_is_an_error(project: Project, run: Run, arguments: list[str]) -> None:
    archive = open_at_selection(project, device="cuda:0")
    result = run("receipts", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *protocol.json::live[[]selection[]] needs an accelerator: CUDA_VISIBLE_DEVICES='' hides every device"]
    )
    assert len(archive.finished_steps()) == 1


def test_no_driver_is_an_error(project: Project, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("gatepost.plugin.live.DEVICE_FILES", ("/dev/no_such_device",))
    open_at_selection(project, device="cuda:0")
    result = run("receipts", "-m", "gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "needs an accelerator: no CUDA device, since none of /dev/no_such_device exists")


def test_an_open_step_that_needs_no_accelerator_is_named(project: Project, run: Run) -> None:
    open_at_selection(project)
    project.run(project.freeze("done"))
    result = run("receipts", "-m", "gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: no open step needs an accelerator",
            "  *done: decision: REPLICATED selected=32",
            "  *toy: open: selection, which needs none: --gatepost-live runs it",
        ]
    )


def test_with_an_accelerator_the_step_runs_alone(
    project: Project, run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("gatepost.plugin.live.DEVICE_FILES", ("/dev/null",))
    pytester.makepyfile(device_engine=DEVICE_ENGINE)
    pytester.syspathinsert()
    archive = open_at_selection(project, device="cuda:0", kind="device_engine:DeviceEngine")
    result = run("receipts", "-m", "gpu")
    result.assert_outcomes(passed=1, deselected=4)
    assert list(map(str, archive.finished_steps())) == ["design", "selection"]


@pytest.mark.usefixtures("no_accelerator")
def test_gpu_tests_of_others_are_left_alone(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    """A project may mark what it likes, next to archives that are finished and without an accelerator here."""
    project.run(project.freeze())
    pytester.makepyfile("import pytest\n@pytest.mark.gpu\ndef test_own(): pass")
    run("-m", "gpu").assert_outcomes(passed=1, deselected=13)


@pytest.mark.usefixtures("no_accelerator")
def test_a_gpu_test_of_an_engine_fixture_needs_one(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.gpu\ndef test_own(engine_session): pass")
    result = run("-m", "gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "::test_own (engine_session) needs an accelerator")
