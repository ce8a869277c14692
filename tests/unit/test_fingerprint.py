import hashlib
import struct
from array import array
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gatepost.fingerprint import RowKey, ids_sha256, rows_digest, tree_root

ids = st.none() | st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3)
tables = st.lists(
    st.tuples(
        st.builds(RowKey, st.text(max_size=3), st.integers(-(2**63), 2**63 - 1)),
        st.dictionaries(st.sampled_from(["a", "b", "ab", ""]), ids, max_size=3),
    ),
    max_size=3,
)


def test_the_format_written_out() -> None:
    text = b"gatepost/rows/1\0"
    text += struct.pack("<q", 2) + "é".encode() + struct.pack("<qq", 3, 2)
    text += struct.pack("<q", 3) + b"ids" + struct.pack("<qii", 2, 7, -1)
    text += struct.pack("<q", 7) + b"lengths" + struct.pack("<q", -1)
    rows = [(RowKey("é", 3), {"lengths": None, "ids": [7, -1]})]
    assert rows_digest(rows) == f"sha256:{hashlib.sha256(text).hexdigest()}"


@given(tables, tables)
def test_any_change_gives_another_digest(a: Any, b: Any) -> None:
    assert (rows_digest(a) == rows_digest(b)) is (a == b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([("x", 0, {"a": []})], [("x", 0, {"a": None})]),
        ([("x", 0, {"a": None})], [("x", 0, {})]),
        # A list without ids, and a row without lists, have the same name, number and length.
        ([("x", 0, {"b": []})], [("x", 0, {}), ("b", 0, {})]),
        ([("x", 0, {"a": [1], "b": []})], [("x", 0, {"a": [1]}), ("b", 0, {})]),
        ([("x", 0, {"a": [1, 2]})], [("x", 0, {"a": [1], "b": [2]})]),
        ([("x", 0, {}), ("y", 0, {})], [("y", 0, {}), ("x", 0, {})]),
        ([("x", 0, {"a": [1]})], [("x", 0, {"a": [1]}), ("x", 0, {"a": [1]})]),
        ([("xa", 0, {})], [("x", 0, {})]),
        ([], [("", 0, {})]),
    ],
)
def test_boundaries_cannot_be_moved(a: list[Any], b: list[Any]) -> None:
    digests = {rows_digest((RowKey(task, k), lists) for task, k, lists in rows) for rows in (a, b)}
    assert len(digests) == 2


@given(tables)
def test_containers_do_not_matter(table: Any) -> None:
    tuples = [(key, dict(reversed([(n, v and tuple(v)) for n, v in lists.items()]))) for key, lists in table]
    assert rows_digest(iter(tuples)) == rows_digest(table)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5))
def test_machine_integers_are_hashed_where_they_lie(numbers: list[int]) -> None:
    """An array, a view of a part of one, and integers of another width have the digest of the numbers."""
    around = memoryview(array("i", [3, *numbers, 4]))
    same = [array("i", numbers), around[1 : 1 + len(numbers)], array("q", numbers), memoryview(array("q", numbers))]
    for ids in same:
        assert rows_digest([(RowKey("t", 0), {"ids": ids})]) == rows_digest([(RowKey("t", 0), {"ids": numbers})])
        assert ids_sha256(ids) == hashlib.sha256(struct.pack(f"<{len(numbers)}i", *numbers)).hexdigest()


@pytest.mark.parametrize("token", [2**31, -(2**31) - 1, 2**63, 1.5])
def test_an_id_that_is_no_32_bit_integer_is_refused(token: Any) -> None:
    with pytest.raises(ValueError, match=r"row t/0: ids: "):
        rows_digest([(RowKey("t", 0), {"ids": [token]})])


def by_stack(leaves: list[bytes]) -> bytes:
    """RFC 6962's tree head by merging a stack of complete subtrees, as logs do when they append."""
    stack: list[tuple[int, bytes]] = []
    for leaf in leaves:
        stack.append((1, hashlib.sha256(b"\0" + leaf).digest()))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            (size, right), (_, left) = stack.pop(), stack.pop()
            stack.append((2 * size, hashlib.sha256(b"\1" + left + right).digest()))
    while len(stack) > 1:
        (_, right), (_, left) = stack.pop(), stack.pop()
        stack.append((0, hashlib.sha256(b"\1" + left + right).digest()))
    return stack[0][1] if stack else hashlib.sha256(b"").digest()


files = st.dictionaries(st.text("ab/é", min_size=1, max_size=4), st.sampled_from(["00", "01", "ff"]), max_size=20)


@given(files)
def test_the_tree_is_that_of_rfc_6962(tree: dict[str, str]) -> None:
    leaves = [f"{path}\0{digest}".encode() for path, digest in sorted(tree.items(), key=lambda item: item[0].encode())]
    assert tree_root(tree) == f"sha256:{by_stack(leaves).hex()}"
    assert tree_root(dict(reversed(tree.items()))) == tree_root(tree)


@given(files, files)
def test_any_change_of_the_tree_gives_another_root(a: dict[str, str], b: dict[str, str]) -> None:
    assume(a != b)
    assert tree_root(a) != tree_root(b)


def test_an_empty_tree_has_the_empty_root() -> None:
    assert tree_root({}) == f"sha256:{hashlib.sha256(b'').hexdigest()}"


def test_a_row_is_named_in_one_word() -> None:
    assert str(RowKey("selection-00003", 2)) == "selection-00003/2"
