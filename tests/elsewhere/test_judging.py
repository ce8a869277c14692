"""What a clone without its large evidence judges: what rests on counts and facts. The rest is named, never skipped."""

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from gatepost import jsonfile
from gatepost.audit import rows as tables
from gatepost.audit.counts import COUNTS, read_counts
from gatepost.audit.parquet import read_table, write_table
from gatepost.errors import DataError, ElsewhereError, IntegrityError
from gatepost.stepfiles import write_manifest
from tests.archives import reseal, rewrite
from tests.elsewhere.conftest import BY_COUNTS, BY_IDS, MOVED, ROWS, SELECTION, Home, put_elsewhere
from tests.faults.conftest import problem, replayed


def test_the_catalog_does_not_change(home: Home) -> None:
    before = (home.archive.root / "catalog.json").read_bytes()
    digests = {name: jsonfile.sha256_of(home.archive.root / name) for name in MOVED}
    home.detach()
    assert (home.archive.root / "catalog.json").read_bytes() == before
    assert sorted(path.name for path in home.store.iterdir()) == sorted(digests.values())
    assert not any((home.archive.root / name).exists() for name in MOVED)
    root = home.archive.catalog()["root"]
    assert problem(home.project, home.archive.root, expected_root=root, evidence=home.store) == ""


def test_with_the_root_all_is_judged(detached: Home) -> None:
    replay = replayed(detached.project, detached.archive.root, evidence=detached.store)
    assert (replay.differences, replay.unjudged, replay.notes) == ((), (), ())


def test_a_clone_judges_what_rests_on_counts_and_names_the_rest(detached: Home) -> None:
    """Each gate says what it said, or is named with the file that it takes: no third thing."""
    replay = replayed(detached.project, detached.archive.root)
    assert replay.differences == ()
    (step,) = (step for step in replay.steps if step.step == SELECTION)
    assert {gate for _, gate, _ in step.unjudged} == set(BY_IDS)
    assert len(step.unjudged) == len(BY_IDS) * 3, "at each of the three rungs"
    size, digest = detached.kept(ROWS).stat().st_size, detached.kept(ROWS).name
    for *_, said in step.unjudged:
        assert said == f"{ROWS} is not here (no evidence root is given): {size} bytes, SHA-256 {digest}"
    assert {gate for _, gate, _ in step.unjudged} == {v.gate for v in step.judgements[0].verdicts if not v.checks}
    assert str(replay.decision) == "decision: REPLICATED selected=32"
    unread = [line for line in replay.unjudged if ": evidence: " in line]
    assert [line.split()[2] for line in unread[:3]] == [ROWS, *MOVED[:2]]
    assert "was not derived again" in unread[3], "grades cannot be recomputed without the text"
    assert [note.split()[0] for note in replay.notes] == MOVED


def test_every_verdict_that_a_clone_makes_is_judged_and_not_taken_over(detached: Home) -> None:
    def lie(receipt: dict[str, Any]) -> None:
        for judgement in receipt["judgements"]:
            for verdict in judgement["verdicts"]:
                for check in verdict["checks"]:
                    check["note"] = "a lie"

    detached.changed(lambda: rewrite(detached.archive.step_folder(SELECTION) / "receipt.json", lie))
    said = problem(detached.project, detached.archive.root)
    for gate in BY_COUNTS:
        assert f"selection: {gate}[8]: recorded" in said
    for gate in BY_IDS:
        assert f"{gate}[8]: recorded" not in said


@pytest.mark.parametrize(
    "change",
    [{"role": "adequacy"}, {"version": 2}, {"gate": "peeked"}],
    ids=lambda change: next(iter(change)),
)
def test_a_verdict_that_is_not_judged_is_still_the_registered_one(detached: Home, change: dict[str, Any]) -> None:
    def tell(receipt: dict[str, Any]) -> None:
        for judgement in receipt["judgements"]:
            (peeks,) = (verdict for verdict in judgement["verdicts"] if verdict["gate"] == "peeks")
            peeks.update(change)

    detached.changed(lambda: rewrite(detached.archive.step_folder(SELECTION) / "receipt.json", tell))
    assert "selection: peeks[8]: " in problem(detached.project, detached.archive.root)


def without_counts(home: Home) -> None:
    folder = home.archive.step_folder(SELECTION)
    rows = tables.read_rows(folder / "rows.parquet")
    (folder / "counts.parquet").unlink()
    (folder / "rows.json").unlink()
    manifest = write_manifest(folder, home.archive.protocol, SELECTION, rows)
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=manifest))
    reseal(home.archive)


def test_an_archive_of_before_there_were_counts(home: Home) -> None:
    without_counts(home)
    assert problem(home.project, home.archive.root) == ""
    assert home.detach() == MOVED
    (step,) = (one for one in replayed(home.project, home.archive.root).steps if one.step == SELECTION)
    unjudged = {gate for _, gate, _ in step.unjudged}
    assert unjudged == {*BY_COUNTS, *BY_IDS, "toy_closes"}
    assert {verdict.gate for verdict in step.judgements[0].verdicts} - unjudged == {"toy_engine"}
    assert replayed(home.project, home.archive.root, evidence=home.store).unjudged == ()


OTHER_COUNTS = {
    "tokens": 99,
    "seed": 99,
    "finish_reason": "abort",
    "prompt_tokens": 99,
    "close_step": 99,
    "ending": "thinking_unclosed",
    "forward_calls": 99,
    "answer_tokens": 99,
    "claims": '{"natural_close":false}',
}


@pytest.mark.parametrize("column", [*OTHER_COUNTS, "row"])
def test_counts_are_those_of_the_rows(home: Home, column: str) -> None:
    """The receipt binds them, so that no clone has others; and whoever has the rows finds out what they are."""
    folder, path = home.archive.step_folder(SELECTION), home.archive.step_folder(SELECTION) / "counts.parquet"
    rows, stored = tables.read_rows(folder / "rows.parquet"), read_table(path, COUNTS).to_pylist()
    path.unlink()
    if column == "row":
        del stored[3]
    else:
        stored[3][column] = OTHER_COUNTS[column]
    write_table(path, COUNTS, {name: [row[name] for row in stored] for name in COUNTS.names})
    home.archive.write_catalog()
    assert "rows.json bound" in problem(home.project, home.archive.root)
    (folder / "rows.json").unlink()
    manifest = write_manifest(folder, home.archive.protocol, SELECTION, rows)
    rewrite(folder / "receipt.json", lambda receipt: receipt.update(manifest=manifest))
    reseal(home.archive)
    found = "recorded 11 rows, recomputed 12" if column == "row" else f"first-1 sample 0: {column} recorded"
    assert f"selection: judgement: counts.parquet: {found}" in problem(home.project, home.archive.root)
    with pytest.raises(IntegrityError, match="is not faithful, so nothing is moved"):
        home.detach()


@pytest.mark.parametrize("ending", ["", "answered ", "ANSWERED"])
def test_an_ending_that_is_none_is_refused(detached: Home, ending: str) -> None:
    path = detached.archive.step_folder(SELECTION) / "counts.parquet"
    stored = read_table(path, COUNTS).to_pylist()
    path.unlink()
    columns = {name: [row[name] for row in stored] for name in COUNTS.names}
    write_table(path, COUNTS, {**columns, "ending": [ending] * len(stored)})
    with pytest.raises(DataError, match=f"column ending: {ending!r}, expected one of answered, "):
        read_counts(path, "not here")


def test_counts_read_as_they_were_written(home: Home) -> None:
    """All that a sample is but for its ids, which nobody gets: not one, not their digest, not their order."""
    folder = home.archive.step_folder(SELECTION)
    rows = tables.read_rows(folder / "rows.parquet")
    read = read_counts(folder / "counts.parquet", "not here")
    for row, sample in zip(rows, read, strict=True):
        counted = sample.row
        assert (counted.key, counted.seed, counted.claims) == (row.key, row.seed, row.claims)
        assert (len(counted.token_ids), counted.sampled_tokens) == (len(row.token_ids), row.sampled_tokens)
        assert bool(counted.token_ids) is bool(row.token_ids)
        for ask in ASKING:
            with pytest.raises(ElsewhereError, match="not here"):
                ask(counted.token_ids)


ASKING: list[Callable[[Any], object]] = [
    list,
    tuple,
    set,
    sum,
    max,
    reversed,
    hash,
    bytes,
    lambda ids: ids[0],
    lambda ids: ids[-1],
    lambda ids: ids[2:],
    lambda ids: 7 in ids,
    lambda ids: ids == ids,
    lambda ids: ids != [],
    lambda ids: ids.tobytes(),
    lambda ids: ids.index(7),
    lambda ids: ids.count(7),
    lambda ids: array("i", ids),
    lambda ids: [*ids],
]
"""Ways to look at ids."""


def test_a_deleted_file_is_missing_unless_the_archive_says_otherwise(home: Home) -> None:
    """And then it is not judged, which opens and passes nothing: nobody loses rows by writing a record."""
    (home.archive.root / ROWS).rename(home.store / "aside")
    assert f"{ROWS}: is missing, but catalog.json lists it" in problem(home.project, home.archive.root)
    (home.store / "aside").rename(home.archive.root / ROWS)
    put_elsewhere(home.archive, [ROWS])
    assert len(replayed(home.project, home.archive.root).unjudged) == 1 + 3 * len(BY_IDS)
