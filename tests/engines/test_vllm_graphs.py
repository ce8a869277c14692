"""Which widths have a full graph, and which graph each step took, as vLLM's own dispatchers tell."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.vllm_engines import build_model, needs_vllm

pytestmark = needs_vllm


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = build_model("dense", tmp_path_factory.mktemp("dense"))
    run = subprocess.run(
        [sys.executable, Path(__file__).with_name("vllm_dispatchers.py"), folder],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "VLLM_LOGGING_LEVEL": "ERROR"},
    )
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("runner", ["first", "second"])
def test_a_list_that_ends_early_leaves_the_widest_steps_uncovered(answers: dict[str, Any], runner: str) -> None:
    """Case a1, and what study A's predecessor ran on: asked for 19, resolved to 16."""
    assert answers[f"{runner} implicit"]["uncovered"] == [17, 18, 19]
    assert answers[f"{runner} exact"]["uncovered"] == []


@pytest.mark.parametrize("runner", ["first", "second"])
def test_every_step_is_counted_by_mode_and_width(answers: dict[str, Any], runner: str) -> None:
    decode = {"mode": "FULL", "tokens": 15, "padded_tokens": 16, "steps": 2}
    prefill = {"mode": "NONE", "tokens": 400, "padded_tokens": 400, "steps": 1}
    uncovered = {"mode": "NONE", "tokens": 17, "padded_tokens": 17, "steps": 1}
    covered = {"mode": "FULL", "tokens": 17, "padded_tokens": 19, "steps": 1}
    assert answers[f"{runner} implicit"]["histogram"] == [decode, uncovered, prefill]
    assert answers[f"{runner} exact"]["histogram"] == [decode, covered, prefill]


def test_adapters_multiply_the_graphs(answers: dict[str, Any]) -> None:
    """Case a5: the sizes alone do not tell the graphs."""
    assert answers["first exact"]["adapter_cases"] == [0]
    assert answers["first two cases"]["adapter_cases"] == [0, 6]
    assert answers["first five cases"]["adapter_cases"] == [0, 1, 2, 4, 6]
