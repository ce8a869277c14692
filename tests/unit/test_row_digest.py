"""The logical digest of rows: whichever way the part without ids is written, it is the RFC 8785 form."""

from array import array
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost import jsonfile
from gatepost.audit import rows as tables
from gatepost.errors import DataError
from gatepost.evidence import Row
from gatepost.fingerprint import RowKey, rows_digest

ROW = Row(RowKey("t", 0), 1, 2, array("i", [5, 7]), None, "stop", {})
FIELDS = ("seed", "prompt_tokens", "finish_reason", "stage_two_seed", "stage_one_finish_reason", "injected_start",
          "injected_tokens", "reprefilled_tokens")  # fmt: skip

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["\\", '"', "\x00", "\x7f", "\n", "é"]
)
numbers = st.integers(1 - 2**53, 2**53 - 1)
changes = st.fixed_dictionaries(
    {},
    optional={
        "seed": numbers,
        "finish_reason": st.none() | texts,
        "stage_two_seed": st.none() | numbers,
        "stage_one_finish_reason": st.none() | texts,
        "injected_start": st.none() | numbers,
        "claims": st.dictionaries(
            texts, st.none() | st.booleans() | numbers | texts | st.floats(-1e9, 1e9), max_size=2
        ),
    },
)


def by_the_rule(row: Row) -> str:
    rest = {**{name: getattr(row, name) for name in FIELDS}, "claims": dict(row.claims)}
    lists = {"token_ids": row.token_ids, "forward_input_lengths": row.forward_input_lengths}
    return rows_digest([(row.key, {**lists, "rest": list(jsonfile.canonical(rest))})])


@given(changes)
def test_the_digest_is_that_of_the_rule(values: dict[str, Any]) -> None:
    row = replace(ROW, **values)
    assert tables.digest_of([row]) == by_the_rule(row)


@pytest.mark.parametrize(
    "values", [{"seed": 2**53}, {"seed": -(2**53)}, {"finish_reason": "\ud800"}, {"claims": {"x": 2**60}}]
)
def test_what_has_no_canonical_form_has_no_digest(values: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="has no canonical form"):
        tables.digest_of([replace(ROW, **values)])
