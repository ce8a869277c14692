from collections.abc import Callable

import matplotlib.backends.backend_svg
import matplotlib.figure  # noqa: F401 - pytester forgets what its runs imported, and half of it would be imported again
import pytest

from tests.archives import Project, create_project

Run = Callable[..., pytest.RunResult]


@pytest.fixture(autouse=True)
def like_at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where CI is set, pytest shortens nothing, and a line that is expected once can come twice."""
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """The toy project, in the directory in which pytest is run."""
    return create_project(pytester.path)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest in this process, with these arguments, without the plugins that have nothing to do with it."""
    others = [word for name in ("cacheprovider", "benchmark", "hypothesispytest") for word in ("-p", f"no:{name}")]

    def run_inline(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess(*others, *arguments)

    return run_inline


def lines_with(result: pytest.RunResult, text: str) -> list[str]:
    """Lines of the output that hold a text."""
    return [line for line in [*result.outlines, *result.errlines] if text in line]
