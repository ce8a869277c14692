"""Study A in its public form: facts are judged, what needs the missing rows stays open, and the ladder stops there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatepost.__main__ import main
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.audit.absent import read_absent_rows, read_prompt_digests
from gatepost.audit.verified_macro import import_run, read_run
from gatepost.errors import DataError, GatepostError
from gatepost.gatefiles import Gates
from gatepost.ladder import Step
from gatepost.replay import Replay, replay
from gatepost.report import replay_text
from tests.archives import rewrite
from tests.faults.conftest import rebind
from tests.published_macro import Document, documents, write

STEP = Step("probe", "49152")


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("published")
    return import_run(write(folder / "source", documents()), folder / "receipts")


def replayed(archive: Archive) -> Replay:
    return replay(archive.root, gates=Gates(), studies=[])


def test_what_was_published_is_judged_as_far_as_it_goes(imported: Archive) -> None:
    result = replayed(imported)
    assert result.faithful
    assert (result.decision.label, result.decision.step) == ("HALTED", STEP)
    assert [step.step for step in result.steps] == [STEP], "the ladder does not open the second rung"
    (judgement,) = result.steps[0].judgements
    assert {verdict.gate: str(verdict.outcome) for verdict in judgement.verdicts} == {
        "protocol_binding": "pass",
        "seeds": "pass",
        "kv_fit": "pass",
        "capture_resolution": "inconclusive",  # neither the mode nor the maximum was published
        "prompt_envelope": "inconclusive",  # nor was the live context
        "token_accounting": "inconclusive",
        "forced_close": "inconclusive",
        "termination": "inconclusive",
    }
    assert not (imported.root / "selection.json").exists()


def test_an_open_check_names_the_rows_that_would_decide_it(imported: Archive) -> None:
    (judgement,) = replayed(imported).steps[0].judgements
    absent = read_absent_rows(imported.step_folder(STEP) / "absent_rows.json")
    assert str(absent) == (
        f"48 rows not published: smoke_budget_probes/think_49152/base.jsonl, 30617193 bytes, SHA-256 {absent.sha256}"
    )
    for verdict in judgement.verdicts:
        for check in verdict.checks:
            of_rows = verdict.gate in ("termination", "token_accounting", "forced_close")
            assert (str(absent) in (check.note or "")) is of_rows, f"{verdict.gate}: {check}"


def test_counts_are_shown_as_claims(imported: Archive) -> None:
    text = replay_text(replayed(imported))
    assert "claimed by the authors and not recomputed: samples 48, forced_interventions 48" in text


def test_both_layouts_give_the_same_archive(imported: Archive, tmp_path: Path) -> None:
    source = write(tmp_path / "source", documents(), layout="public")
    archive = import_run(source, tmp_path / "receipts")
    for name in ("absent_rows.json", "prompt_digests.json", "session.json"):
        step = archive.step_folder(STEP)
        assert (step / name).read_bytes() == (imported.step_folder(STEP) / name).read_bytes()
    assert archive.protocol.digest == imported.protocol.digest


def test_the_command_reads_both_studies_and_says_what_it_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "source", documents())
    assert main(["import", str(source), "--into", str(tmp_path / "receipts")]) == 0
    assert "imported: " in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "receipts")]) == 0
    assert main(["import", str(source), "--into", str(tmp_path / "receipts")]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["import", str(tmp_path), "--into", str(tmp_path / "r")]) == 1
    assert "native_thought_seam" in capsys.readouterr().err
    assert main(["import", str(tmp_path), "--into", str(tmp_path / "r"), "--rows", str(tmp_path)]) == 1
    assert "--rows" in capsys.readouterr().err


# What does not fit, or is not of its kind, is one sentence, and leaves nothing behind.

Change = Callable[[Document], Any]


def at(*names: Any) -> Callable[[Document], Any]:
    def find(document: Document) -> Any:
        for name in names:
            document = document[name]
        return document

    return find


def put(value: object, *names: Any) -> Change:
    return lambda found: at(*names[:-1])(found).update({names[-1]: value})


def drop(*names: Any) -> Change:
    return lambda found: at(*names[:-1])(found).pop(names[-1])


AUDIT = ("audits", "61k")
ROWS = ("catalog", "entries", 1, "files", "rows")
FAULTS: dict[str, tuple[Change, str]] = {
    "an audit of another experiment": (
        put("x", *AUDIT, "experiment_id"),
        r"audits.json: 61k.experiment_id is 'x', exp",
    ),
    "a catalog of another experiment": (put("x", "catalog", "experiment_id"), r"catalog.json: experiment_id is 'x'"),
    "no audit of one rung": (drop(*AUDIT), r"audits.json: field 61k is missing"),
    "no live cache": (drop(*AUDIT, "capacity_fit", "live_kv_cache_tokens"), r"live_kv_cache_tokens is missing"),
    "a cache of a fraction": (put(1.5, *AUDIT, "capacity_fit", "live_kv_cache_tokens"), r"is '1.5', expected a whole"),
    "a width that is true": (put(True, *AUDIT, "capacity_fit", "max_num_seqs"), r"is 'True', expected a whole number"),
    "a count below zero": (put(-1, *AUDIT, "termination", "samples"), r"61k.termination.samples is '-1', expected a w"),
    "sizes that are text": (put("1,2", *AUDIT, "cudagraph_resolution", "resolved_capture_sizes"), r"expected a list"),
    "a period that is none": (put([None], *AUDIT, "termination", "period_tokens"), r"expected a list of whole numbers"),
    "no time": (put(0, *AUDIT, "generation", "generation_seconds"), r"generation_seconds is '0', expected a number ab"),
    "no rows in the catalog": (drop(*ROWS), r"catalog.json: field entries\[1\].files.rows is missing"),
    "rows of another size": (put(1, *ROWS, "bytes"), r"61k.bundle.files.rows.bytes is '30617193', expected 1"),
    "rows of another digest": (put("0" * 64, *ROWS, "sha256"), r"61k.bundle.files.rows.sha256 is .*, expected '0000"),
    "a path that is empty": (put("", *ROWS, "relative_path"), r"relative_path is '', expected text"),
    "other rows selected on": (
        put("0" * 64, "selection", "tiers", 1, "scientific_probe", "artifacts", "rows"),
        r"selection.json: tiers\[1\].scientific_probe.artifacts.rows is '0000",
    ),
    "a rung twice": (put(49152, "catalog", "entries", 1, "thinking_budget"), r"2 items have thinking_budget 49152"),
    "no tiers": (put([], "selection", "tiers"), r"tiers is '\[\]', expected a list of at least one item"),
    "other samples than records": (put(3, "catalog", "entries", 1, "k"), r"n_completions is '48', expected 36"),
    "no prompts": (drop("prompt_manifest", "arms", "base"), r"prompt_manifest.json: field arms.base is missing"),
    "a prompt without length": (
        drop("prompt_manifest", "arms", "base", 3, "prompt_tokens"),
        r"arms.base\[3\].prompt_tokens is missing",
    ),
    "no library": (drop("libraries", "libraries", "designed_ceiling"), r"libraries.designed_ceiling is missing"),
    "no prompt of a task": (
        lambda found: found["prompt_manifest"]["arms"]["base"].pop(),
        r"prompt_manifest.json: arms.base: holds no prompt of task 'smoke-011', expected one of each",
    ),
    "a prompt of no task": (
        put("eval-000::base", "prompt_manifest", "arms", "base", 3, "id"),
        r"prompt_manifest.json: arms.base: holds no prompt of task 'smoke-003'",
    ),
    "a prompt twice": (
        lambda found: found["prompt_manifest"]["arms"]["base"].append(found["prompt_manifest"]["arms"]["base"][2]),
        r"prompt_manifest.json: arms.base\[12\].id is 'smoke-002::base', expected an id of its own",
    ),
    "a prompt too many": (
        lambda found: found["prompt_manifest"]["arms"]["base"].append(
            {"id": "eval-000::base", "prompt_tokens": 9, "rendered_prompt_sha256": "0" * 64}
        ),
        r"prompt_manifest.json: arms.base\[12\].id is 'eval-000::base', expected a prompt of a task of the smoke",
    ),
    "a task twice": (
        put("smoke-001", "tasks", "tasks", 4, "id"),
        r"tasks.json.gz: tasks\[4\].id is 'smoke-001', expected an id of its own",
    ),
    "a task without program": (drop("tasks", "tasks", 2, "program"), r"tasks.json.gz: field tasks\[2\].program is m"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_fit_is_refused(fault: str, tmp_path: Path) -> None:
    change, message = FAULTS[fault]
    published = documents()
    change(published)
    with pytest.raises(DataError, match=message):
        import_run(write(tmp_path / "source", published), tmp_path / "receipts")
    assert not (tmp_path / "receipts").exists()


def test_what_is_refused_while_it_is_built_is_named_by_its_source(tmp_path: Path) -> None:
    published = documents()
    put("x", "prompt_manifest", "arms", "base", 3, "rendered_prompt_sha256")(published)
    message = rf"^{tmp_path}/source/prompt_manifest\.json: field .*prompts\[3\]\.rendered_sha256: 'x' does not match"
    with pytest.raises(DataError, match=message) as refused:
        import_run(write(tmp_path / "source", published), tmp_path / "receipts")
    assert ".writing-" not in str(refused.value)
    assert not list((tmp_path / "receipts").iterdir())


def test_a_file_that_is_no_gzip(tmp_path: Path) -> None:
    source = write(tmp_path / "source", documents())
    (source / "tasks.json.gz").write_bytes(b"{}")
    with pytest.raises(DataError, match=r"tasks.json.gz: not a readable gzip file"):
        read_run(source)


# Whoever makes every digest anew cannot make the missing rows look like anything else.


@pytest.fixture
def copied(tmp_path: Path) -> Archive:
    return import_run(write(tmp_path / "source", documents()), tmp_path / "receipts")


def problem(archive: Archive) -> str:
    try:
        return "\n".join(replayed(archive).differences)
    except GatepostError as error:
        return str(error)


def test_taking_the_stand_in_away_is_seen(copied: Archive) -> None:
    (copied.step_folder(STEP) / "absent_rows.json").unlink()
    rebind(copied, STEP)
    assert "rows.parquet: is missing; this stage leaves it" in problem(copied)


def test_another_claim_is_seen(copied: Archive) -> None:
    rewrite(copied.step_folder(STEP) / "absent_rows.json", lambda absent: absent.update(size_bytes=1))
    rebind(copied, STEP)
    assert "termination[49152]: recorded complete_rows" in problem(copied)


def test_a_stand_in_beside_the_rows_is_refused(copied: Archive) -> None:
    tables.write_rows(copied.step_folder(STEP) / "rows.parquet", [])
    rebind(copied, STEP)
    assert "rows.parquet: is not part of an archive, or not of this stage" in problem(copied)


@pytest.mark.parametrize("name", ["absent_rows.json", "prompt_digests.json"])
def test_a_stand_in_of_another_shape_is_refused(copied: Archive, name: str) -> None:
    rewrite(copied.step_folder(STEP) / name, lambda document: document.update(extra=1))
    rebind(copied, STEP)
    assert name in problem(copied)


def test_digests_are_read_in_stored_order(imported: Archive) -> None:
    digests = read_prompt_digests(imported.step_folder(STEP) / "prompt_digests.json")
    assert [digest.prompt_tokens for digest in digests] == [990 - index for index in range(12)]
