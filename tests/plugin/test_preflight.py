"""An attempt that was refused before generation replays too."""

from typing import Any

import pytest

from gatepost.archive import Archive
from gatepost.probe import PreflightRefusedError
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
