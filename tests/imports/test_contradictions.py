"""Published counts that contradict one another, the plan or their own verdicts are refused, by file and field."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatepost.archive import Archive
from gatepost.audit.claims import require_consistent
from gatepost.audit.foreign import Foreign
from gatepost.audit.verified_macro import import_run
from gatepost.errors import DataError
from gatepost.plan import Plan
from gatepost.records import plan_of
from tests.published_macro import PROBES, Document, documents, write

BUDGET, N = PROBES[0].budget, 48


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("published")
    archive: Archive = import_run(write(folder / "source", documents()), folder / "receipts")
    protocol = archive.protocol
    return plan_of(archive, protocol.stage("probe"), protocol.rung(str(BUDGET)), recorded_digest=protocol.digest)


def full() -> Document:
    """The first audit with all that the authors conclude from it: 38 loops and 10 unresolved of 48."""
    audit: Document = documents()["audits"]["49k"]
    audit["termination"] |= {
        "periodic_loop_rate": 38 / N,
        "unresolved_cap_contact_rate": 10 / N,
        "answer_limit_contact_rate": 6 / N,
        "adequate": False,
        "thresholds": {
            "unresolved_cap_contact_rate_below": 0.05,
            "answer_limit_contact_rate_below": 0.05,
            "periodic_loop_rate_at_most": 0.25,
        },
    }
    audit["capacity_fit"] |= {
        "required_cache_tokens": 963072, "rounded_tokens_per_sequence": 50688, "pass": True
    }  # fmt: skip
    audit["cudagraph_resolution"] |= {"active_width_covered": True, "pass": True}
    return audit


def counts(**changes: Any) -> Document:
    """Counts of the termination block; the conclusions from them are left out."""
    audit: Document = documents()["audits"]["49k"]
    audit["termination"] |= changes
    return audit


def loops(periods: list[int], **changes: Any) -> Document:
    return counts(period_tokens=periods, periodic_loop_contacts=len(periods), **changes)


def test_what_fits_is_taken(plan: Plan) -> None:
    require_consistent(Foreign("audit.json", full()), plan)


# 20 closed by force and 30 at the boundary are 30 to 48 samples.
UNION = {"forced_interventions": 20, "reasoning_boundary_contacts": 30}


@pytest.mark.parametrize(
    ("audit", "field"),
    [
        (counts(samples=N - 1), "samples"),
        (counts(samples=N + 1), "samples"),
        (counts(samples=0), "samples"),
        (counts(samples=10**12), "samples"),
        (counts(forced_interventions=N + 1), "forced_interventions"),
        (counts(forced_interventions=N - 1), None),  # the boundary is touched by all
        (counts(reasoning_boundary_contacts=N + 1), "reasoning_boundary_contacts"),
        (counts(reasoning_boundary_contacts=0), None),  # all are closed by force
        (counts(answer_limit_contacts=N), None),
        (counts(answer_limit_contacts=N + 1), "answer_limit_contacts"),
        (counts(stage1_length_finishes=0), None),
        (counts(stage1_length_finishes=N + 1), "stage1_length_finishes"),
        (counts(answer_restarts_after_natural_close=1), "answer_restarts_after_natural_close"),
        (counts(answer_restarts_after_natural_close=1, forced_interventions=N - 1), None),
        (loops([5] * (N + 1)), "periodic_loop_contacts"),
        (loops([5] * N, unresolved_cap_contacts=0), None),
        (loops([5] * N, unresolved_cap_contacts=1), "unresolved_cap_contacts"),
        (counts(unresolved_cap_contacts=9), "unresolved_cap_contacts"),
        (counts(unresolved_cap_contacts=11), "unresolved_cap_contacts"),
        (loops([5] * 20, unresolved_cap_contacts=9, **UNION), "unresolved_cap_contacts"),
        (loops([5] * 20, unresolved_cap_contacts=10, **UNION), None),
        (loops([5] * 20, unresolved_cap_contacts=28, **UNION), None),
        (loops([5] * 20, unresolved_cap_contacts=29, **UNION), "unresolved_cap_contacts"),
        (loops([5], forced_interventions=0, reasoning_boundary_contacts=0), "periodic_loop_contacts"),
        (counts(periodic_loop_contacts=37, unresolved_cap_contacts=11), "period_tokens"),
        (counts(period_tokens=[]), "period_tokens"),
        (loops([0, *[5] * 37]), "period_tokens"),
        (loops([1, *[5] * 37]), None),
        (loops([*[5] * 37, 2048]), None),
        (loops([*[5] * 37, 2049]), "period_tokens"),
    ],
)
def test_counts_that_contradict_one_another(plan: Plan, audit: Document, field: str | None) -> None:
    claimed = Foreign("audit.json", audit)
    if field is None:
        require_consistent(claimed, plan)
        return
    with pytest.raises(DataError, match=rf"^audit\.json: termination\.{field} is .*, expected "):
        require_consistent(claimed, plan)


@pytest.mark.parametrize(
    ("tokens", "fits"),
    [
        (0, False),
        (N * (BUDGET - 1) - 1, False),  # one below the budget is a contact
        (N * (BUDGET - 1), True),
        (N * (BUDGET + 512), True),
        (N * (BUDGET + 512) + 1, False),
        (10**15, False),
    ],
)
def test_sampled_ids_within_the_budget(plan: Plan, tokens: int, fits: bool) -> None:
    audit = counts()
    audit["generation"]["sampled_tokens"] = tokens
    if fits:
        require_consistent(Foreign("audit.json", audit), plan)
        return
    with pytest.raises(DataError, match=r"audit\.json: generation\.sampled_tokens is .*, expected"):
        require_consistent(Foreign("audit.json", audit), plan)


CONCLUSIONS: list[tuple[str, Any]] = [
    ("termination.adequate", True),
    ("termination.adequate", 0),
    ("termination.periodic_loop_rate", 0.25),
    ("termination.unresolved_cap_contact_rate", 0.0),
    ("termination.unresolved_cap_contact_rate", -0.5),
    ("termination.answer_limit_contact_rate", "6/48"),
    ("termination.thresholds.periodic_loop_rate_at_most", 0.9),
    ("capacity_fit.pass", False),
    ("capacity_fit.required_cache_tokens", 963071),
    ("cudagraph_resolution.pass", False),
    ("cudagraph_resolution.active_width_covered", False),
    ("cudagraph_resolution.has_full_cudagraphs", "yes"),
    ("cudagraph_resolution.has_full_cudagraphs", None),
    ("bundle.n_completions", 47),
]


@pytest.mark.parametrize(("field", "value"), CONCLUSIONS)
def test_what_the_authors_conclude_follows(plan: Plan, field: str, value: Any) -> None:
    audit = full()
    *folders, name = field.split(".")
    found = audit
    for folder in folders:
        found = found[folder]
    found[name] = value
    with pytest.raises(DataError, match=rf"^audit\.json: {field} is .*, expected"):
        require_consistent(Foreign("audit.json", audit), plan)


@pytest.mark.parametrize(
    ("live", "sizes", "decode", "full_graphs", "field"),
    [
        (963071, [19], "FULL", True, "capacity_fit.pass"),
        (963072, [16], "FULL", True, "cudagraph_resolution.active_width_covered"),
        (963072, [19], "NONE", True, "cudagraph_resolution.pass"),
        (963072, [19], "FULL", False, "cudagraph_resolution.pass"),
        (963072, [19], "FULL", True, None),
    ],
)
def test_a_pass_that_its_numbers_do_not_give(
    plan: Plan, live: int, sizes: list[int], decode: str, full_graphs: bool, field: str | None
) -> None:
    audit = full()
    audit["capacity_fit"]["live_kv_cache_tokens"] = live
    audit["cudagraph_resolution"] |= {
        "requested_capture_sizes": sizes, "resolved_capture_sizes": sizes, "decode_mode": decode,
        "has_full_cudagraphs": full_graphs,
    }  # fmt: skip
    if field is None:
        require_consistent(Foreign("audit.json", audit), plan)
        return
    with pytest.raises(DataError, match=rf"{field} is 'True', expected False"):
        require_consistent(Foreign("audit.json", audit), plan)


def k_of_three(document: Document) -> None:
    for entry in document["catalog"]["entries"]:
        entry["k"] = 3
    for audit in document["audits"].values():
        audit["bundle"] |= {"k": 3, "n_completions": 36}


def another_budget(document: Document) -> None:
    for part in (document["catalog"]["entries"][1], document["audits"]["61k"]["bundle"]):
        part["thinking_budget"] = 1
    document["selection"]["tiers"][1]["budget"] = 1


IMPORTS: dict[str, tuple[Callable[[Document], Any], str]] = {
    "the second audit": (
        lambda d: d["audits"]["61k"]["termination"].update(samples=47),
        r"audits\.json: 61k\.termination\.samples is '47', expected 48 of 48",
    ),
    "fewer samples than the plan has": (k_of_three, r"49k\.bundle\.n_completions is '36', expected 48"),
    "a budget that is no rung": (another_budget, r"61k\.bundle\.thinking_budget is '1', expected 61440"),
    "another k": (lambda d: d["audits"]["49k"]["bundle"].update(k=5), r"49k\.bundle\.k is '5', expected 4"),
    "no live cache": (
        lambda d: d["audits"]["49k"]["capacity_fit"].update(live_kv_cache_tokens=0),
        r"49k\.capacity_fit\.live_kv_cache_tokens is '0', expected a whole number from 1",
    ),
    "a prompt of no tokens": (
        lambda d: d["prompt_manifest"]["arms"]["base"][3].update(prompt_tokens=0),
        r"prompt_manifest\.json: arms\.base\[3\]\.prompt_tokens is '0', expected a whole number from 1",
    ),
    "graphs that are perhaps full": (
        lambda d: d["audits"]["61k"]["cudagraph_resolution"].update(has_full_cudagraphs=1),
        r"61k\.cudagraph_resolution\.has_full_cudagraphs is '1', expected true or false",
    ),
    "a selection with other counts": (
        lambda d: d["selection"]["tiers"][1]["scientific_probe"].update(termination={"periodic_loop_contacts": 39}),
        r"selection\.json: tiers\[1\]\.scientific_probe\.termination\.periodic_loop_contacts is '39', expected 40",
    ),
    "a selection that passed without an adequate rung": (
        lambda d: d["selection"].update({"pass": True}),
        r"selection\.json: pass is 'True', expected False",
    ),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_an_import_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    change, message = IMPORTS[name]
    published = documents()
    change(published)
    with pytest.raises(DataError, match=message):
        import_run(write(tmp_path / "source", published), tmp_path / "receipts")
    assert not (tmp_path / "receipts").exists() or not list((tmp_path / "receipts").iterdir())
