from collections.abc import Callable

import pytest

from tests.archives import Project, create_project

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """The toy project, in the directory in which pytest is run."""
    return create_project(pytester.path)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest in this process, with these arguments."""

    def run_inline(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:benchmark", *arguments)

    return run_inline


def lines_with(result: pytest.RunResult, text: str) -> list[str]:
    """Lines of the output that hold a text."""
    return [line for line in [*result.outlines, *result.errlines] if text in line]
