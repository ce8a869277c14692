"""The published charts: each bar is held against the published share, and one that differs is named."""

from pathlib import Path

import pytest

from conformance import charts, verified_macro
from gatepost.audit.verified_macro import import_run
from gatepost.gatefiles import Gates
from gatepost.html_report.model import ShareBars
from gatepost.replay import replay
from tests.published_macro import documents, write
from tests.report.conftest import RECEIPTS, Page

RATES = {
    "49152.periodic_loop_rate": 38 / 48,
    "49152.unresolved_cap_contact_rate": 10 / 48,
    "49152.answer_limit_contact_rate": 6 / 48,
    "61440.periodic_loop_rate": 40 / 48,
    "61440.unresolved_cap_contact_rate": 8 / 48,
    "61440.answer_limit_contact_rate": 4 / 48,
}


@pytest.mark.parametrize("off", [None, *RATES])
def test_the_chart_of_study_a_has_both_rungs_and_the_published_shares(tmp_path: Path, off: str | None) -> None:
    source = write(tmp_path / "source", documents())
    archive = import_run(source, tmp_path / "receipts")
    published = {(verified_macro.EXPERIMENT, name): rate + (name == off) / 48 for name, rate in RATES.items()}
    figure, differ = charts.ends(source, replay(archive.root, gates=Gates(), studies=[]), published)
    assert differ == ([] if off is None else [off])
    assert isinstance(figure.drawing, ShareBars)
    assert [label for label, _ in figure.drawing.groups] == ["probe@49152", "probe@61440"]
    assert all(bar.claimed for _, bars in figure.drawing.groups for bar in bars)
    assert [row[-1] for row in figure.table.rows].count("no") == len(differ)
    parsed = Page(charts.page([("study A", figure)], []).decode())
    assert len(parsed.all("svg")) == 1
    assert "Published share" in parsed.text


def test_the_projects_own_runs_have_the_same_charts() -> None:
    found = list(charts.own(RECEIPTS))
    kinds = {(name.split("-")[0], figure.name) for name, figure in found}
    assert {("native", "natural-close"), ("verified", "termination"), ("verified", "natural-close")} <= kinds
    parsed = Page(charts.page([], found).decode())
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert len(parsed.all("svg")) == len(found)
