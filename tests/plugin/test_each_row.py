"""A gate over rows: a subtest for each row that fails, one item for all of them."""

from pathlib import Path

import pytest

from tests.plugin.conftest import Run

GATE = """
    import pyarrow as pa

    ROWS = [
        {"task_id": f"t{n}", "sample_index": n % 2, "period": 5 if n in FAILING else None} for n in range(4)
    ]

    def problem(row):
        return row["period"] and f"period {row['period']}"

    def test_rows(each_row):
        each_row(ROWS, problem)

    def test_table(each_row):
        each_row(pa.Table.from_pylist(ROWS), problem)
"""
HAS_SUBTESTS = pytest.version_tuple >= (9, 0)


def write(pytester: pytest.Pytester, failing: str, code: str = GATE) -> None:
    pytester.makepyfile(test_own=f"FAILING = {failing}\n" + "\n".join(line[4:] for line in code.splitlines()))


def test_nothing_is_added_where_nothing_fails(pytester: pytest.Pytester, run: Run) -> None:
    write(pytester, "()")
    run().assert_outcomes(passed=2)


@pytest.mark.skipif(not HAS_SUBTESTS, reason="pytest has subtests from 9 on")
def test_each_failing_row_is_a_subtest(pytester: pytest.Pytester, run: Run) -> None:
    write(pytester, "(1, 3)")
    result = run("-rA")
    text = result.stdout.str()
    for test in ("test_rows", "test_table"):
        for name in ("t1/1", "t3/1"):
            result.stdout.fnmatch_lines([f"SUBFAILED[[]{name}] test_own.py::{test} - Failed: period 5"])
        assert f"SUBFAILED[t0/0] test_own.py::{test}" not in text
        result.stdout.fnmatch_lines([f"FAILED test_own.py::{test} - contains 2 failed subtests"])
    assert "Traceback" not in text
    assert result.ret == 1


def test_without_subtests_each_failing_row_is_a_line(pytester: pytest.Pytester, run: Run) -> None:
    write(pytester, "(1, 3)")
    result = run("-p", "no:subtests")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["2 of 4 rows fail", "t1/1: period 5", "t3/1: period 5"])
    assert "Traceback" not in result.stdout.str()


def test_no_rows_are_nothing_to_pass_on(pytester: pytest.Pytester, run: Run) -> None:
    write(pytester, "()", "    def test_rows(each_row):\n        each_row([], lambda row: None)\n")
    result = run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no rows, expected at least one"])


def test_rows_without_a_key_are_told_by_their_place(pytester: pytest.Pytester, run: Run) -> None:
    write(pytester, "()", "    def test_rows(each_row):\n        each_row([{}, {}], lambda row: 'odd')\n")
    run("-p", "no:subtests").stdout.fnmatch_lines(["row 0: odd", "row 1: odd"])


def test_loops_of_a_file(pytester: pytest.Pytester, run: Run) -> None:
    lines = [
        f'{{"task_id": "t{number}", "sample_index": 0, "token_ids": {ids}}}\n'
        for number, ids in enumerate([[1, 2] * 8, list(range(16))])
    ]
    (Path(pytester.path) / "rows.jsonl").write_text("".join(lines))
    code = """
    from gatepost.audit import LoopRule, audit

    def test_no_sample_loops(each_row):
        each_row(audit("rows.jsonl", LoopRule(16, 8, 1.0)), lambda row: row["period"] and f"period {row['period']}")
    """
    write(pytester, "()", code)
    result = run("-p", "no:subtests")
    result.stdout.fnmatch_lines(["1 of 2 rows fail", "rows.jsonl: t0/0: period 2"])
