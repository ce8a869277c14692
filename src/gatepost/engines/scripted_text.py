"""The text of the scripted engine: a small vocabulary, and bytes for everything else.

Ids 0 to 255 are the bytes. Every text survives ``decode(encode(text))``, and every sequence of vocabulary ids survives
``encode(decode(ids))``, because no two words in a row spell a third one.
"""

import re
from collections.abc import Mapping, Sequence

MODEL_EOS, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

# fmt: off
THOUGHTS = (
    " so", " wait", " first", " then", " maybe", " check", " again", " because", " hence", " try", " step", " each",
    " reverse", " sort", " negate", " add", " multiply", " take", " rotate", " sum", " input", " output", " fits",
)
ANSWERS = (
    " cat", " dog", " horse", " tiger", " apple", " lemon",
    " river", " ocean", " silver", " gold", " circle", " square",
)
"""The answer words of study B."""
# fmt: on

_MARKERS = (MODEL_EOS, TURN_START, TURN_END, THINK_OPEN, THINK_CLOSE)
_WORDS = (*_MARKERS, "\n", "system", "user", "assistant", "First:", *ANSWERS, *THOUGHTS)
_PIECES = (*(bytes([byte]) for byte in range(256)), *(word.encode() for word in _WORDS))

IDS: Mapping[str, int] = {word: 256 + index for index, word in enumerate(_WORDS)}
"""Word -> id, markers included."""

# Longest first, so that a word is never cut at a shorter one that it begins with.
_WORD = re.compile("|".join(re.escape(word) for word in sorted(_WORDS, key=len, reverse=True)))


def encode(text: str) -> list[int]:
    """Text to ids. Markers in the text become their ids, as in a real tokenizer."""
    ids: list[int] = []
    end = 0
    for match in _WORD.finditer(text):
        ids.extend(text[end : match.start()].encode())
        ids.append(IDS[match.group()])
        end = match.end()
    ids.extend(text[end:].encode())
    return ids


def decode(ids: Sequence[int]) -> str:
    """Ids to text; bytes that are not UTF-8 become replacement characters."""
    return b"".join(_PIECES[token_id] for token_id in ids).decode(errors="replace")


def render(messages: Sequence[Mapping[str, str]]) -> str:
    """The chat template: one turn after the other, then the assistant's with its thinking channel open."""
    turns = "".join(f"{TURN_START}{turn['role']}\n{turn['content']}{TURN_END}\n" for turn in messages)
    return f"{turns}{TURN_START}assistant\n{THINK_OPEN}\n"
