"""A tokenizer with a chat template, used the same way by every engine that has one."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatepost.errors import EngineError


class ChatTokenizer:
    """Text to ids and back. The template writes the special tokens itself; none is ever added."""

    def __init__(self, tokenizer: Any) -> None:
        """Wrap a tokenizer of Transformers, loaded by whoever loads the model."""
        self._tokenizer = tokenizer

    @property
    def eos_id(self) -> int | None:
        """The tokenizer's own end of sequence, which need not be the model's."""
        eos_id: int | None = self._tokenizer.eos_token_id
        return eos_id

    def render(self, messages: Sequence[Mapping[str, str]], *, thinking: bool) -> tuple[str, tuple[int, ...]]:
        """Prompt text and ids, thinking channel open or closed. ``EngineError`` (``refused``) without a template."""
        if self._tokenizer.chat_template is None:
            raise EngineError("the tokenizer has no chat template", kind="refused")
        # Explicit, because templates differ in their default; one without the switch ignores it.
        text: str = self._tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            add_generation_prompt=True,
            tokenize=False,
            enable_thinking=thinking,
        )
        return text, tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def one_id(self, marker: str) -> int | None:
        """The id of a text that is one id; ``None`` for every other."""
        ids = self._tokenizer.encode(marker, add_special_tokens=False)
        return ids[0] if len(ids) == 1 else None

    def decode(self, token_ids: Sequence[int]) -> str:
        """Ids to text, special tokens included and no space tidied away."""
        text: str = self._tokenizer.decode(
            list(token_ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text
