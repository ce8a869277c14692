"""Being installed costs a pytest run next to nothing, and changes nothing."""

import subprocess
import sys

import pytest

from tests.plugin.conftest import lines_with

MAX_IMPORT_SECONDS = 0.05

HEAVY = (
    "jsonschema",
    "pyarrow",
    "rfc8785",
    "torch",
    "vllm",
    "transformers",
    "gatepost.archive",
    "gatepost.engines",
    "gatepost.gatefiles",
    "gatepost.probe",
    "gatepost.replay",
    "gatepost.plugin.archives",
)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def import_seconds() -> float:
    """What importing the plugin takes on top of pytest, as the interpreter measures it."""
    report = python("-X", "importtime", "-c", "import pytest, gatepost.plugin").stderr
    columns = [line.split("|") for line in report.splitlines() if line.count("|") == 2]
    return sum(int(cumulative) for _, cumulative, name in columns if name in (" gatepost", " gatepost.plugin")) / 1e6


def test_the_import_is_cheap() -> None:
    # The machine may be busy, so the best of a few is what it takes.
    assert min(import_seconds() for _ in range(5)) < MAX_IMPORT_SECONDS


def test_the_import_loads_nothing_heavy_and_changes_nothing() -> None:
    python(
        "-c",
        "import os, sys, threading, pytest\n"
        "before = dict(os.environ), list(sys.path)\n"
        "import gatepost.plugin\n"
        "assert (dict(os.environ), list(sys.path)) == before\n"
        "assert threading.active_count() == 1\n"
        f"assert not set({HEAVY}) & set(sys.modules)",
    )


def test_a_plain_run_loads_nothing_heavy(pytester: pytest.Pytester) -> None:
    (pytester.path / "protocol.json").write_text("{}")
    pytester.makepyfile(
        f"""
        import sys

        def test_own():
            assert "gatepost.plugin" in sys.modules
            assert not set({HEAVY}) & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_a_plain_run_has_the_same_environment(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os

        def test_own():
            print("environment:", sorted(os.environ.items()))
        """
    )
    runs = [pytester.runpytest_subprocess("-s", *arguments) for arguments in ([], ["-p", "no:gatepost"])]
    with_plugin, without = (lines_with(result, "environment:") for result in runs)
    assert with_plugin == without
