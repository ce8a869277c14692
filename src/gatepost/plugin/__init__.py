"""The pytest plugin: the only part of gatepost that imports pytest, and all that pytest imports of gatepost.

Every pytest run of an environment with gatepost in it imports this package. So its modules import pytest and the
errors, start nothing and change nothing; schemas, tables and gates load once an archive is collected or a fixture is
used (see ``gatepost.plugin.archives``), and an engine only in a live run.
"""

from gatepost.plugin.collect import (
    pytest_collect_directory,
    pytest_collect_file,
    pytest_report_teststatus,
    pytest_runtest_makereport,
)
from gatepost.plugin.fixtures import archive, engine_session, probe, protocol, receipt
from gatepost.plugin.foreign_code import pytest_load_initial_conftests
from gatepost.plugin.live import pytest_collection_modifyitems, pytest_xdist_node_collection_finished
from gatepost.plugin.options import pytest_addhooks, pytest_addoption, pytest_configure
from gatepost.plugin.page import pytest_sessionfinish, pytest_sessionstart
from gatepost.plugin.rows import each_row
from gatepost.plugin.terminal import pytest_terminal_summary

__all__ = [
    "archive",
    "each_row",
    "engine_session",
    "probe",
    "protocol",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_collect_directory",
    "pytest_collect_file",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_load_initial_conftests",
    "pytest_report_teststatus",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "pytest_sessionstart",
    "pytest_terminal_summary",
    "pytest_xdist_node_collection_finished",
    "receipt",
]
