"""What is told of evidence that is not here."""

import pytest

from gatepost.absence import AbsentRows, PromptDigest, prompt_lengths
from gatepost.engine import Prompt

PROMPTS = (Prompt("t1", "a", (1, 2, 3)), Prompt("t2", "b", ()))
DIGESTS = (PromptDigest("t1", 7, "0" * 64),)


@pytest.mark.parametrize(
    ("prompts", "digests", "lengths"),
    [
        (PROMPTS, None, [("t1", 3), ("t2", 0)]),
        (PROMPTS, DIGESTS, [("t1", 3), ("t2", 0)]),  # the whole prompt says more than its digest
        ((), DIGESTS, []),
        (None, DIGESTS, [("t1", 7)]),
        (None, (), []),
        (None, None, None),
    ],
)
def test_lengths_come_from_prompts_or_else_from_digests(
    prompts: tuple[Prompt, ...] | None, digests: tuple[PromptDigest, ...] | None, lengths: list[tuple[str, int]] | None
) -> None:
    assert prompt_lengths(prompts, digests) == lengths


def test_absent_rows_are_named_by_path_size_and_digest() -> None:
    absent = AbsentRows("raw/rows.parquet", 12, "ab" * 32, 3, {})
    assert str(absent) == f"3 rows not published: raw/rows.parquet, 12 bytes, SHA-256 {'ab' * 32}"
