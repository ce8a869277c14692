"""The shipped draft of study A can be frozen once its model is pinned, and registers what the study registered."""

import re
import shutil

import pytest

from gatepost.freeze import FrozenPlan, plan
from gatepost.gatefiles import Gates
from gatepost.ladder import steps_of
from tests.scoring.study import SHIPPED


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> FrozenPlan:
    """A plan from a copy of the study, its local model replaced by a repository: nothing is loaded here."""
    folder = tmp_path_factory.mktemp("studies") / "verified_macro"
    shutil.copytree(SHIPPED, folder)
    draft = folder / "protocol.toml"
    text = re.sub(r'"sha256:[0-9a-f]{64}"', f'"{"0" * 40}"', draft.read_text())
    draft.write_text(re.sub(r"^path = .*\n", "", text, flags=re.MULTILINE))
    return plan(draft, gates=Gates(), studies=[folder.parent])


def test_the_phases_of_the_study(frozen: FrozenPlan) -> None:
    assert [str(step) for step in steps_of(frozen.protocol)] == [
        "checks",
        *(f"{stage}@{rung}" for rung in (96, 192) for stage in ("probe", "base", "designed")),
        "scoring@96",
        "scoring@192",
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
