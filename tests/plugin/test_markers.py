"""The markers are registered, and left to those who use them."""

import pytest

from tests.plugin.conftest import Run


def test_markers_are_registered(run: Run) -> None:
    run("--markers").stdout.fnmatch_lines(
        ["@pytest.mark.gpu: needs an accelerator and starts an engine", "@pytest.mark.cpu: everything else, *"]
    )


def test_tests_of_others_have_no_marker(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_plain(request):
            assert not list(request.node.iter_markers())

        @pytest.mark.cpu
        def test_marked():
            pass
        """
    )
    run("--strict-markers").assert_outcomes(passed=2)
    run("-m", "cpu").assert_outcomes(passed=1, deselected=1)
