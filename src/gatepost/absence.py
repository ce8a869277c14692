"""What stands for evidence that is not here: what is known of it, and nothing more.

Of an import it was never published: a gate that needs it finds none, and is inconclusive; its open checks name what
would decide them. Of a live step it lies elsewhere (``gatepost.elsewhere``): a gate that comes upon it is not judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from gatepost.engine import Prompt
from gatepost.errors import ElsewhereError
from gatepost.verdict import JSON


@dataclass(frozen=True)
class AbsentRows:
    """Sampled rows that lie elsewhere, by the authors' catalog.

    Attributes:
        path, size_bytes, sha256: of the file that holds them.
        rows: how many they are.
        claims: what the authors say of them, under the authors' names: shown to people, never judged.
    """

    path: str
    size_bytes: int
    sha256: str
    rows: int
    claims: Mapping[str, JSON]

    def __str__(self) -> str:
        return f"{self.rows} rows not published: {self.path}, {self.size_bytes} bytes, SHA-256 {self.sha256}"


@dataclass(frozen=True)
class PromptDigest:
    """A rendered prompt of which only length and digest were published.

    Attributes:
        prompt_tokens: length of the rendered prompt in tokens.
        rendered_sha256: of the rendered prompt, as hex digits.
    """

    task_id: str
    prompt_tokens: int
    rendered_sha256: str


def prompt_lengths(
    prompts: Sequence[Prompt] | None, digests: Sequence[PromptDigest] | None
) -> list[tuple[str, int]] | None:
    """(task id, length in tokens) of each rendered prompt that is on record, whole or as a digest."""
    if prompts is not None:
        return [(prompt.task_id, len(prompt.token_ids)) for prompt in prompts]
    return None if digests is None else [(digest.task_id, digest.prompt_tokens) for digest in digests]


class Unread(Sequence[int]):
    """Token ids that lie elsewhere: their number is known, and whoever asks for one of them raises ``ElsewhereError``.

    So a rule that only counts is judged by counts, and one that looks at an id is not judged, whatever it declares.
    """

    def __init__(self, length: int, where: str) -> None:
        self._length, self._where = length, where

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: object) -> NoReturn:
        self._refuse()

    def __iter__(self) -> NoReturn:
        self._refuse()

    def __reversed__(self) -> NoReturn:
        self._refuse()

    def __contains__(self, value: object) -> NoReturn:
        self._refuse()

    def __eq__(self, other: object) -> NoReturn:
        self._refuse()

    def __hash__(self) -> NoReturn:
        self._refuse()

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()  # what an array or a tuple of ids has besides, ``tobytes`` say

    def __repr__(self) -> str:
        return f"<{self._length} ids elsewhere>"

    def _refuse(self) -> NoReturn:
        raise ElsewhereError(self._where)
