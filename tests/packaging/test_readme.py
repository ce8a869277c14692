"""What the README shows is what works."""

import re
import tomllib
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.freeze import plan
from gatepost.gate import SampleSize
from gatepost.gatefiles import Gates
from gatepost.replay import replay
from gatepost.report import replay_text
from tests.archives import create_project

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The code blocks of a language; fences are paired in order, so that an end is no beginning."""
    paired = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", README, re.DOTALL | re.MULTILINE)
    return [block for name, block in paired if name == language]


def test_the_gate_can_be_copied(tmp_path: Path) -> None:
    project = create_project(tmp_path)
    (project.root / "gates" / "own.py").write_text(blocks("python")[0])
    gate = Gates([project.root / "gates"]).get("own_close", 1, where="README")
    assert gate.reach is not None
    (reach,) = gate.reach(SampleSize(16, 3), min_natural_close_rate=0.8)
    assert (reach.minimum, reach.of) == (39, 48)
    own = "gates.own_close = { version = 1, min_natural_close_rate = 0.75 }\n"
    for think_tokens, decision in (((10, 20), "REPLICATED selected=32"), ((100, 120), "NO_CAP selected=none")):
        archive = project.freeze(
            f"own-{think_tokens[0]}",
            think_tokens=think_tokens,
            edit=lambda text: text.replace("gates.toy_closes", own + "gates.toy_closes"),
        )
        assert str(project.run(archive)) == f"decision: {decision}"
        judgement = archive.judgements()[archive.finished_steps()[1]][0]
        assert {verdict.gate for verdict in judgement.verdicts} >= {"own_close", "toy_closes"}


def test_the_test_can_be_copied(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own=blocks("python")[1])
    archive = ROOT / "receipts" / "native-seam-replicated"
    result = pytester.runpytest_subprocess("-m", "cpu", "--gatepost-archive", str(archive))
    result.assert_outcomes(passed=1)


def test_the_protocol_is_the_one_that_ships() -> None:
    shown = tomllib.loads(blocks("toml")[0])
    shipped = tomllib.loads((ROOT / "studies" / "native_seam" / "protocol.toml").read_text())
    assert shown["rungs"][0] in shipped["rungs"]
    (stage,) = shown["stages"]
    (same,) = [entry for entry in shipped["stages"] if entry["name"] == stage["name"]]
    assert stage.pop("gates").items() <= same["gates"].items()
    assert stage.items() <= same.items()


def test_the_replay_is_the_one_that_is_printed() -> None:
    archive = ROOT / "receipts" / "native-seam-replicated"
    printed = replay_text(replay(archive, gates=Gates(), studies=[])).splitlines()
    shown = next(block for block in blocks("") if block.startswith("$ gatepost replay receipts/native"))
    for line in shown.splitlines()[1:]:
        assert line in printed


@pytest.mark.parametrize("name", ["replicated", "not-replicated", "no-budget"])
def test_the_archives_in_the_repository_are_faithful_and_of_today(name: str) -> None:
    """Each replays, and its protocol is what its draft in the repository still freezes to."""
    root = ROOT / "receipts" / f"native-seam-{name}"
    assert replay(root, gates=Gates(), studies=[]).faithful
    draft = {"replicated": "protocol"}.get(name, name.replace("-", "_"))
    frozen = plan(ROOT / "studies" / "native_seam" / f"{draft}.toml", gates=Gates(), studies=[])
    assert frozen.protocol.digest == Archive(root).protocol.digest
    assert frozen.data == jsonfile.read_bytes(root / "protocol.json")
