"""A stage that was sampled once is scored as a view at the selected cap: what was said after it was never said."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gatepost.audit import rows as tables
from gatepost.ladder import Step
from tests.scoring.study import create_study, macro


def slow(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """Right in all tasks, but in the last two only after more than 16 ids."""
    late = task["task_id"][-1] in "23"
    return {"think_tokens": [20, 24] if late else [4, 8], "answers": [macro(task)]}


def nested(text: str) -> str:
    """The same study with one sampling for both rungs, of which the lower is enough."""
    start, end = "\ngates.seed_binding", "max_loop_share = 0.5\n"
    while start in text:
        before, _, rest = text.partition(start)
        text = (
            f"{before}\ngates.natural_close = {{ version = 1, min_natural_close_rate = 0.4 }}{rest.partition(end)[2]}"
        )
    return text.replace('scope = "rung"', 'scope = "nested"').replace("reuse_tasks = 2 }", "reuse_tasks = 1 }")


def test_answers_after_the_selected_cap_do_not_count(tmp_path: Path) -> None:
    study = create_study(tmp_path)
    archive = study.freeze(nested)
    decision = study.run(archive, probe=slow, base=slow, designed=slow)
    assert str(decision).endswith("selected=16")
    scores = tables.read_scores(archive.step_folder(Step("scoring", "16")))
    assert {score.key.task_id[-1] for score in scores if score.parsed is not None} == {"0", "1"}
    assert [score.correct for score in scores] == [score.parsed is not None for score in scores]
    text = tables.read_text(archive.step_folder(Step("designed")) / "text.parquet")
    assert all("PROGRAM" in said for said in text.values()), "they were all sampled"
    assert study.replay(archive).faithful
