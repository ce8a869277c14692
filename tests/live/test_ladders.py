"""Whole ladders on a GPU: whatever they end in, it is one of the registered ends, and what they left replays."""

from collections.abc import Callable

import pytest

from gatepost.archive import Archive

pytestmark = pytest.mark.gpu


def test_native_thought(freeze: Callable[[str], Archive], climb: Callable[[Archive], str]) -> None:
    """Study B with Transformers: each sample's forward lengths are those of a working cache."""
    archive = freeze("native_seam/gpu.toml")
    decision = climb(archive).partition("decision: ")[2].split()
    assert decision
    assert decision[0] in {label.name for label in archive.protocol.labels.values()}  # not HALTED
    assert outcomes(archive, "cache_contract") == {"pass"}


def test_verified_macros(freeze: Callable[[str], Archive], climb: Callable[[Archive], str]) -> None:
    """Study A with vLLM on full CUDA graphs."""
    archive = freeze("verified_macro/gpu.toml")
    decision = climb(archive).partition("decision: ")[2].split()
    assert decision
    assert decision[0] in {label.name for label in archive.protocol.labels.values()}
    assert outcomes(archive, "capture_resolution") == outcomes(archive, "dispatch") == {"pass"}


def outcomes(archive: Archive, gate: str) -> set[str]:
    """What a gate said, wherever it judged."""
    judged = [judgement for step in archive.judgements().values() for judgement in step]
    return {str(verdict.outcome) for judgement in judged for verdict in judgement.verdicts if verdict.gate == gate}
