"""Fixtures for a project's own tests."""

import pytest

from tests.archives import Project
from tests.plugin.conftest import Run, lines_with


@pytest.fixture
def _ini(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\ngatepost_archive = receipts/toy\naddopts = --strict-markers\npython_files = test_own.py"
    )


@pytest.mark.usefixtures("_ini")
def test_five_lines_are_enough(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.run(project.freeze())
    pytester.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.cpu
        def test_selected(receipt):
            assert receipt("selection").decision.rung == "32"
        """
    )
    run("test_own.py").assert_outcomes(passed=1)


@pytest.mark.usefixtures("_ini")
def test_receipts(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.run(project.freeze())
    pytester.makepyfile(
        test_own="""
        import pytest

        from gatepost.errors import GatepostError

        def test_steps(receipt):
            assert receipt("design").outcome == "pass"
            assert receipt("selection").outcome == "pass"
            assert [judgement.outcome for judgement in receipt("selection").judgements] == ["fail", "pass", "pass"]
            assert str(receipt("selection").decision) == "open: confirmation@32"
            assert receipt("confirmation") == receipt("confirmation@32")
            assert receipt("confirmation").decision.label == "REPLICATED"
            assert receipt("confirmation").origin == "live"

        def test_verdicts(receipt):
            assert receipt("selection").verdict("toy_closes", "8").outcome == "fail"
            assert receipt("design").verdict("toy_sizes").checks[0].observed == 8
            with pytest.raises(GatepostError, match="no verdict of gate toy_closes at 9"):
                receipt("selection").verdict("toy_closes", "9")

        def test_no_receipt(receipt):
            with pytest.raises(GatepostError, match="on record: design, selection, confirmation@32"):
                receipt("elsewhere")

        def test_archive(archive, protocol):
            assert protocol is archive.protocol
            assert protocol.id == "toy"
        """
    )
    run("test_own.py").assert_outcomes(passed=4)


@pytest.mark.usefixtures("_ini")
def test_the_archive_can_be_named(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    """By a test, before the option, before the ini file."""
    for name in ("toy", "one", "two"):
        project.freeze(name)
    pytester.makepyfile(
        test_own="""
        import pytest

        def test_default(protocol):
            assert protocol.id == "toy"

        def test_option(protocol):
            assert protocol.id == "one"

        @pytest.mark.parametrize("archive", ["receipts/two"], indirect=True)
        def test_parameter(protocol):
            assert protocol.id == "two"
        """
    )
    run("test_own.py", "-k", "default or parameter").assert_outcomes(passed=2, deselected=1)
    option = ("--gatepost-archive", "receipts/one")
    run("test_own.py", "-k", "option or parameter", *option).assert_outcomes(passed=2, deselected=1)


def test_no_archive_is_said(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile("def test_own(receipt): pass")
    result = run()
    result.assert_outcomes(errors=1)
    assert lines_with(result, "no archive for the fixtures: set gatepost_archive in the ini file")


@pytest.mark.usefixtures("_ini")
def test_an_archive_that_is_not_whole_is_said(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    (project.freeze().root / "extra").write_text("")
    pytester.makepyfile(test_own="def test_own(receipt): pass")
    result = run("test_own.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*extra: is not in catalog.json; it was added afterwards"])


ENGINE_TESTS = """
    import pytest

    def test_facts(engine_session):
        assert engine_session.facts().kind == "scripted"

    def test_the_same(engine_session, protocol):
        assert engine_session.facts().max_model_len == protocol.engine["options"]["max_model_len"]

    @pytest.mark.parametrize("engine_session", ["8"], indirect=True)
    def test_another_cap(engine_session):
        assert engine_session.render({"a": [{"role": "user", "content": "Say cat."}]})
"""


@pytest.mark.usefixtures("_ini")
def test_engine_session(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.freeze()
    pytester.makepyfile(test_own=ENGINE_TESTS)
    run("test_own.py", "--gatepost-live").assert_outcomes(passed=3)


@pytest.mark.usefixtures("_ini")
def test_engine_session_never_starts_without_being_asked(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.freeze()
    pytester.makepyfile(test_own=ENGINE_TESTS)
    result = run("test_own.py", "-rs")
    result.assert_outcomes(skipped=3)
    assert lines_with(result, "starts an engine: run with --gatepost-live or -m gpu")


@pytest.mark.usefixtures("_ini")
def test_probe_runs_one_step(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    archive = project.freeze()
    pytester.makepyfile(
        test_own="""
        import pytest

        from gatepost.errors import OrderError

        def test_step(probe):
            assert str(probe().step) == "selection"
            with pytest.raises(OrderError, match="this invocation ran a step already"):
                probe()
        """
    )
    run("test_own.py").assert_outcomes(skipped=1)
    run("test_own.py", "--gatepost-live").assert_outcomes(passed=1)
    assert list(map(str, archive.finished_steps())) == ["design"]


@pytest.mark.usefixtures("_ini")
def test_a_fixture_beside_a_live_item_is_a_second_engine(project: Project, run: Run, pytester: pytest.Pytester) -> None:
    project.freeze()
    pytester.makepyfile(test_own="def test_own(probe): probe()")
    result = run("--gatepost-live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "test_own.py::test_own (probe)")
    assert lines_with(result, "::live[design]")
