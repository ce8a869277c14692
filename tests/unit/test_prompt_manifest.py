"""A manifest of prompts: how it is made, bound and compared, on real archives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.__main__ import main
from gatepost.archive import Archive
from gatepost.engine import Engine, EngineSpec, Prompt
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import DataError, GatepostError, IntegrityError, RegistrationError
from gatepost.freeze import FrozenPlan, plan
from gatepost.preflight import PreflightRefusedError
from gatepost.probe import Probe
from gatepost.promptfile import manifest_line, read_manifest
from gatepost.prompts import PromptIdentity
from gatepost.protocol import Protocol
from gatepost.rendered import rendered_prompts
from gatepost.replay import replay
from tests.archives import Project, create_project, rewrite
from tests.scoring.study import create_study

GATE = "gates.prompt_identity = { version = 1 }\n"
SHA = "0a" * 32


# From a preflight to a bound manifest


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path)


def preflight(project: Project, archive: Archive) -> None:
    Probe(archive, project.gates, project.studies, ScriptedEngine, preflight_only=True).run()


@pytest.fixture
def seen(project: Project) -> list[PromptIdentity]:
    """What a preflight of the selection rendered, under a plan of its own."""
    archive = project.freeze("pilot")
    project.step(archive)
    preflight(project, archive)
    return rendered_prompts([archive.root])


def binding(
    project: Project, prompts: Sequence[PromptIdentity], *, stages: Sequence[str] = ("selection",)
) -> Callable[[str], str]:
    """Write a manifest; returns the change to a draft that binds it and has stages compare it."""
    manifest = "".join(f"{manifest_line(line)}\n" for line in prompts)
    (project.root / "studies" / "toy" / "prompts.jsonl").write_text(manifest)

    def edit(text: str) -> str:
        text = text.replace("\n[study]", '\n[prompts]\nmanifest = "prompts.jsonl"\n\n[study]')
        for stage in stages:
            head, found, rest = text.partition(f'name = "{stage}"\n')
            assert found, stage
            text = head + found + rest.replace("gates.", f"{GATE}gates.", 1)
        return text

    return edit


def test_a_manifest_is_bound_and_met(project: Project, seen: list[PromptIdentity]) -> None:
    assert [line.posed for line in seen] == [(f"first-{index}", None) for index in range(4)]
    archive = project.freeze(edit=binding(project, seen))
    assert archive.protocol.prompt_manifest == "prompts.jsonl"
    (entry,) = (entry for entry in archive.protocol.bound if entry.path == "prompts.jsonl")
    assert entry.role == "prompts"
    assert str(project.run(archive)) == "decision: REPLICATED selected=32"
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful
    verdicts = [v for v in archive.judgements()[archive.finished_steps()[1]][0].verdicts if v.gate == "prompt_identity"]
    assert {(check.name, check.k, check.n) for check in verdicts[0].checks if check.k is not None} == {
        (name, 4, 4)
        for name in (
            "prompts_in_manifest", "prompts_rendered_once", "input_records", "rendered_texts", "prompt_token_ids",
            "prompt_tokens",
        )
    }  # fmt: skip


def test_a_finished_archive_gives_the_prompts_of_all_its_stages(project: Project, seen: list[PromptIdentity]) -> None:
    archive = project.freeze()
    project.run(archive)
    whole = rendered_prompts([archive.root])
    assert whole[:4] == seen
    assert [line.task_id for line in whole[4:]] == [f"second-{index}" for index in range(4)]
    assert rendered_prompts([project.root / "receipts" / "pilot", archive.root]) == whole
    assert rendered_prompts([project.root / "receipts"]) == whole
    again = project.freeze("again", edit=binding(project, whole, stages=("selection", "confirmation")))
    assert str(project.run(again)) == "decision: REPLICATED selected=32"


class Moved(ScriptedEngine):
    """A chat template, or a tokenizer, that has changed since the manifest was made."""

    change: Callable[[Prompt], Prompt]

    def render(self, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Prompt]:
        return [type(self).change(prompt) for prompt in super().render(conversations)]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda prompt: replace(prompt, text=prompt.text + " "), ["rendered_texts"]),
        (lambda prompt: replace(prompt, token_ids=prompt.token_ids[::-1]), ["prompt_token_ids"]),
        (
            lambda prompt: replace(prompt, token_ids=(*prompt.token_ids, prompt.token_ids[0])),
            ["prompt_token_ids", "prompt_tokens"],
        ),
    ],
    ids=["text", "ids", "count"],
)
def test_an_engine_that_renders_otherwise_is_refused_before_it_samples(
    project: Project, seen: list[PromptIdentity], change: Callable[[Prompt], Prompt], names: list[str]
) -> None:
    archive = project.freeze(edit=binding(project, seen))
    project.step(archive)

    def open_engine(spec: EngineSpec) -> Engine:
        return type("Changed", (Moved,), {"change": staticmethod(change)})(spec)

    with pytest.raises(PreflightRefusedError) as refused:
        project.step(archive, open_engine)
    said = [line for line in str(refused.value).splitlines() if "prompt_identity: " in line]
    assert [line.split()[1] for line in said] == names
    assert all("0 == 1 (0/4): first: first-0: rendered " in line and ", registered " in line for line in said)
    (attempt,) = archive.attempt_folders()
    assert not (attempt / "rows.parquet").exists()
    assert replay(archive.root, gates=project.gates, studies=project.studies).faithful
    with pytest.raises(DataError, match="toy: holds no rendered prompts, expected a finished step that sampled or a"):
        rendered_prompts([archive.root])


# What freezing refuses


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda seen: seen[:-1], "stage selection: .* has no line for task 'first-3' without an arm"),
        (lambda seen: seen[1:], "stage selection: .* has no line for task 'first-0' without an arm"),
        (lambda seen: [replace(line, arm="base") for line in seen], "has no line for task 'first-0' without an arm"),
        (
            lambda seen: [replace(seen[0], input_record_sha256=SHA), *seen[1:]],
            f"task 'first-0' without an arm: input_record_sha256 is {SHA}, the record in split 'first' has [0-9a-f]+",
        ),
        (lambda seen: [*seen, seen[0]], r"prompts\.jsonl:5: task_id 'first-0' without an arm is that of line 1"),
    ],
)
def test_freezing_refuses_a_manifest(
    project: Project, seen: list[PromptIdentity], change: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(GatepostError, match=message):
        project.freeze(edit=binding(project, change(seen)))
    assert not (project.root / "receipts" / "toy").exists()


def test_lines_of_other_tasks_and_arms_are_no_fault(project: Project, seen: list[PromptIdentity]) -> None:
    others = [replace(seen[0], arm="base"), replace(seen[0], task_id="elsewhere")]
    project.freeze(edit=binding(project, [*others, *seen]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '[prompts]\nmanifest = "prompts.jsonl"\n',
            "",
            "stage selection: lists the gate prompt_identity, but there is no",
        ),
        (GATE, "", "prompts.manifest: no stage lists the gate prompt_identity, so nothing compares it"),
        ('manifest = "prompts.jsonl"', "", "prompts.manifest is missing, expected a string"),
        ('manifest = "prompts.jsonl"', "manifest = 1", "prompts.manifest is 1, expected a string"),
        ('manifest = "prompts.jsonl"', 'manifest = "absent.jsonl"', "absent.jsonl: does not exist"),
        ('manifest = "prompts.jsonl"', 'manifest = "first.jsonl"', r"first.jsonl:1: unknown animal, place"),
        ('manifest = "prompts.jsonl"', 'manifest = "prompts.jsonl"\nhash = 1', "'hash' was unexpected"),
        ("gates.toy_sizes", f"{GATE}gates.toy_sizes", "stage design: .* prompt_identity, but samples nothing"),
    ],
)
def test_freezing_refuses_a_draft(
    project: Project, seen: list[PromptIdentity], old: str, new: str, message: str
) -> None:
    edit = binding(project, seen)

    def change(text: str) -> str:
        edited = edit(text)
        assert old in edited
        return edited.replace(old, new)

    with pytest.raises(GatepostError, match=message):
        project.freeze(edit=change)
    assert not (project.root / "receipts" / "toy").exists()


def test_a_plan_without_a_manifest_says_nothing_of_it(project: Project) -> None:
    archive = project.freeze()
    assert archive.protocol.prompt_manifest is None
    assert "prompts" not in jsonfile.read(archive.root / "protocol.json")


def test_a_file_of_that_role_alone_is_no_manifest(project: Project) -> None:
    (project.root / "prompt.txt").write_text("Say it.")
    entry = '\nbound = [{ path = "../../prompt.txt", role = "prompts" }]\n'
    archive = project.freeze(edit=lambda text: text.replace("\n[study]", f"{entry}[study]"))
    assert archive.protocol.prompt_manifest is None


def test_replay_compares_manifest_and_records(project: Project, seen: list[PromptIdentity]) -> None:
    """Who writes a protocol by hand may bind a manifest of other records; the gate and the replay say so."""
    project.freeze("template", edit=binding(project, seen))
    draft = project.root / "studies" / "toy" / "template.toml"
    frozen = plan(draft, gates=project.gates, studies=project.studies)
    stale = "".join(f"{manifest_line(replace(line, input_record_sha256=SHA))}\n" for line in seen).encode()
    document = jsonfile.loads(frozen.data, source="test")
    document["id"] = "forged"
    (entry,) = (entry for entry in document["bound"] if entry["role"] == "prompts")
    entry |= {"sha256": jsonfile.digest(stale).removeprefix("sha256:"), "size_bytes": len(stale)}
    data = jsonfile.canonical(document)
    protocol = Protocol.from_json(document, digest=jsonfile.digest(data))
    archive = Archive.create(
        project.root / "receipts", FrozenPlan(protocol, data, {**frozen.bound, "prompts.jsonl": stale})
    )
    project.step(archive)
    differences = replay(archive.root, gates=project.gates, studies=project.studies).differences
    assert any("could not be frozen: prompts.manifest: task 'first-0'" in line for line in differences)
    with pytest.raises(PreflightRefusedError, match=r"prompt_identity: input_records 0 == 1 \(0/4\)"):
        project.step(archive)


# The command


def test_the_command_prints_what_can_be_bound(
    project: Project, seen: list[PromptIdentity], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prompts", str(project.root / "receipts" / "pilot")]) == 0
    path = project.root / "studies" / "toy" / "prompts.jsonl"
    path.write_text(capsys.readouterr().out)
    assert list(read_manifest(path)) == seen


def refused_by_command(*roots: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["prompts", *map(str, roots)]) == 1
    said = capsys.readouterr()
    assert said.out == "", "nothing half-written"
    return said.err


def test_the_command_refuses_what_it_cannot_tell(
    project: Project, seen: list[PromptIdentity], capsys: pytest.CaptureFixture[str]
) -> None:
    assert seen
    pilot, bare = project.root / "receipts" / "pilot", project.freeze("bare")
    assert "bare: holds no rendered prompts" in refused_by_command(pilot, bare.root, capsys=capsys)
    assert "holds no archive" in refused_by_command(project.root / "studies", capsys=capsys)
    moved = project.freeze("moved")
    project.step(moved)
    project.step(moved, type("Longer", (Moved,), {"change": staticmethod(lambda p: replace(p, text=p.text + "!"))}))
    said = refused_by_command(pilot, moved.root, capsys=capsys)
    assert "moved/steps/selection/prompts.parquet: task first-0 has another prompt than in " in said
    assert f"{pilot}/attempts/0002-selection/prompts.parquet" in said
    rewrite(pilot / "attempts" / "0002-selection" / "preflight.json", lambda document: document.update(attempt=3))
    assert "preflight.json: SHA-256 is" in refused_by_command(pilot, capsys=capsys)


def test_each_arm_has_its_prompts(tmp_path: Path) -> None:
    study = create_study(tmp_path)
    pilot = study.freeze()
    study.run(pilot)
    seen = rendered_prompts([pilot.root])
    assert [line.posed for line in seen] == [
        (task["task_id"], arm) for arm in ("base", "designed") for task in study.tasks
    ]
    assert len({line.rendered_prompt_sha256 for line in seen}) == 8
    records = {line.task_id: line.input_record_sha256 for line in seen}
    assert all(line.input_record_sha256 == records[line.task_id] for line in seen)
    path = tmp_path / "prompts.jsonl"

    def edit(text: str) -> str:
        text = text.replace("\n[study]", '\n[prompts]\nmanifest = "prompts.jsonl"\n\n[study]')
        return text.replace('id = "small"', 'id = "bound"').replace("gates.seed_binding", f"{GATE}gates.seed_binding")

    path.write_text("".join(f"{manifest_line(line)}\n" for line in seen[:-1]))
    with pytest.raises(RegistrationError, match=r"stage designed: .* has no line for task '.*' in arm designed"):
        study.freeze(edit)
    path.write_text("".join(f"{manifest_line(line)}\n" for line in reversed(seen)))
    archive = study.freeze(edit)
    assert str(study.run(archive)) == str(study.run(pilot))
    assert study.replay(archive).faithful
    (archive.root / "bound" / "prompts.jsonl").write_text("".join(f"{manifest_line(line)}\n" for line in seen))
    with pytest.raises(IntegrityError, match=r"bound/prompts.jsonl: SHA-256 is"):
        study.replay(archive)
