"""Replay works in workers."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run


@pytest.mark.parametrize("distribution", ["load", "loadfile"])
def test_replay_in_workers(project: Project, run: Run, distribution: str) -> None:
    project.run(project.freeze("one"))
    project.run(project.freeze("two", think_tokens=(70, 80)))
    result = run("receipts", "-n2", "--dist", distribution, "-q")
    result.assert_outcomes(passed=24)
    result.stdout.fnmatch_lines_random(["one: decision: REPLICATED selected=32", "two: decision: NO_CAP selected=none"])


def test_a_failure_in_a_worker_is_its_message(project: Project, run: Run) -> None:
    archive = project.freeze()
    (archive.root / "extra").write_text("")
    result = run("receipts", "-n2")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*extra: is not in catalog.json; it was added afterwards"])


def test_an_engine_fixture_in_a_worker_is_refused(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.freeze()
    pytester.makepyfile("import pytest\n@pytest.mark.gpu\ndef test_own(probe): probe()")
    result = run("-m", "gpu", "-n2", "--gatepost-archive", "receipts/toy")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*an engine runs in one process: leave out -n*"])
