"""What an engine says is checked where it enters: garbage is named, and what came before it is kept."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatepost.engine import Chunk, Completion, Prompt, Request
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import EngineError
from tests.faults.test_interruption import project_before_selection

FIRST = "first-0/0"
CHUNK, COMPLETION = Chunk(FIRST, (7,), (1,)), Completion(FIRST, "stop", "text", 0.1)
ANSWERS: dict[str, tuple[object, str]] = {
    "a negative id": (replace(CHUNK, token_ids=(-1,)), r"'first-0/0' with id -1, expected integers in \[0, 2\^31\)"),
    "an id past 32 bits": (replace(CHUNK, token_ids=(2**31,)), r"with id 2147483648"),
    "an id that is true": (replace(CHUNK, token_ids=(True,)), r"with id True"),
    "an id of no integer": (replace(CHUNK, token_ids=(1.5,)), r"with id 1.5"),
    "a negative length": (replace(CHUNK, forward_input_lengths=(-1,)), r"forward input lengths with id -1"),
    "text of bytes": (replace(COMPLETION, text=b"x"), r"with a bytes, expected text"),
    "a lone surrogate": (replace(COMPLETION, text="\ud800"), r"text without surrogates"),
    "a reason of no text": (replace(COMPLETION, finish_reason=3), r"finish_reason with a int"),
    "a request nobody made": (replace(CHUNK, request_id="x"), r"request 'x', which was not asked"),
}


def with_answers(*extra: object, at_the_end: bool = False) -> type[ScriptedEngine]:
    """An engine that also says this."""

    class Talkative(ScriptedEngine):
        def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
            answers: Any = extra
            if not at_the_end:
                yield from answers
            yield from super().generate(requests)
            yield from answers

    return Talkative


@pytest.mark.parametrize("name", ANSWERS)
def test_garbage_while_generating(tmp_path: Path, name: str) -> None:
    answer, message = ANSWERS[name]
    project, archive = project_before_selection(tmp_path)
    with pytest.raises(EngineError, match=message) as caught:
        project.step(archive, with_answers(answer))
    assert caught.value.kind == "garbage"
    (folder,) = archive.attempt_folders()
    assert (folder / "stream.jsonl").stat().st_size > 0
    assert not (folder / "rows.parquet").exists()


@pytest.mark.parametrize("answer", [CHUNK, COMPLETION])
def test_nothing_comes_after_a_completion(tmp_path: Path, answer: object) -> None:
    project, archive = project_before_selection(tmp_path)
    with pytest.raises(EngineError, match="an answer to request 'first-0/0' after its completion") as caught:
        project.step(archive, with_answers(answer, at_the_end=True))
    assert caught.value.kind == "garbage"


@pytest.mark.parametrize("change", ["one too few", "one twice", "one of another task", "an odd id"])
def test_each_task_has_one_prompt(tmp_path: Path, change: str) -> None:
    class Odd(ScriptedEngine):
        def render(self, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Prompt]:
            first, *rest = super().render(conversations)
            return {
                "one too few": rest,
                "one twice": [first, first, *rest],
                "one of another task": [replace(first, task_id="x"), *rest],
                "an odd id": [replace(first, token_ids=(-1,)), *rest],
            }[change]

    project, archive = project_before_selection(tmp_path)
    with pytest.raises(EngineError, match=r"engine gave prompt") as caught:
        project.step(archive, Odd)
    assert caught.value.kind == "garbage"
