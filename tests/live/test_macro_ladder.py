"""Every end of the macro ladder, reached live: the embedded model on the CPU build of vLLM (`make ladder`).

What the embedded model does was known from other seeds when a draft was written; a draft's own samples are drawn here,
and an end that is not an expected one is a failure. Rejections are expected by a wide margin. Which way the scores of a
selected rung fall is decided by one task more or less, and so by the rounding of a CPU: the receipts hold one run of
each way (see ``tests/packaging/test_macro_receipts.py``), and here both are expected.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.verdict import Outcome
from tests.engines.vllm_engines import needs_vllm

pytestmark = needs_vllm


class End(NamedTuple):
    """How a draft ends: the possible decisions, the steps in order, and per step that fails the check that has to."""

    decisions: tuple[str, ...]
    steps: tuple[str, ...]
    failed: Mapping[str, str]


UNRESOLVED = "unresolved_share"
NO_RUNG = ("NO_ADEQUATE_RUNG selected=none",)
_, NOT_VERIFIED = SCORED = ("MACROS_VERIFIED selected=160", "MACROS_NOT_VERIFIED selected=160")
ENDS = {
    "one_macro": End(
        SCORED,
        ("checks", "probe@160", "base@160", "designed@160", "scoring@160"),
        {},
    ),
    "protocol": End(
        SCORED,
        ("checks", "probe@56", "probe@160", "base@160", "designed@160", "scoring@160"),
        {"probe@56": UNRESOLVED},
    ),
    "designed_rejected": End(
        NO_RUNG,
        ("checks", "probe@92", "base@92", "designed@92"),
        {"designed@92": UNRESOLVED},
    ),
    "base_rejected": End(
        NO_RUNG,
        ("checks", "probe@72", "base@72"),
        {"base@72": UNRESOLVED},
    ),
    "probe_rejected": End(
        NO_RUNG,
        ("checks", "probe@44", "probe@52"),
        {"probe@44": UNRESOLVED, "probe@52": UNRESOLVED},
    ),
}


@pytest.mark.parametrize("draft", ENDS)
def test_the_draft_ends_as_expected(
    draft: str,
    freeze: Callable[[str], Archive],
    climb: Callable[[Archive], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # plenty for the model, and many wait for one another
    archive, end = freeze(f"verified_macro/{draft}.toml"), ENDS[draft]
    (decision,) = [line for line in climb(archive).splitlines() if line.startswith("  decision: ")]
    assert decision.removeprefix("  decision: ") in end.decisions
    assert tuple(map(str, archive.finished_steps())) == end.steps
    failed, expected = failed_checks(archive), dict(end.failed)
    if NOT_VERIFIED in decision:
        expected["scoring@160"] = "oracle_covered_tasks"
    assert failed.keys() == expected.keys()
    assert all(check in failed[step] for step, check in expected.items())
    selection = jsonfile.read_canonical(archive.root / "selection.json")
    assert selection["pass"] is ("none" not in decision)


def failed_checks(archive: Archive) -> dict[str, set[str]]:
    """Step -> the names of the checks that failed in it."""
    failed: dict[str, set[str]] = {}
    for step, judgements in archive.judgements().items():
        for verdict in (verdict for judgement in judgements for verdict in judgement.verdicts):
            names = {check.name for check in verdict.checks if check.outcome is not Outcome.PASS}
            if names:
                failed.setdefault(str(step), set()).update(names)
    return failed
