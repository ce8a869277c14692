"""When a step may run, and what running one looks like."""

import pytest

from gatepost.archive import Archive
from tests.archives import Project
from tests.plugin.conftest import Run, lines_with

LIVE = "::live[[]design[]]"


def collected(run: Run, *arguments: str) -> list[str]:
    """Live items that would run."""
    result = run("receipts", "--collect-only", "-q", *arguments)
    return [line.partition("protocol.json::")[2] for line in lines_with(result, "::live[")]


def open_at_selection(
    project: Project, name: str = "toy", *, device: str | None = None, kind: str = "scripted"
) -> Archive:
    """An archive whose next step samples; the step before it does not."""
    archive = project.freeze(name, device=device, kind=kind)
    project.step(archive)
    return archive


NEVER = (
    [],
    ["-m", "cpu"],
    ["-m", "gpu or cpu"],
    ["-m", "not gpu"],
    ["-m", "not slow"],
    ["-k", "live"],
    ["-m", "((gpu"],
)


@pytest.mark.parametrize("arguments", NEVER)
@pytest.mark.parametrize("device", [None, "cuda:0"])
def test_no_live_item_without_being_asked(project: Project, run: Run, arguments: list[str], device: str | None) -> None:
    open_at_selection(project, device=device)
    assert collected(run, *arguments) == []


@pytest.mark.parametrize(
    ("arguments", "on_cpu", "on_gpu"),
    [
        (["--gatepost-live"], True, True),
        (["--gatepost-live", "-m", "cpu"], True, False),
        (["--gatepost-live", "-m", "gpu"], False, True),
        (["-m", "gpu"], False, True),
        (["-m", "gpu and not slow"], False, True),
        (["-m", "not cpu"], False, True),
    ],
)
def test_a_live_item_where_asked(project: Project, run: Run, arguments: list[str], on_cpu: bool, on_gpu: bool) -> None:
    open_at_selection(project)
    assert bool(collected(run, *arguments)) is on_cpu
    open_at_selection(project, "gpu", device="cuda:0")
    assert (collected(run, *arguments)[on_cpu:] == ["live[selection]"]) is on_gpu


def test_a_step_that_starts_no_engine_needs_no_accelerator(project: Project, run: Run) -> None:
    project.freeze(device="cuda:0")
    assert collected(run, "--gatepost-live", "-m", "cpu") == ["live[design]"]


def test_one_invocation_runs_one_step(project: Project, run: Run) -> None:
    archive = project.freeze()
    for step in ("design", "selection", "confirmation@32"):
        result = run("receipts", "--gatepost-live")
        assert result.ret == pytest.ExitCode.OK
        assert str(archive.finished_steps()[-1]) == step
    result.stdout.fnmatch_lines(
        ["  confirmation   32", "    toy_closes   pass 8/8", "  decision: REPLICATED selected=32"]
    )
    run("receipts").assert_outcomes(passed=13)


def test_only_the_live_item_when_only_it_is_named(project: Project, run: Run) -> None:
    archive = project.freeze()
    run("receipts/toy/protocol.json::live", "--gatepost-live").assert_outcomes(passed=1)
    assert list(map(str, archive.finished_steps())) == ["design"]


def test_what_is_shown_after_a_step_is_newer_than_the_replay(project: Project, run: Run) -> None:
    open_at_selection(project)
    result = run("receipts", "--gatepost-live")
    result.stdout.fnmatch_lines(["    toy_closes   fail 0/12   pass 12/12   pass 12/12", "  open: confirmation@32"])
    result.stdout.no_fnmatch_line("*open: selection*")


def test_a_failed_experiment_is_not_a_failed_test(project: Project, run: Run) -> None:
    archive = project.freeze(think_tokens=(70, 80))
    project.step(archive)
    result = run("receipts", "--gatepost-live")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["  decision: NO_CAP selected=none"])


def test_a_refusal_before_generation_fails_with_its_checks(project: Project, run: Run) -> None:
    archive = project.freeze(engine_model_len=1)
    project.step(archive)
    result = run("receipts", "--gatepost-live")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["selection: refused before generation", "  toy_engine: max_model_len_tokens 4096 == 1"]
    )
    assert not lines_with(result, "Traceback")
    assert list(map(str, archive.finished_steps())) == ["design"]


def test_an_engine_that_does_not_start_fails_with_its_message(project: Project, run: Run) -> None:
    open_at_selection(project, kind="no_such_package:Engine")
    result = run("receipts", "--gatepost-live")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["engine 'no_such_package:Engine' needs no_such_package, which is not installed"])
    assert not lines_with(result, "Traceback")


def test_two_open_steps_are_refused_and_named(project: Project, run: Run) -> None:
    archives = [project.freeze("one"), project.freeze("two")]
    result = run("receipts", "--gatepost-live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "one/protocol.json::live[design]")
    assert lines_with(result, "two/protocol.json::live[design]")
    assert not any(archive.finished_steps() for archive in archives)


def test_one_of_two_archives_can_be_chosen(project: Project, run: Run) -> None:
    one, two = project.freeze("one"), project.freeze("two")
    run("receipts/one", "--gatepost-live").assert_outcomes(passed=3)
    run("receipts", "--gatepost-live", "-k", "two").assert_outcomes(passed=3, deselected=5)
    assert len(one.finished_steps()) == len(two.finished_steps()) == 1


def test_nothing_open_is_said(project: Project, run: Run) -> None:
    project.run(project.freeze())
    result = run("receipts", "--gatepost-live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: no open step is selected", "*toy: decision: REPLICATED selected=32"])


def test_a_broken_archive_is_said(project: Project, run: Run) -> None:
    archive = project.freeze()
    (archive.root / "protocol.json").write_text("{")
    result = run("receipts", "--gatepost-live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "protocol.json: not JSON")


@pytest.mark.parametrize("arguments", [["--gatepost-live", "-n2"], ["-m", "gpu", "-n2"]])
def test_live_with_workers_is_refused(project: Project, run: Run, arguments: list[str]) -> None:
    archive = open_at_selection(project, device="cuda:0")
    result = run("receipts", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "a live step runs in one process, with one engine: no -n")
    assert len(archive.finished_steps()) == 1


def test_a_collection_error_elsewhere_is_not_hidden(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.run(project.freeze())
    pytester.makepyfile("raise SystemError('of the test module')")
    result = run("--gatepost-live")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert lines_with(result, "of the test module")


def test_a_live_step_that_fails_leaves_no_stale_catalog_root_on_the_screen(project: Project, run: Run) -> None:
    archive = project.freeze(engine_model_len=8192)
    project.step(archive)
    before = archive.catalog()["root"]
    result = run("receipts", "--gatepost-live")
    result.assert_outcomes(passed=4, failed=1)
    assert archive.catalog()["root"] != before, "the refusal is journalled"
    assert not lines_with(result, "catalog root")
