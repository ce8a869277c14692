"""What people are told: the next step with its command, what the last try came to, and what a plan would take."""

from pathlib import Path

import pytest

from gatepost.freeze import plan
from gatepost.ladder import Step
from gatepost.preflight import PreflightRefusedError
from gatepost.status import live_command, plan_text, status_text
from tests.archives import create_project


@pytest.mark.parametrize(
    ("device", "step", "command"),
    [
        (None, "selection", "pytest -m cpu {root} --gatepost-live"),
        ("cpu", "selection", "pytest -m cpu {root} --gatepost-live"),
        ("cuda:0", "selection", "pytest -m gpu {root}"),
        ("cuda:0", "design", "pytest -m cpu {root} --gatepost-live"),
    ],
)
def test_the_command_of_a_step(tmp_path: Path, device: str | None, step: str, command: str) -> None:
    archive = create_project(tmp_path).freeze(device=device)
    assert live_command(archive, Step(step)) == command.format(root=archive.root)


@pytest.mark.parametrize(
    ("step", "command"),
    [
        (Step("selection"), "pytest -m gpu {root}"),  # sampled once, by the engine of the top rung
        (Step("confirmation", "8"), "pytest -m cpu {root} --gatepost-live"),
        (Step("confirmation", "64"), "pytest -m gpu {root}"),
    ],
)
def test_a_rung_may_move_its_engine_to_an_accelerator(tmp_path: Path, step: Step, command: str) -> None:
    top = "[[rungs]]\nmax_think_tokens = 64\n"
    archive = create_project(tmp_path).freeze(
        kind="vllm_like:Engine",
        device="cpu",
        edit=lambda text: text.replace(top, f'{top}engine = {{ device = "cuda" }}\n'),
    )
    assert live_command(archive, step) == command.format(root=archive.root)


def test_the_status_of_an_open_ladder_says_how_to_go_on(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze(engine_model_len=8192)
    project.step(archive)
    with pytest.raises(PreflightRefusedError):
        project.step(archive)
    said = status_text(archive)
    assert "next step: selection" in said
    assert f"run it: pytest -m cpu {archive.root} --gatepost-live" in said
    assert "last try: " in said
    assert "toy_engine: max_model_len_tokens 4096 == 8192" in said
    assert "design: pass" in said


def test_the_status_of_a_closed_ladder_says_what_it_licenses(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    archive = project.freeze()
    project.run(archive)
    said = status_text(archive, log=True)
    assert "decision: REPLICATED selected=32" in said
    assert "licenses: saying so" in said
    assert "run it" not in said
    assert [line.split()[1] for line in said.splitlines() if line.startswith("20")] == [
        "frozen", "started", "finished", "started", "finished", "selected", "started", "finished",
    ]  # fmt: skip


def test_a_plan_counts_every_split_and_a_last_line_without_an_end(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    project.freeze("template")
    study = project.root / "studies" / "toy"
    (study / "first.jsonl").write_text((study / "first.jsonl").read_text().rstrip("\n"))
    frozen = plan(study / "template.toml", gates=project.gates, studies=project.studies)
    lines = {line.split()[0]: line.split() for line in plan_text(frozen, project.gates).splitlines() if line.strip()}
    assert lines["design"][2:4] == ["8", "0"]
    assert lines["selection"][2:5] == ["4", "12", str(12 * (64 + 16))]
    assert "toy_closes.min_close_share: 9 of 12" in plan_text(frozen, project.gates)
