"""The macro ladder on record: one run of each way that it can end, judged again."""

from pathlib import Path

import pytest

from gatepost.freeze import plan
from gatepost.gatefiles import Gates
from gatepost.replay import replay

ROOT = Path(__file__).resolve().parents[2]

ENDS = {
    "one_macro": ("verified-macro-one-macro", "decision: MACROS_VERIFIED selected=160"),
    "protocol": ("verified-macro-cpu", "decision: MACROS_NOT_VERIFIED selected=160"),
    "designed_rejected": ("verified-macro-designed-rejected", "decision: NO_ADEQUATE_RUNG selected=none"),
    "gpu": ("verified-macro-gpu", "decision: MACROS_NOT_VERIFIED selected=160"),
}


@pytest.mark.parametrize("draft", ENDS)
def test_the_end_on_record(draft: str) -> None:
    name, decision = ENDS[draft]
    replayed = replay(ROOT / "receipts" / name, gates=Gates(), studies=())
    assert replayed.faithful
    assert str(replayed.decision) == decision


@pytest.mark.parametrize("draft", ENDS)
def test_the_draft_is_the_one_on_record(draft: str) -> None:
    frozen = plan(ROOT / "studies" / "verified_macro" / f"{draft}.toml", gates=Gates(), studies=())
    assert frozen.data == (ROOT / "receipts" / ENDS[draft][0] / "protocol.json").read_bytes()
