"""Engines on record: what an H200 resolved of each draft, and how fast it sampled, judged again without it."""

from pathlib import Path

import pytest

from bench.speed import rates
from gatepost.freeze import plan
from gatepost.gatefiles import Gates
from gatepost.replay import replay
from gatepost.report import replay_text
from gatepost.stepfiles import facts_of
from tests.live.test_geometry import EXACT, REFUSED

ROOT = Path(__file__).resolve().parents[2]
GATES = Gates([])
RATES = {
    "exact": [2618, 2758, 2628, 2706],
    "implicit": [923, 807, 811, 1000],
    "eager": [942, 887, 784, 947],
}
"""Sampled tokens per second, as docs/performance.md has them."""


def archive_of(draft: str) -> Path:
    return ROOT / "receipts" / f"engine-geometry-{draft.replace('_', '-')}"


@pytest.mark.parametrize("draft", [draft for draft, _ in (*EXACT, *REFUSED)])
def test_the_draft_is_the_one_on_record(draft: str) -> None:
    frozen = plan(ROOT / "studies" / "engine_geometry" / f"{draft}.toml", gates=GATES, studies=())
    assert frozen.data == (archive_of(draft) / "protocol.json").read_bytes()


@pytest.mark.parametrize(("draft", "sizes"), EXACT)
def test_an_exact_list_was_resolved(draft: str, sizes: list[int]) -> None:
    replayed = replay(archive_of(draft), gates=GATES, studies=())
    assert replayed.faithful
    (attempt,) = replayed.to_json()["attempts"]
    assert attempt["preflight"]["outcome"] == "pass"
    checks = {check["name"]: check for verdict in attempt["preflight"]["verdicts"] for check in verdict["checks"]}
    assert checks["capture_sizes"]["observed"] == sizes
    assert checks["decode_mode"]["observed"] == "FULL"
    assert "blocks of 528" in checks["required_tokens"]["note"]


def test_the_cache_is_as_tight_as_the_published_one() -> None:
    """Study A: 963072 of 996864 tokens at the lower rung, 950400 of 997888 at the upper, which is no whole block."""
    for draft, observed, limit, plain in (
        ("exact_49152", 963072, 996864, 33792),
        ("exact_61440", 950400, 997392, 47488),
    ):
        (attempt,) = replay(archive_of(draft), gates=GATES, studies=()).to_json()["attempts"]
        (kv_fit,) = [verdict for verdict in attempt["preflight"]["verdicts"] if verdict["gate"] == "kv_fit"]
        tokens = kv_fit["checks"][0]
        assert (tokens["observed"], tokens["limit"]) == (observed, limit)
        assert f"{plain} by plain subtraction" in tokens["note"]


@pytest.mark.parametrize(("draft", "message"), REFUSED)
def test_anything_else_was_refused(draft: str, message: list[str]) -> None:
    replayed = replay(archive_of(draft), gates=GATES, studies=())
    assert replayed.faithful
    text = replay_text(replayed)
    for part in message:
        assert part in text
    assert replayed.archive.journal.read()[-1].event == "refused"


@pytest.mark.parametrize(("graphs", "mode"), [("exact", "FULL"), ("implicit", "NONE"), ("eager", "NONE")])
def test_the_graphs_that_the_rates_come_from(graphs: str, mode: str) -> None:
    """Each of the 511 steps after the prompts ran on a full graph, or all of them on none."""
    root = ROOT / "receipts" / f"engine-speed-{graphs}"
    frozen = plan(ROOT / "studies" / "engine_geometry" / f"speed_{graphs}.toml", gates=GATES, studies=())
    assert frozen.data == (root / "protocol.json").read_bytes()
    replayed = replay(root, gates=GATES, studies=())
    assert replayed.faithful
    assert str(replayed.decision) == "decision: MEASURED selected=512"
    for run in replayed.steps:
        facts = facts_of(replayed.archive.step_folder(run.step))
        assert facts is not None
        assert facts.scheduler is not None
        decoding = [entry for entry in facts.scheduler["dispatch"] if entry["tokens"] <= 19]
        assert {entry["mode"] for entry in decoding} == {mode}
        assert sum(entry["steps"] for entry in decoding) == 511
    assert rates(replayed.archive) == pytest.approx(RATES[graphs], abs=0.6)


def test_the_macro_ladder_ran_on_full_graphs() -> None:
    """A rejected probe, then the next budget to its end: 2 163 decode steps, none without a graph."""
    replayed = replay(ROOT / "receipts" / "verified-macro-gpu", gates=GATES, studies=())
    assert replayed.faithful
    assert str(replayed.decision) == "decision: MACROS_NOT_VERIFIED selected=160"
    dispatched = [
        check
        for step in replayed.steps
        for judgement in step.judgements
        for verdict in judgement.verdicts
        if verdict.gate == "dispatch"
        for check in verdict.checks
    ]
    assert [(check.k, check.n) for check in dispatched] == [(0, 123), (0, 328), (0, 731), (0, 981)]


def test_the_native_ladder_ran_with_its_cache_on() -> None:
    replayed = replay(ROOT / "receipts" / "native-seam-gpu", gates=GATES, studies=())
    assert replayed.faithful
    assert str(replayed.decision) == "decision: NATURAL_SEAM_REPLICATED selected=160"
    (session,) = [facts_of(replayed.archive.step_folder(step.step)) for step in replayed.steps if step.step.rung]
    assert session is not None
    assert (session.device, session.device_name, session.dtype) == ("cuda:0", "NVIDIA H200", "bfloat16")
