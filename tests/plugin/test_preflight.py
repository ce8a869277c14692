"""An attempt that ended before generation, refused or as asked for, replays too."""

from collections.abc import Callable
from typing import Any

import pytest

from gatepost.archive import Archive
from gatepost.preflight import PreflightRefusedError
from gatepost.status import status_text
from tests.archives import Project, rewrite
from tests.plugin.conftest import Run, lines_with


@pytest.fixture
def archive(project: Project) -> Archive:
    archive = project.freeze(engine_model_len=1)
    project.step(archive)
    with pytest.raises(PreflightRefusedError):
        project.step(archive)
    return archive


def test_a_refusal_is_replayed(archive: Archive, run: Run) -> None:
    result = run("receipts", "-v")
    result.assert_outcomes(passed=5)
    assert lines_with(result, "preflight[0002-selection] PASSED")
    assert lines_with(result, "open: selection")


def test_a_changed_refusal_fails(archive: Archive, run: Run) -> None:
    def change(document: dict[str, Any]) -> None:
        document["judgement"]["verdicts"][0]["checks"][0]["limit"] = 4096

    rewrite(archive.root / "attempts" / "0002-selection" / "preflight.json", change)
    archive.write_catalog()
    result = run("receipts")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["toy_engine[[]64]: recorded max_model_len_tokens 4096 == 4096, recomputed max_model_len_tokens 4096 == 1"]
    )


@pytest.fixture
def passed(project: Project, run: Run) -> Archive:
    archive = project.freeze()
    project.step(archive)
    run("receipts", "--gatepost-preflight").assert_outcomes(passed=5)
    return archive


def test_a_preflight_alone_samples_nothing_and_leaves_the_step_open(project: Project, passed: Archive) -> None:
    assert [event.event for event in passed.journal.read()][-2:] == ["started", "preflight"]
    (attempt,) = passed.attempt_folders()
    assert {path.name for path in attempt.iterdir()} == {
        "parents.parquet", "preflight.json", "prompts.parquet", "tasks.parquet",
    }  # fmt: skip
    assert str(project.next_step(passed)) == "selection"
    assert "attempt 2) all gates before generation passed; nothing sampled" in status_text(passed)


def test_a_preflight_is_replayed_and_run_after(project: Project, passed: Archive, run: Run) -> None:
    result = run("receipts", "-v")
    result.assert_outcomes(passed=5)
    assert lines_with(result, "preflight[0002-selection] PASSED")
    run("receipts", "--gatepost-live").assert_outcomes(passed=6)
    assert list(map(str, passed.finished_steps())) == ["design", "selection"]
    run("receipts").assert_outcomes(passed=12)


def test_a_preflight_that_did_not_pass_is_a_refusal(project: Project, run: Run) -> None:
    archive = project.freeze(engine_model_len=1)
    project.step(archive)
    result = run("receipts", "--gatepost-preflight")
    result.assert_outcomes(passed=4, failed=1)
    assert lines_with(result, "toy_engine: max_model_len_tokens 4096 == 1")
    assert archive.journal.read()[-1].event == "refused"


@pytest.mark.parametrize(
    ("steps", "edit", "message"),
    [
        (0, lambda text: text, "design: starts no engine, so there is no preflight"),
        (
            1,
            lambda text: text.replace("gates.toy_engine = { version = 1, max_model_len = 4096 }\n", ""),
            "selection: no gate of this stage judges before generation",
        ),
    ],
)
def test_a_step_without_a_preflight_is_refused(
    project: Project, run: Run, steps: int, edit: Callable[[str], str], message: str
) -> None:
    archive = project.freeze(edit=edit)
    for _ in range(steps):
        project.step(archive)
    result = run("receipts", "--gatepost-preflight")
    assert lines_with(result, message)
    assert archive.attempt_folders() == []


@pytest.mark.parametrize(("event", "outcome"), [("preflight", "fail"), ("refused", "pass")])
def test_an_end_that_its_preflight_contradicts_is_found(
    project: Project, run: Run, passed: Archive, event: str, outcome: str
) -> None:
    end = passed.journal.read()[-1]
    rewrite(passed.root / end.path, lambda document: document.update(event=event))
    (attempt,) = passed.attempt_folders()
    rewrite(attempt / "preflight.json", lambda document: document["judgement"].update(outcome=outcome))
    passed.write_catalog()
    assert lines_with(run("receipts"), f"field judgement.outcome is {outcome}, but the attempt")


def test_a_gate_that_had_nothing_to_check_is_named(project: Project, run: Run) -> None:
    archive = project.freeze(
        edit=lambda text: text.replace("gates.toy_engine", "gates.environment = { version = 1 }\ngates.toy_engine")
    )
    project.step(archive)
    assert lines_with(
        run("receipts", "--gatepost-preflight"), "environment: had nothing to check, which is inconclusive"
    )


def test_a_preflight_says_what_it_found(project: Project, run: Run) -> None:
    archive = project.freeze()
    project.step(archive)
    result = run("receipts", "--gatepost-preflight")
    assert lines_with(result, "0002-selection, before generation: pass; passed: toy_engine")
    assert project.step(archive).step is not None
    quiet = run("receipts", "--gatepost-preflight", "-q")
    assert lines_with(quiet, "confirmation@32: no gate of this stage judges before generation")
