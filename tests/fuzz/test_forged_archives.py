"""One thing is changed in an archive, and everything that binds it is made anew: only what records mean is left.

What gatepost derived is caught: judgements, decisions, the selection, counts, keys, seeds, the order and the ends of
attempts, what the task domain said. What an engine, a clock or an author gave cannot be derived again; ``GIVEN`` lists
all of it, place by place. A change there may be another valid record, which differs in its root alone: that is what a
root noted elsewhere is for. Whatever is changed, the answer is one message that names the archive, never a traceback.
"""

import contextlib
import random
import re
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from gatepost import jsonfile
from gatepost.approve import approve
from gatepost.archive import Archive
from gatepost.engine import Engine, EngineSpec
from gatepost.errors import DataError, GatepostError
from gatepost.gatefiles import Gates
from gatepost.preflight import PreflightRefusedError
from gatepost.replay import replay
from tests.approvals import freeze, make_keys
from tests.archives import Project, create_project
from tests.every import EVERY
from tests.fuzz import forgery
from tests.mutants import changes, mutate

ROOT = Path(__file__).resolve().parents[2]
FORGERIES = 2_000 if EVERY else 30
RECEIPTS = sorted(path.name for path in (ROOT / "receipts").iterdir()) if EVERY else ["engine-geometry-eager"]

GIVEN = {
    "a measurement": [
        (r"log/\d+\.json", r"\$\.at"),
        (r".*/session\.json", r"\$\.(elapsed|generation)_seconds"),
    ],
    "what an engine said of itself, before or after generation": [
        (r".*/(session|preflight)\.json", r"\$\.engine\..*"),
    ],
    "what an engine sampled, was fed and wrote": [
        (r".*/rows\.parquet", "token_ids|forward_input_lengths|finish_reason|stage_one_finish_reason"),
        (r".*/rows\.parquet", "injected_start|injected_tokens|reprefilled_tokens|claims"),
        (r".*/prompts\.parquet", "text|token_ids"),
        (r".*/text\.parquet", "text"),
    ],
    "why a run failed or what it says of its own limits, in words": [
        (r"log/\d+\.json", r"\$\.detail"),
        (r".*/receipt\.json", r"\$\.limits(\[\])?"),
    ],
    "another plan, which has another digest": [
        ("protocol.json", r"\$\.id|\$\.preregistration\..*"),
        ("protocol.json", r"\$\.labels\.\w+\.(licenses|does_not_license)"),
        ("protocol.json", r"\$\.(model|engine|sampling)\..*|\$\.rungs\[\]\.engine\..*"),
        ("protocol.json", r"\$\.bound(\[\]\.(path|role|sha256|size_bytes))?"),
        ("protocol.json", r"\$\.stages\[\]\.(arm|max_tasks|max_think_tokens|base_seed)"),
    ],
    "the order of what is looked up by its key": [
        (r".*/(text|grades|prompts)\.parquet", "order"),
    ],
}
"""Why a change may go unnoticed -> (file, place), as regular expressions. All else is caught."""


class Finished(NamedTuple):
    """An archive that replays faithfully, and what it takes to replay it."""

    name: str
    files: forgery.Files
    gates: Gates
    studies: tuple[Path, ...]


def crash(spec: EngineSpec) -> Engine:
    raise RuntimeError(spec.kind)


def replicated(project: Project) -> Archive:
    archive = project.freeze()
    project.run(archive)
    return archive


def troubled(project: Project) -> Archive:
    """One step, an attempt that was refused and one that failed."""
    archive = project.freeze(engine_model_len=8192)
    project.step(archive)
    with pytest.raises(PreflightRefusedError):
        project.step(archive)
    with pytest.raises(RuntimeError):
        project.step(archive, crash)
    return archive


def exhausted(project: Project) -> Archive:
    archive = project.freeze(think_tokens=(100, 110))
    project.run(archive)
    return archive


def approved(project: Project) -> Archive:
    keys = make_keys(project.root / "keys")
    archive = freeze(project, keys)
    for name in ("alice", "bob"):
        approve(archive, "selection", keys[name], statement="read it")
    for _ in range(2):
        project.step(archive)
    return archive


MADE = {"replicated": replicated, "troubled": troubled, "exhausted": exhausted, "approved": approved}


@pytest.fixture(scope="module", params=[*MADE, *RECEIPTS])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    if request.param in RECEIPTS:
        root = ROOT / "receipts" / request.param
        return Finished(request.param, forgery.read(root), Gates([]), (ROOT / "studies",))
    project = create_project(tmp_path_factory.mktemp("project") / request.param)
    return Finished("toy", forgery.read(MADE[request.param](project).root), project.gates, project.studies)


def said_of(root: Path, finished: Finished) -> str:
    """How an archive is not faithful, in a message that names it; empty for a faithful one."""
    try:
        return "\n".join(replay(root, gates=finished.gates, studies=finished.studies).differences)
    except GatepostError as error:
        said = str(error)
    assert str(root) in said or said.startswith(f"protocol {root.name}: "), "a message names what it is about"
    return said


def forge(finished: Finished, name: str, source: random.Random) -> tuple[forgery.Files, list[str]]:
    """Change one file in one way or, seldom, several; returns the archive and the places that differ."""
    places: list[str] = []
    if name.endswith(".json"):
        while True:
            document = jsonfile.loads(finished.files[name], source=name)
            changed, _ = mutate(document, source)
            with contextlib.suppress(DataError):  # no record can hold it: another one
                if places := list(changes(document, changed)):
                    return forgery.forge_document(finished.files, name, changed), places

    def change(table: forgery.Table) -> forgery.Table:
        while not places:
            changed, how = forgery.mutate_table(table, source)
            places.extend([how] if not changed.equals(table) else [])
        return changed

    return forgery.forge_table(finished.files, name, change), places


def reason(finished: Finished, name: str, places: list[str]) -> str | None:
    """Why a change of these places may go unnoticed; ``None`` if it may not."""
    if name.startswith(tuple(failed(finished))):
        return "what an attempt left that failed, on which nothing rests"
    reasons = [
        next((why for why, given in GIVEN.items() for file, place in given if matches(file, place, name, found)), None)
        for found in places
    ]
    return None if None in reasons else reasons[0]


def failed(finished: Finished) -> list[str]:
    """The folders of attempts that failed."""
    records = [jsonfile.loads(data, source=name) for name, data in finished.files.items() if name.startswith("log/")]
    events = [record for record in records if record["event"] == "failed"]
    return [f"attempts/{event['attempt']:04}-{event['step']}/" for event in events]


def matches(file: str, place: str, name: str, found: str) -> bool:
    return bool(re.fullmatch(file, name) and re.fullmatch(place, found, re.DOTALL))


def files_to_change(finished: Finished) -> list[str]:
    names = [name for name in finished.files if name.endswith((".json", ".parquet"))]
    return [name for name in names if name.endswith(".json") or forgery.rows_in(finished.files[name])]


def test_what_is_derived_cannot_be_changed(finished: Finished, tmp_path: Path) -> None:
    names = files_to_change(finished)
    count = FORGERIES // len(RECEIPTS) if finished.name in RECEIPTS and EVERY else FORGERIES
    source, seen = random.Random(len(names)), Counter[str]()
    assert said_of(forgery.write(tmp_path / finished.name, finished.files), finished) == ""
    for _ in range(count):
        name = source.choice(names)
        forged, places = forge(finished, name, source)
        said = said_of(forgery.write(tmp_path / finished.name, forged), finished)
        why = "caught" if said else reason(finished, name, places)
        assert why is not None, f"{name} was changed at {places}, and nothing shows"
        assert len(said) < 20_000
        seen[why] += 1
    print(finished.name, dict(seen))
    assert seen["caught"] > count / 4


def test_binding_again_leaves_a_sound_archive(finished: Finished, tmp_path: Path) -> None:
    """Else every forgery would be caught for its digests, and this file would show nothing."""
    times = [name for name in finished.files if name.startswith("log/")]
    times += [name for name in finished.files if name.endswith("/session.json")]
    for name in times:
        field = "at" if name.startswith("log/") else "elapsed_seconds"
        value = "2001-01-01T00:00:00Z" if field == "at" else 86400.5
        record = jsonfile.loads(finished.files[name], source=name)
        forged = forgery.forge_document(finished.files, name, {**record, field: value})
        assert forged["catalog.json"] != finished.files["catalog.json"]
        assert said_of(forgery.write(tmp_path / finished.name, forged), finished) == "", name


@pytest.mark.parametrize("record", ["receipt.json", "rows.json", "session.json", "preflight.json"])
def test_two_records_cannot_change_places(finished: Finished, tmp_path: Path, record: str) -> None:
    names = [name for name in finished.files if name.endswith(f"/{record}")]
    for first, second in pairwise(names):
        swapped = {**finished.files, first: finished.files[second], second: finished.files[first]}
        forged = forgery.bound_again(finished.files, swapped)
        assert said_of(forgery.write(tmp_path / finished.name, forged), finished)


def test_no_step_can_be_renamed_or_dropped(finished: Finished, tmp_path: Path) -> None:
    steps = {name.split("/")[1] for name in finished.files if name.startswith("steps/")}
    for step in sorted(steps):
        for new in ("other", f"{step}x", step.partition("@")[0] + "@999", None):
            renamed = {
                name.replace(f"steps/{step}/", f"steps/{new}/"): data
                for name, data in finished.files.items()
                if new is not None or not name.startswith(f"steps/{step}/")
            }
            forged = forgery.bound_again(renamed, {})
            assert said_of(forgery.write(tmp_path / finished.name, forged), finished)
    shutil.rmtree(tmp_path / finished.name, ignore_errors=True)
