"""Case f1: a cache left off re-reads the whole sequence at every step, and only the observed lengths show it."""

from collections.abc import Callable, Iterator

import pytest

from gatepost.engine import EngineSpec
from gatepost.engines.child import ChildSession
from gatepost.testing import build_request, build_sampling, collect


@pytest.fixture(scope="module")
def uncached(transformers_spec: Callable[..., EngineSpec]) -> Iterator[ChildSession]:
    with ChildSession(transformers_spec(use_cache=False)) as session:
        yield session


def _lengths(session: ChildSession) -> tuple[int, tuple[int, ...] | None, tuple[int, ...]]:
    """Prompt length, observed lengths and ids of a row of 20 greedy ids."""
    (prompt,) = session.render({"t": [{"role": "user", "content": "hi"}]})
    request = build_request(prompt, session.facts(), max_think_tokens=20, sampling=build_sampling(greedy=True))
    row = collect(session, [request])[request.request_id]
    return len(prompt.token_ids), row.forward_input_lengths, row.token_ids


def test_cached_decoding_feeds_one_id(transformers_session: ChildSession) -> None:
    prompt_tokens, lengths, token_ids = _lengths(transformers_session)
    assert len(token_ids) == 20
    assert lengths == (prompt_tokens, *[1] * 19)


def test_uncached_decoding_feeds_the_whole_sequence(uncached: ChildSession) -> None:
    prompt_tokens, lengths, _ = _lengths(uncached)
    assert lengths == tuple(range(prompt_tokens, prompt_tokens + 20))
    assert uncached.facts().use_cache is False


def test_both_sample_the_same(transformers_session: ChildSession, uncached: ChildSession) -> None:
    assert _lengths(transformers_session)[2] == _lengths(uncached)[2]
