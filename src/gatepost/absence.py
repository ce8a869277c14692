"""What stands for evidence that was not published: what is known of it, and nothing more. Only an import has any.

A gate that needs the evidence itself finds none, and is inconclusive; its open checks name what would decide them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatepost.engine import Prompt
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
