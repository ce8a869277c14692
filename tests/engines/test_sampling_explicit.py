"""Case f4: nothing of a model folder's generation config reaches the sampling."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatepost.engine import EngineSpec, SamplingParams
from gatepost.engines.child import ChildSession
from gatepost.engines.plain import to_plain
from gatepost.testing import Sampled, build_request, build_sampling, collect

LEAKY = {"do_sample": True, "temperature": 0.01, "top_k": 1, "repetition_penalty": 1.9, "eos_token_id": [256, 10, 20]}
PLAIN = build_sampling(temperature=0.7, top_p=0.9, top_k=0)


@pytest.fixture(scope="module")
def leaky(
    transformers_spec: Callable[..., EngineSpec], model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ChildSession]:
    folder = tmp_path_factory.mktemp("leaky") / "model"
    shutil.copytree(model_folder, folder)
    (folder / "generation_config.json").write_text(json.dumps(LEAKY))
    with ChildSession(replace(transformers_spec(folder=folder), sampling=PLAIN)) as session:
        yield session


def _sample(session: ChildSession, sampling: SamplingParams, *, seeds: int = 4) -> list[Sampled]:
    (prompt,) = session.render({"t": [{"role": "user", "content": "hi"}]})
    requests = [
        build_request(prompt, session.facts(), seed=seed, sampling=sampling, max_think_tokens=60)
        for seed in range(seeds)
    ]
    return list(collect(session, requests).values())


def test_a_generation_config_leaves_no_trace(leaky: ChildSession, transformers_session: ChildSession) -> None:
    with_config, without = _sample(leaky, PLAIN), _sample(transformers_session, PLAIN)
    assert [row.token_ids for row in with_config] == [row.token_ids for row in without]
    assert leaky.facts().sampling == to_plain(PLAIN)
    assert leaky.facts().model_eos_ids == [256]
    assert (
        "generation_config.json" in leaky.facts().model_files.keys() - transformers_session.facts().model_files.keys()
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 0.1},
        {"top_k": 1},
        {"top_p": 0.1},
        {"min_p": 0.5},
        {"repetition_penalty": 1.9},
        {"greedy": True, "temperature": 0.0},
        {"stop_ids": tuple(range(0, 256, 8))},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_every_registered_value_has_an_effect(transformers_session: ChildSession, changes: dict[str, object]) -> None:
    plain = build_sampling(temperature=1.0, top_p=1.0, top_k=0)
    changed = _sample(transformers_session, build_sampling(**{"temperature": 1.0, "top_p": 1.0, "top_k": 0, **changes}))
    assert [row.token_ids for row in changed] != [row.token_ids for row in _sample(transformers_session, plain)]
