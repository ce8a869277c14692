"""The reference of drafts leaves nothing out, and what it shows is TOML."""

import re
import tomllib
from pathlib import Path

import pytest

from gatepost import bundled, jsonfile
from gatepost.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
DRAFTS = (ROOT / "docs" / "drafts.md").read_text()
SCHEMA = jsonfile.read(bundled.folder("schemas") / "protocol.1.schema.json")["properties"]
WRITTEN_BY_FREEZING = {"schema", "files", "token", "id"}


@pytest.mark.parametrize(
    ("where", "properties"),
    [
        ("the plan", SCHEMA),
        ("preregistration", SCHEMA["preregistration"]["properties"]),
        ("model", SCHEMA["model"]["properties"]),
        ("engine", SCHEMA["engine"]["properties"]),
        ("sampling", SCHEMA["sampling"]["properties"]),
        ("a stage", SCHEMA["stages"]["items"]["properties"]),
        ("scopes", SCHEMA["stages"]["items"]["properties"]["scope"]["enum"]),
        ("text", SCHEMA["stages"]["items"]["properties"]["text"]["enum"]),
        ("thinking", SCHEMA["sampling"]["properties"]["thinking"]["enum"]),
        ("seed rules", SCHEMA["sampling"]["properties"]["seed_rule"]["enum"]),
    ],
)
def test_every_field_is_told(where: str, properties: list[str]) -> None:
    told = set(re.findall(r"[a-z0-9_]+", DRAFTS.lower()))
    assert {name for name in properties if name not in told} - WRITTEN_BY_FREEZING == set(), where


def test_what_is_shown_is_toml() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", DRAFTS, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        tomllib.loads(block)


def test_every_shipped_gate_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gates"]) == 0
    listed = re.findall(r"^([a-z_]+)  version (\d+), (validity|adequacy): \S", capsys.readouterr().out, re.MULTILINE)
    assert {name for name, _, _ in listed} == {path.stem for path in (ROOT / "gates").glob("*.py")}
