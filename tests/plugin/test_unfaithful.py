"""A record that is not what it says fails, by one line that names what is wrong, and never by a traceback."""

from typing import Any

import pytest

from gatepost.archive import Archive
from tests.archives import Project, reseal, rewrite
from tests.plugin.conftest import Run, lines_with


@pytest.fixture
def archive(project: Project) -> Archive:
    archive = project.freeze()
    project.run(archive)
    return archive


def failures(result: pytest.RunResult) -> list[str]:
    """Names of the failed items; a traceback would show its files."""
    assert not lines_with(result, "Traceback")
    assert not lines_with(result, ".py:")
    failed = (line for line in result.outlines if line.startswith("FAILED "))
    return [line.removeprefix("FAILED ").partition("protocol.json::")[2].partition(" - ")[0] for line in failed]


def test_a_flipped_byte_is_named(archive: Archive, run: Run) -> None:
    path = archive.step_folder(archive.finished_steps()[1]) / "rows.parquet"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    result = run("receipts")
    assert failures(result)[0] == "integrity"
    (said,) = lines_with(result, "catalog.json lists")
    assert str(path) in said
    # The items that cannot be judged say only that.
    assert len(lines_with(result, "not judged, since the archive is not whole: see integrity")) == 12
    result.assert_outcomes(failed=13)


def test_a_flipped_byte_under_a_new_catalog_fails_the_step(archive: Archive, run: Run) -> None:
    path = archive.step_folder(archive.finished_steps()[1]) / "rows.parquet"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    archive.write_catalog()
    result = run("receipts")
    assert set(failures(result)) >= {"selection::evidence", "selection::toy_closes[8]", "ladder"}
    assert "confirmation@32::evidence" not in failures(result)


def test_a_changed_limit_fails_its_verdict_alone(archive: Archive, run: Run) -> None:
    def lower(receipt: dict[str, Any]) -> None:
        for judgement in receipt["judgements"]:
            for verdict in judgement["verdicts"]:
                if verdict["gate"] == "toy_closes":
                    verdict["checks"][0]["limit"] = 0.5

    rewrite(archive.step_folder(archive.finished_steps()[2]) / "receipt.json", lower)
    reseal(archive)
    result = run("receipts")
    assert failures(result) == ["confirmation@32::toy_closes[32]"]
    result.stdout.fnmatch_lines(
        ["toy_closes[[]32]: recorded close_share 1 >= 0.5 (8/8), recomputed close_share 1 >= 0.75 (8/8)"]
    )


def test_a_changed_outcome_fails_its_verdict(archive: Archive, run: Run) -> None:
    def fail(receipt: dict[str, Any]) -> None:
        receipt["judgements"][0]["verdicts"][0]["outcome"] = "fail"

    rewrite(archive.step_folder(archive.finished_steps()[2]) / "receipt.json", fail)
    reseal(archive)
    assert failures(run("receipts")) == ["confirmation@32::toy_closes[32]"]


def test_a_verdict_that_nobody_registered_fails_the_evidence(archive: Archive, run: Run) -> None:
    def add(receipt: dict[str, Any]) -> None:
        extra = {**receipt["judgements"][0]["verdicts"][0], "gate": "unheard_of"}
        receipt["judgements"][0]["verdicts"].append(extra)

    rewrite(archive.step_folder(archive.finished_steps()[2]) / "receipt.json", add)
    reseal(archive)
    result = run("receipts")
    assert failures(result) == ["confirmation@32::evidence"]
    result.stdout.fnmatch_lines(["unheard_of[[]32]: recorded, but not registered"])


def test_a_verdict_that_was_dropped_fails(archive: Archive, run: Run) -> None:
    def drop(receipt: dict[str, Any]) -> None:
        del receipt["judgements"][2]["verdicts"][0]

    rewrite(archive.step_folder(archive.finished_steps()[1]) / "receipt.json", drop)
    reseal(archive)
    result = run("receipts")
    assert failures(result) == ["selection::toy_closes[64]"]
    result.stdout.fnmatch_lines(["toy_closes[[]64]: registered, but not recorded"])


def test_a_changed_decision_fails_the_ladder(archive: Archive, run: Run) -> None:
    def rename(receipt: dict[str, Any]) -> None:
        receipt["decision"]["reason"] = "BETTER"

    rewrite(archive.step_folder(archive.finished_steps()[2]) / "receipt.json", rename)
    reseal(archive)
    result = run("receipts")
    assert failures(result) == ["ladder"]
    result.stdout.fnmatch_lines(["decision after confirmation@32: recorded *BETTER*, recomputed *REPLICATED*"])


def test_a_gate_version_that_is_not_installed_fails_and_never_skips(
    archive: Archive, project: Project, run: Run
) -> None:
    gates = project.root / "gates" / "toy.py"
    gates.with_name("newer.py").write_text(gates.read_text().replace("version=1", "version=2"))
    gates.unlink()
    result = run("receipts")
    result.assert_outcomes(passed=1, failed=12)
    assert lines_with(result, "gate toy_closes version 1 is not installed; found versions 2")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "protocol.json: not JSON at line 1"),
        (b'{"schema":"gatepost/protocol/1"}', "protocol.json: field $"),
        (b"[]", "protocol.json: field 'schema' is None"),
    ],
)
def test_a_broken_protocol_fails_integrity_and_names_the_field(
    archive: Archive, run: Run, data: bytes, said: str
) -> None:
    (archive.root / "protocol.json").write_bytes(data)
    result = run("receipts")
    assert failures(result) == ["integrity"]
    assert lines_with(result, said)


@pytest.mark.parametrize("name", ["protocol.json", "catalog.json", "log", "bound"])
def test_a_lost_part_fails_and_is_named(archive: Archive, run: Run, name: str) -> None:
    (archive.root / name).rename(archive.root.parent.parent / "elsewhere")
    result = run("receipts")
    assert failures(result)[0] == "integrity"
    assert any("does not exist" in line or "is missing" in line for line in lines_with(result, f"toy/{name}"))


@pytest.mark.parametrize("name", ["extra.txt", "steps/extra", "attempts/extra", "log/9999.json", "bound/extra.jsonl"])
def test_a_stranger_fails_integrity(archive: Archive, run: Run, name: str) -> None:
    (archive.root / name).write_text("{}")
    result = run("receipts")
    assert failures(result)[0] == "integrity"
    assert lines_with(result, name)


def test_a_receipt_that_was_removed_fails(archive: Archive, run: Run) -> None:
    (archive.step_folder(archive.finished_steps()[0]) / "receipt.json").unlink()
    assert failures(run("receipts"))[0] == "integrity"


def test_a_bug_shows_its_traceback(archive: Archive, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def divide(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("gatepost.integrity.verify", divide)
    result = run("receipts", "-k", "integrity")
    result.assert_outcomes(failed=1)
    assert lines_with(result, "test_unfaithful.py:")
    assert not lines_with(result, "_hookexec")
