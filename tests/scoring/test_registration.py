"""Plans that score and must not be frozen are refused, in one sentence that names the stage and what was expected."""

import sys
from pathlib import Path

import pytest

from gatepost.errors import GatepostError
from gatepost.studyfiles import load_domain
from tests.scoring.study import create_study

SCORES = 'scores = ["base", "designed"]'
SCORING = 'scope = "selected"\nscores = ["base", "designed"]'
DESIGNED = 'arm = "designed"\nsplits = ["probe"]\nsamples_per_task = 3\nbase_seed = 3\ntext = "sealed"'
UNTIL_SAMPLED = 'splits = ["probe"]\nsamples_per_task = 0\ntext = "graded"'
REFUSALS = {
    "a stage that is not there": (SCORES, 'scores = ["best"]', r"no stage 'best', registered: checks, probe, base"),
    "no stage": (SCORES, "scores = []", r"scores"),
    "one stage twice": (SCORES, 'scores = ["base", "base"]', r"scores"),
    "a probe, whose text is withheld": (
        SCORES,
        'scores = ["probe", "designed"]',
        r"stage scoring: scores probe with scope rung and text withheld; expected .* sealed or graded text",
    ),
    "a stage outside the ladder": (
        SCORES,
        'scores = ["checks"]',
        r"stage scoring: scores checks with scope once and text withheld",
    ),
    "itself": (SCORES, 'scores = ["scoring"]', r"stage scoring: scores scoring with scope selected"),
    "before a selection": (
        SCORING,
        SCORING.replace("selected", "rung"),
        r"stage scoring: scores base, designed with scope rung, .* expected selected, graded and 0",
    ),
    "and samples": (
        UNTIL_SAMPLED,
        UNTIL_SAMPLED.replace("0", "2") + "\nbase_seed = 4",
        r"stage scoring: scores base, designed .* samples_per_task 2; expected selected, graded and 0",
    ),
    "and is blind": (
        UNTIL_SAMPLED,
        UNTIL_SAMPLED.replace("graded", "sealed"),
        r"stage scoring: scores base, designed with scope selected, text sealed",
    ),
    "nothing, and samples nothing": (SCORES, "", r"stage scoring: scope selected needs samples_per_task of at least 1"),
    "arms with other numbers of samples": (
        DESIGNED,
        DESIGNED.replace("= 3\nbase", "= 4\nbase"),
        r"stage scoring: scores designed with splits, max_tasks and samples_per_task \(\('probe',\), None, 4\)",
    ),
    "arms with other tasks": (
        DESIGNED,
        DESIGNED + "\nmax_tasks = 2",
        r"scores designed with splits, max_tasks .* \(\('probe',\), 2, 3\); expected \(\('probe',\), None, 3\)",
    ),
    "two stages of one arm": (
        DESIGNED,
        DESIGNED.replace("designed", "base"),
        r"scores stages of the arms \['base', 'base'\]",
    ),
    "an arm that nobody sampled": (
        'baseline_arm = "base"',
        'baseline_arm = "bace"',
        r"gate oracle_not_below: baseline_arm is 'bace', expected one of \['base', 'designed'\]",
    ),
    "by ids": (
        "gates.parse_rate",
        "gates.seed_binding = { version = 1 }\ngates.parse_rate",
        r"stage scoring: gate seed_binding: reads token_ids, but the stage samples nothing",
    ),
    "in a stage that scores nothing": (
        'base_seed = 3\ntext = "sealed"',
        'base_seed = 3\ntext = "graded"\ngates.parse_rate = { version = 1, min_parse_rate = 0.5 }',
        r"stage designed: gate parse_rate: reads scores, but the stage scores nothing",
    ),
    "in a blind stage": (
        'base_seed = 3\ntext = "sealed"',
        'base_seed = 3\ntext = "sealed"\ngates.parse_rate = { version = 1, min_parse_rate = 0.5 }',
        r"stage designed: gate parse_rate: reads scores, but the stage is blind",
    ),
    "by a share that cannot be met": (
        "min_parse_rate = 0.5",
        "min_parse_rate = 1.5",
        r"stage scoring: gate parse_rate: min_parse_rate: no sample could meet it with 12 samples of 4 tasks",
    ),
    "by a count that cannot be met": ("min_reuse_tasks = 2", "min_reuse_tasks = 3", r"macro_use.*no sample could meet"),
    "by an arm that is its own baseline": (
        'baseline_arm = "base"',
        'baseline_arm = "designed"',
        r"gate oracle_not_below: baseline_arm: no sample could miss it",
    ),
    "without a label for its failure": (
        "[labels]",
        '[labels]\nselected = { name = "S", licenses = "s", does_not_license = "s" }',
        r"labels: found exhausted, not_replicated, replicated, selected, expected exactly",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refuses_to_score(tmp_path: Path, name: str) -> None:
    old, new, message = REFUSALS[name]
    study = create_study(tmp_path)

    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    with pytest.raises(GatepostError, match=message):
        study.freeze(edit)
    assert list((tmp_path / "receipts").iterdir()) == []


@pytest.mark.parametrize("name", ["VISIBLE_FIELDS", "visible_score", "is_valid", "traits"])
def test_refuses_a_domain_that_cannot_score(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = create_study(tmp_path)
    domain = load_domain("verified_macro", 1, study.studies, where="test")
    monkeypatch.delattr(sys.modules[domain.messages.__module__], name)
    with pytest.raises(GatepostError, match=rf"study verified_macro scores: task domain lacks {name}"):
        study.freeze()
    # A study that scores nothing needs none of it.
    start, end = '[[stages]]\nname = "scoring"', "[labels]"
    labels = 'selected = { name = "S", licenses = "s", does_not_license = "s" }\n'

    def edit(text: str) -> str:
        text = text[: text.index(start)] + text[text.index(end) :]
        kept = [line for line in text.splitlines(keepends=True) if "replicated = {" not in line]
        return "".join([*kept, labels])

    study.freeze(edit)


def test_absent_means_none(tmp_path: Path) -> None:
    protocol = create_study(tmp_path).freeze().protocol
    assert [stage.scores for stage in protocol.stages] == [(), (), (), (), ("base", "designed")]
    assert [stage["scores"] for stage in protocol.document["stages"]] == [None] * 4 + [["base", "designed"]]
