"""What was released is read for ever: every schema, every gate version, every kind of evidence, on whole archives.

The corpus only grows (``grow.py``). A test here that fails after a change says that old receipts could be read no more.
"""

import base64
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gatepost import bundled, jsonfile
from gatepost.archive import Archive
from gatepost.errors import GatepostError
from gatepost.gatefiles import Gates
from gatepost.replay import Replay, replay
from gatepost.schema import validate
from gatepost.stepfiles import EVIDENCE
from tests.corpus.grow import ARCHIVES, PROJECT, RELEASED, found
from tests.corpus.grow import EVIDENCE as STORE

NAMES = sorted(path.name for path in ARCHIVES.iterdir())
SCHEMAS = sorted(path.name for path in bundled.folder("schemas").glob("*.json"))
MAX_BYTES = 1_500_000

ENDS = {
    "adapter": "decision: REPLICATED selected=32",
    "approved": "decision: REPLICATED selected=32",
    "detached": "decision: REPLICATED selected=32",
    "exhausted": "decision: NO_CAP selected=none",
    "failed-once": "decision: REPLICATED selected=32",
    "prompts-registered": "decision: REPLICATED selected=32",
    "prompts-seen": "open: selection",
    "published-verified-macro-qwen35-4b": "decision: HALTED selected=none",
    "refused": "open: selection",
    "replicated": "decision: REPLICATED selected=32",
    "second-version": "decision: REPLICATED selected=32",
}
"""Of those that are made here; those that were adopted say it in their own words."""


def replayed(name: str, gates: Path = PROJECT / "gates", **options: Any) -> Replay:
    return replay(ARCHIVES / name, gates=Gates([gates]), studies=[PROJECT / "studies"], **options)


def documents(value: Any) -> Iterator[Any]:
    """A record, and the signed one that it carries if it is an envelope."""
    yield value
    if isinstance(value, dict) and "payload" in value:
        yield jsonfile.loads(base64.b64decode(value["payload"]), source="payload")


@cache
def kinds() -> dict[str, list[Path]]:
    """Schema -> the files of the corpus that are of it."""
    of: dict[str, list[Path]] = {}
    for path in sorted(ARCHIVES.rglob("*.json")):
        if "bound" not in path.relative_to(ARCHIVES).parts:
            for document in documents(jsonfile.read(path)):
                if isinstance(document, dict) and "schema" in document:
                    of.setdefault(document["schema"], []).append(path)
    return of


@cache
def judged() -> set[tuple[str, int]]:
    """(gate, version) of every verdict that a receipt or a preflight of the corpus holds."""
    receipts = [jsonfile.read(path) for path in kinds()["gatepost/receipt/1"]]
    preflights = [jsonfile.read(path) for path in kinds()["gatepost/preflight/1"]]
    judgements = [judgement for receipt in receipts for judgement in receipt["judgements"]]
    judgements += [preflight["judgement"] for preflight in preflights]
    return {(verdict["gate"], verdict["version"]) for judgement in judgements for verdict in judgement["verdicts"]}


def test_nothing_that_was_released_has_changed_or_gone() -> None:
    """Byte for byte: schemas, archives by their catalog roots, and the gates and tasks that belong to them."""
    now = found()
    for kind, released in jsonfile.read(RELEASED).items():
        for name, digest in released.items():
            assert name in now[kind], f"{kind}: {name} was released and is gone"
            assert now[kind][name] == digest, f"{kind}: {name} was released with other bytes; make a new one beside it"


def test_all_that_is_there_is_on_record() -> None:
    """What is new is released by ``python -m tests.corpus.grow``, and from then on is as it is."""
    released = jsonfile.read(RELEASED)
    for kind, entries in found().items():
        assert sorted(set(entries) - set(released[kind])) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_has_a_document(name: str) -> None:
    kind, version, *_ = name.split(".")
    paths = kinds().get(f"gatepost/{kind}/{version}", [])
    assert paths, "add an archive that has one to grow.py"
    for document in (one for path in paths for one in documents(jsonfile.read(path)) if kind in one.get("schema", "")):
        validate(document, kind=kind, source=str(paths[0]))


@pytest.mark.parametrize("gate", Gates().all.values(), ids=lambda gate: f"{gate.name}-{gate.version}")
def test_every_shipped_gate_has_a_verdict(gate: Any) -> None:
    assert (gate.name, gate.version) in judged(), "add an archive that lists it to grow.py"


def test_every_kind_of_evidence_is_there() -> None:
    there = {path.name for path in ARCHIVES.glob("*/steps/*/*")}
    moved = {Path(entry["path"]).name for entry in jsonfile.read(ARCHIVES / "detached" / "elsewhere.json")["files"]}
    assert set(EVIDENCE) <= there
    assert moved == {"rows.parquet", "text.parquet"}
    assert (ARCHIVES / "failed-once" / "attempts" / "0002-selection" / "stream.jsonl").exists()


def test_every_kind_of_event_is_there() -> None:
    (schema,) = (jsonfile.read(bundled.folder("schemas") / name) for name in SCHEMAS if name.startswith("event."))
    events = {jsonfile.read(path)["event"] for path in kinds()["gatepost/event/1"]}
    assert events == set(schema["properties"]["event"]["enum"])


@pytest.mark.parametrize("name", NAMES)
def test_every_archive_is_faithful(name: str) -> None:
    result = replayed(name, evidence=STORE, expected_root=jsonfile.read(RELEASED)["archives"][name])
    assert (result.differences, result.unjudged) == ((), ())
    assert str(result.decision) == ENDS.get(name, str(result.decision))


def test_it_stays_small() -> None:
    sizes = [path.stat().st_size for path in RELEASED.parent.rglob("*") if path.is_file()]
    assert sum(sizes) < MAX_BYTES


# A changed gate is a new version beside the old one


def observed(name: str) -> set[tuple[int, str, Any]]:
    (step,) = (step for step in replayed(name).steps if step.step.stage == "confirmation")
    return {
        (verdict.version, check.name, check.observed)
        for judgement in step.judgements
        for verdict in judgement.verdicts
        if verdict.gate == "toy_closes"
        for check in verdict.checks
    }


def test_two_versions_of_a_gate_judge_their_own_receipts_in_one_run() -> None:
    assert {(version, check) for version, check, _ in observed("replicated")} == {(1, "close_share")}
    assert {(version, check) for version, check, _ in observed("second-version")} == {(2, "closed_before_cap")}


@pytest.mark.parametrize(
    ("gone", "lost", "kept"),
    [
        ("toy_closes_2.py", "second-version", "replicated"),
        ("toy.py", "replicated", "published-verified-macro-qwen35-4b"),
    ],
)
def test_a_version_that_is_not_installed_fails_by_name_and_the_others_go_on(
    tmp_path: Path, gone: str, lost: str, kept: str
) -> None:
    gates = shutil.copytree(PROJECT / "gates", tmp_path / "gates")
    (gates / gone).unlink()
    with pytest.raises(GatepostError, match=r"gate toy_(closes|sizes) version \d is not installed"):
        replayed(lost, gates)
    assert replayed(kept, gates).differences == ()


def test_an_old_receipt_judged_by_a_newer_meaning_is_a_difference(tmp_path: Path) -> None:
    """What a change without a new version comes to."""
    gates = shutil.copytree(PROJECT / "gates", tmp_path / "gates")
    source = (gates / "toy.py").read_text()
    assert source.count("continuation.closed_at(cap)") == 1
    (gates / "toy.py").write_text(source.replace("continuation.closed_at(cap)", "continuation.closed_at(cap - 14)"))
    assert any("toy_closes[32]: recorded close_share" in line for line in replayed("replicated", gates).differences)


def test_the_archive_without_its_evidence_is_faithful_but_not_all_of_it_was_judged() -> None:
    result = replayed("detached")
    assert result.differences == ()
    assert {gate for step in result.steps for _, gate, _ in step.unjudged} == {"cache_contract"}
    assert not Archive(ARCHIVES / "detached").evidence
