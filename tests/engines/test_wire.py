"""The pipe's format: what is said arrives unchanged, and nothing else is understood."""

import json
import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatepost.engine import Adapter, Chunk, Completion, EngineFacts, EngineSpec, Prompt, Request, SamplingParams
from gatepost.engines import wire
from gatepost.engines.wire import MAX_LINE_BYTES, decode_answer, decode_command, encode
from gatepost.errors import DataError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INTEGERS = st.integers(-(2**53) + 1, 2**53 - 1)
NUMBERS = st.floats(-1e15, 1e15)  # a larger whole number would be read as an integer past 2^53
PLAIN = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
IDS = st.lists(st.integers(0, 300_000), max_size=20).map(tuple)
TEXT_OR_NONE, INT_OR_NONE = st.none() | TEXT, st.none() | INTEGERS
OBJECTS = st.dictionaries(TEXT, PLAIN, max_size=3)

SPECS = st.builds(
    EngineSpec,
    kind=TEXT,
    model_path=TEXT,
    revision=TEXT_OR_NONE,
    tokenizer_revision=TEXT_OR_NONE,
    options=OBJECTS,
    markers=st.lists(TEXT, max_size=3).map(tuple),
    start_timeout_seconds=NUMBERS,
    idle_timeout_seconds=NUMBERS,
    sampling=st.deferred(lambda: SAMPLING),
    thinking=TEXT,
    force_close_ids=IDS,
    adapter=st.none() | st.builds(Adapter, name=TEXT, path=TEXT),
)
FACTS = st.builds(
    EngineFacts,
    kind=TEXT,
    versions=st.dictionaries(TEXT, TEXT, max_size=3),
    device=TEXT_OR_NONE,
    use_cache=st.none() | st.booleans(),
    max_model_len=INT_OR_NONE,
    markers=st.dictionaries(TEXT, INT_OR_NONE, max_size=3),
    model_eos_ids=st.none() | st.lists(INTEGERS, max_size=3),
    sampling=st.none() | OBJECTS,
    environment=OBJECTS,
    adapter_files=st.none() | st.dictionaries(TEXT, TEXT, max_size=3),
)
SAMPLING = st.builds(
    SamplingParams,
    temperature=NUMBERS,
    top_p=NUMBERS,
    top_k=INTEGERS,
    min_p=NUMBERS,
    repetition_penalty=NUMBERS,
    greedy=st.booleans(),
    stop_ids=IDS,
)
REQUESTS = st.builds(
    Request,
    request_id=TEXT,
    token_ids=IDS,
    seed=INTEGERS,
    stage_two_seed=st.none() | INTEGERS,
    sampling=SAMPLING,
    max_think_tokens=INTEGERS,
    max_answer_tokens=INTEGERS,
    think_close_id=INTEGERS,
    with_adapter=st.booleans(),
)
MESSAGES = st.dictionaries(st.sampled_from(["role", "content"]), TEXT, max_size=2)
COMMANDS = st.one_of(
    st.builds(wire.Start, target=TEXT, spec=SPECS),
    st.just(wire.AskFacts()),
    st.builds(wire.Render, conversations=st.dictionaries(TEXT, st.lists(MESSAGES, max_size=2), max_size=2)),
    REQUESTS,
    st.just(wire.Generate()),
    st.just(wire.Close()),
)
ANSWERS = st.one_of(
    st.builds(wire.Facts, facts=FACTS),
    st.builds(wire.Prompts, prompts=st.lists(st.builds(Prompt, TEXT, TEXT, IDS), max_size=2).map(tuple)),
    st.builds(Chunk, request_id=TEXT, token_ids=IDS, forward_input_lengths=st.none() | IDS, injected=st.booleans()),
    st.builds(
        Completion,
        request_id=TEXT,
        finish_reason=TEXT_OR_NONE,
        text=TEXT,
        elapsed_seconds=NUMBERS,
        stage_one_finish_reason=TEXT_OR_NONE,
        reprefilled_tokens=INTEGERS,
    ),
    st.just(wire.Generated()),
    st.just(wire.Closed()),
    st.builds(wire.Failure, reason=TEXT, message=TEXT, package=TEXT_OR_NONE),
)

CHUNK = {"kind": "chunk", "request_id": "r", "token_ids": [1, 2], "forward_input_lengths": [5, 1], "injected": False}


def _line(**changes: Any) -> bytes:
    return json.dumps({**CHUNK, **changes}).encode() + b"\n"


@given(COMMANDS)
def test_commands_arrive_unchanged(command: wire.Command) -> None:
    line = encode(command)
    assert line.count(b"\n") == 1
    assert decode_command(line) == command


@given(ANSWERS)
def test_answers_arrive_unchanged(answer: wire.Answer) -> None:
    line = encode(answer)
    assert line.count(b"\n") == 1
    assert decode_answer(line) == answer


def test_every_message_has_a_kind() -> None:
    assert set(get_args(wire.Command)) == set(wire.COMMANDS.values())
    assert set(get_args(wire.Answer)) == set(wire.ANSWERS.values())
    assert not wire.COMMANDS.keys() & wire.ANSWERS.keys()


def test_the_plain_line_is_understood() -> None:
    assert decode_answer(_line()) == Chunk("r", (1, 2), (5, 1))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "not JSON"),
        (b"[]\n", "found list, expected an object"),
        (b"null\n", "found NoneType, expected an object"),
        (b"Loading weights: 100%\n", "not JSON"),
        (_line()[:-2], "not JSON"),
        (_line() + _line(), "not JSON"),
        (b'{"kind":"closed","kind":"closed"}\n', "'kind' appears twice"),
        (b'{"kind":"closed"}\xff\n', "not UTF-8"),
        (_line(kind="close"), "kind 'close', expected one of facts"),
        (_line(kind=None), "kind None"),
        (_line(kind=["chunk"]), r"kind \['chunk'\]"),
        (_line(surplus=1), "unknown surplus"),
        (
            b'{"kind":"chunk","request_id":"r","token_ids":[]}\n',
            "forward_input_lengths.*is missing",
        ),
        (_line(request_id=7), "request_id: found 7, expected text"),
        (_line(token_ids=None), "token_ids: found None, expected a list"),
        (_line(token_ids=[1, 2.0]), r"token_ids\[1\]: found 2.0, expected an integer"),
        (_line(token_ids=[True]), r"token_ids\[0\]: found True, expected an integer"),
        (_line(token_ids={"0": 1}), "token_ids: found"),
        (_line(token_ids=[math.nan]), "NaN is not a JSON number"),
        (_line(token_ids=[2**60]), "beyond 2\\^53"),
        (b'{"kind":"facts","facts":[]}\n', r"facts: found \[\], expected an object"),
        (b" " * (MAX_LINE_BYTES + 1), "expected at most"),
    ],
)
def test_anything_else_is_refused(line: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        decode_answer(line)


@given(st.binary(max_size=60))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(DataError):
        decode_answer(noise)


@pytest.mark.parametrize(
    "message",
    [
        Completion("r", "stop", "text", math.nan),
        Completion("r", "stop", "a lone \ud800", 1.0),
        Chunk("r", (2**60,), None),
        Completion("r", "stop", "x" * MAX_LINE_BYTES, 1.0),
        {"kind": "closed"},
    ],
    ids=["nan", "surrogate", "integer", "length", "no_message"],
)
def test_what_could_not_be_read_is_not_sent(message: Any) -> None:
    with pytest.raises(DataError):
        encode(message)


def test_a_command_is_no_answer() -> None:
    with pytest.raises(DataError, match="kind 'generate'"):
        decode_answer(encode(wire.Generate()))
    with pytest.raises(DataError, match="kind 'closed'"):
        decode_command(encode(wire.Closed()))
