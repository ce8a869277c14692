"""The shipped drafts of study A freeze to the archives in the repository, and register what the study registered."""

from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.freeze import FrozenPlan, plan
from gatepost.gatefiles import Gates
from gatepost.ladder import steps_of
from gatepost.replay import replay
from tests.scoring.study import SHIPPED

RECEIPTS = Path(__file__).resolve().parents[2] / "receipts"


@pytest.fixture(scope="module")
def frozen() -> FrozenPlan:
    return plan(SHIPPED / "protocol.toml", gates=Gates(), studies=[])


@pytest.mark.parametrize(
    ("draft", "name", "decision"),
    [
        ("one_macro", "one-macro", "MACROS_VERIFIED selected=160"),
        ("protocol", "cpu", "MACROS_NOT_VERIFIED selected=160"),
        ("designed_rejected", "designed-rejected", "NO_ADEQUATE_RUNG selected=none"),
    ],
)
def test_the_archives_in_the_repository_are_faithful_and_of_today(draft: str, name: str, decision: str) -> None:
    root = RECEIPTS / f"verified-macro-{name}"
    found = replay(root, gates=Gates(), studies=[])
    assert found.faithful
    assert str(found.decision) == f"decision: {decision}"
    today = plan(SHIPPED / f"{draft}.toml", gates=Gates(), studies=[])
    assert today.protocol.digest == Archive(root).protocol.digest
    assert today.data == jsonfile.read_bytes(root / "protocol.json")


def test_the_phases_of_the_study(frozen: FrozenPlan) -> None:
    assert [str(step) for step in steps_of(frozen.protocol)] == [
        "checks",
        *(f"{stage}@{rung}" for rung in (56, 160) for stage in ("probe", "base", "designed")),
        "scoring@56",
        "scoring@160",
    ]
    stages = {stage.name: stage for stage in frozen.protocol.stages}
    found = {name: (stage.arm, stage.samples_per_task, stage.text) for name, stage in stages.items()}
    assert found == {
        "checks": (None, 0, "withheld"),
        "probe": ("base", 4, "withheld"),
        "base": ("base", 12, "sealed"),
        "designed": ("designed", 12, "sealed"),
        "scoring": (None, 0, "graded"),
    }
    assert stages["scoring"].scores == ("base", "designed")
    assert stages["probe"].gates == stages["base"].gates == stages["designed"].gates


def test_the_thresholds_of_the_study(frozen: FrozenPlan) -> None:
    thresholds = {gate.name: gate.thresholds for stage in frozen.protocol.stages for gate in stage.gates}
    termination = thresholds["termination"]
    assert {name: termination[name] for name in termination if name.startswith("max_") and name.endswith("_share")} == {
        "max_unresolved_share": 0.05,
        "max_answer_limit_share": 0.05,
        "max_loop_share": 0.25,
    }
    assert (termination["contact_margin_tokens"], termination["min_match_rate"]) == (1, 0.99)
    assert termination["answer_limit_tokens"] == frozen.protocol.max_answer_tokens
    assert termination["tail_tokens"] < frozen.protocol.rungs[0].max_think_tokens
    assert thresholds["parse_rate"] == {"min_parse_rate": 0.5}
    assert thresholds["macro_use"] == {"arm": "designed", "reuse_tasks": 6, "min_reuse_tasks": 2}
    assert thresholds["oracle_not_below"] == {"arm": "designed", "baseline_arm": "base"}


def test_fewer_sequences_at_a_time_the_longer_they_may_think(frozen: FrozenPlan) -> None:
    assert [rung.engine for rung in frozen.protocol.rungs] == [{"max_num_seqs": 16}, {"max_num_seqs": 12}]
    assert (frozen.protocol.thinking, frozen.protocol.seed_rule) == ("force_close", "blake2b64_two_stage")
