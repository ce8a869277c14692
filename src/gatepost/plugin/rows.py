"""A gate over rows as one test: each failing row is a subtest, and a row that is well costs no pytest item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

ProblemOf = Callable[[Mapping[str, Any]], str | None]
"""What is wrong with a row, as plain values by column; nothing of one that is well."""

EachRow = Callable[[Any, ProblemOf], None]


@pytest.fixture
def each_row(request: pytest.FixtureRequest) -> EachRow:
    """Holds a gate of one's own against each row of a table, and reports every row that fails under its name::

        from gatepost.audit import audit

        def test_no_sample_loops(each_row):
            each_row(audit("samples.parquet"), lambda row: row["period"] and f"period {row['period']}")

    Rows are those of a ``pyarrow.Table``, or mappings. A failing row is a subtest where pytest has subtests (from 9 on,
    or with pytest-subtests), else a line of the one failure. A table without rows fails: nothing was looked at.
    """

    def check(rows: Any, problem_of: ProblemOf) -> None:
        count, failing = 0, list[tuple[str, str]]()
        for count, row in enumerate(_plain(rows), start=1):
            if problem := problem_of(row):
                failing.append((_name(row, count - 1), problem))
        if not count:
            pytest.fail("no rows, expected at least one", pytrace=False)
        if failing:
            _report(request, failing, count)

    return check


def _plain(rows: Any) -> Iterator[Mapping[str, Any]]:
    if not hasattr(rows, "to_batches"):
        yield from rows
        return
    for batch in rows.to_batches():
        yield from batch.to_pylist()


def _name(row: Mapping[str, Any], index: int) -> str:
    """Task and sample, after the file where there is one; of a row that does not say them, its index."""
    if "task_id" not in row or "sample_index" not in row:
        return f"row {index}"
    key = f"{row['task_id']}/{row['sample_index']}"
    return f"{row['file']}: {key}" if "file" in row else key


def _report(request: pytest.FixtureRequest, failing: Iterable[tuple[str, str]], count: int) -> None:
    try:
        subtests = request.getfixturevalue("subtests")
    except pytest.FixtureLookupError:
        subtests = None
    if subtests is None:
        lines = [f"{name}: {problem}" for name, problem in failing]
        pytest.fail("\n".join([f"{len(lines)} of {count} rows fail", *lines]), pytrace=False)
    for name, problem in failing:
        with subtests.test(msg=name):
            pytest.fail(problem, pytrace=False)
