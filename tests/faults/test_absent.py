"""Only an import has a record that stands for evidence: a live step cannot do without its rows or prompts."""

from pathlib import Path

import pytest

from gatepost.absence import AbsentRows, PromptDigest
from gatepost.archive import Archive
from gatepost.audit.absent import write_absent_rows, write_prompt_digests
from gatepost.errors import DataError
from gatepost.ladder import Step
from tests.archives import Project
from tests.faults.conftest import problem, rebind

STEP = Step("selection")


def test_a_live_step_cannot_lose_its_rows(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    folder = archive.step_folder(STEP)
    for name in ("rows.parquet", "text.parquet", "grades.parquet"):
        (folder / name).unlink(missing_ok=True)
    write_absent_rows(folder / "absent_rows.json", AbsentRows("rows.jsonl", 1, "0" * 64, 8, {}))
    rebind(archive, STEP)
    assert "absent_rows.json: is not part of an archive" in problem(project, archive.root)


def test_a_live_step_cannot_lose_its_prompts(copied: tuple[Project, Archive]) -> None:
    project, archive = copied
    folder = archive.step_folder(STEP)
    (folder / "prompts.parquet").unlink()
    write_prompt_digests(folder / "prompt_digests.json", [PromptDigest("t0", 1, "0" * 64)])
    rebind(archive, STEP)
    assert "prompt_digests.json: is not part of an archive" in problem(project, archive.root)


@pytest.mark.parametrize("sha256", ["", "0" * 63, "g" * 64, "0" * 64 + "\n"])
def test_a_digest_of_another_shape_is_not_written(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(DataError, match=r"sha256"):
        write_absent_rows(tmp_path / "absent_rows.json", AbsentRows("rows.jsonl", 1, sha256, 8, {}))
    assert not list(tmp_path.iterdir())
