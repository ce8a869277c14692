from dataclasses import replace
from typing import Any

import pytest

from gatepost.evidence import Plan, Record
from gatepost.protocol import BoundFile
from gatepost.verdict import Verdict

from .builders import checks, facts, judge, plan


@pytest.mark.parametrize(
    ("registered", "installed", "outcome"),
    [
        ("2.11.0", "2.11.0", "pass"),
        ("2.11.0", "2.11.0+cpu", "pass"),
        ("2.11.0", "2.11.0+cu129", "pass"),
        ("2.11.0", "2.11", "pass"),
        ("2.11", "2.11.0.0+cpu", "pass"),
        ("1.0rc1", "1.0.0-RC1", "pass"),
        ("2.11.0+cpu", "2.11.0+cpu", "pass"),
        ("2.11.0+cpu", "2.11.0+CPU", "pass"),
        ("2.11.0+cpu", "2.11.0", "fail"),
        ("2.11.0+cpu", "2.11.0+cu129", "fail"),
        ("2.11.0", "2.11.1", "fail"),
        ("2.11.0", "2.11.0rc1", "fail"),
        ("2.11.0", "2.11.0.post1", "fail"),
        ("2.11.0", "2.110", "fail"),
        ("2.11.0", "1!2.11.0", "fail"),
        ("2.11.0", "built at home", "fail"),
        ("2.11.0", "", "fail"),
    ],
)
def test_versions_are_compared_by_meaning(registered: str, installed: str, outcome: str) -> None:
    record = Record(plan(packages={"torch": registered}), facts(versions={"torch": installed}))
    verdict = judge("environment", record)
    assert verdict.outcome == outcome
    spelled = None if registered == installed else f"registered {registered}, installed {installed}"
    assert verdict.checks[0].note == spelled


@pytest.mark.parametrize("name", ["huggingface_hub", "Huggingface.Hub", "huggingface-hub"])
def test_a_package_is_found_under_any_spelling(name: str) -> None:
    record = Record(plan(packages={name: "1.0"}), facts(versions={"huggingface-hub": "1.0"}))
    assert judge("environment", record).outcome == "pass"


def test_a_missing_package_fails_and_packages_nobody_registered_do_not_count() -> None:
    record = Record(plan(packages={"torch": "2.11.0", "vllm": "0.24"}), facts(versions={"torch": "2.11.0", "x": "1"}))
    verdict = judge("environment", record)
    assert verdict.outcome == "fail"
    assert checks(verdict)["vllm"].observed == "missing"
    assert checks(verdict)["torch"].outcome == "pass"


def test_unknown_versions_are_inconclusive() -> None:
    assert judge("environment", Record(plan(packages={"torch": "2.11.0"}))).outcome == "inconclusive"


def test_an_environment_that_nobody_registered_is_not_the_registered_one() -> None:
    assert judge("environment", Record(plan(), facts(versions={"torch": "2.11.0"}))).outcome == "inconclusive"


def locked(packages: dict[str, str], *, role: str = "lock") -> Plan:
    """A plan whose packages come from a bound lock."""
    registered = plan(packages=packages)
    bound = (BoundFile("environment.lock", role, "0" * 64, 1),)
    return replace(registered, protocol=replace(registered.protocol, bound=bound))


@pytest.mark.parametrize(
    ("registered", "installed", "outcome", "k", "beside"),
    [
        ({"torch": "2.11.0"}, {"torch": "2.11.0"}, "pass", 1, "0 installed beside them: none"),
        ({"torch": "2.11.0"}, {"torch": "2.11.0+cu130"}, "pass", 1, "0 installed beside them: none"),
        ({"torch": "2.11.0+cu130"}, {"torch": "2.11.0"}, "fail", 0, "0 installed beside them: none"),
        ({"torch": "2.11.0", "numpy": "2"}, {"torch": "2.11.0", "numpy": "2.0"}, "pass", 2, "0 installed beside"),
        ({"torch": "2.11.0", "numpy": "2"}, {"torch": "2.11.0", "numpy": "2.1"}, "fail", 1, "0 installed beside"),
        ({"torch": "2.11.0", "numpy": "2"}, {"torch": "2.11.0"}, "fail", 1, "0 installed beside them: none"),
        ({"a-b": "1"}, {"A_b": "1", "pytest": "9", "Gate.Post": "0"}, "pass", 1, "2 installed beside them: gate-post,"),
        ({"A.B": "1"}, {"a-b": "1", "b": "1"}, "pass", 1, "1 installed beside them: b"),
    ],
)
def test_under_a_lock_all_are_counted_and_those_beside_it_are_named(
    registered: dict[str, str], installed: dict[str, str], outcome: str, k: int, beside: str
) -> None:
    verdict = judge("environment", Record(locked(registered), facts(versions=installed)))
    assert verdict.outcome == outcome
    assert len(verdict.checks) == len(registered) + 1
    whole = checks(verdict)["registered_packages"]
    assert (whole.k, whole.n) == (k, len(registered))
    assert (whole.note or "").startswith(beside)


def test_under_a_lock_unknown_versions_are_inconclusive() -> None:
    assert judge("environment", Record(locked({"torch": "2.11.0"}))).outcome == "inconclusive"


def test_without_a_lock_nothing_is_counted() -> None:
    """Receipts that were written before there were locks keep their checks."""
    for registered in (plan(packages={"torch": "1"}), locked({"torch": "1"}, role="review")):
        verdict = judge("environment", Record(registered, facts(versions={"torch": "1", "x": "1"})))
        assert [check.name for check in verdict.checks] == ["torch"]


def on(**machine: str) -> Plan:
    """A plan that registers something of the machine, and no package."""
    registered = plan()
    engine = {**registered.protocol.engine, "machine": machine}
    return replace(registered, protocol=replace(registered.protocol, engine=engine))


@pytest.mark.parametrize(
    ("machine", "known", "outcome"),
    [
        ({"device_name": "NVIDIA H200"}, {"device_name": "NVIDIA H200"}, "pass"),
        ({"device_name": "NVIDIA H200"}, {"device_name": "NVIDIA H200 NVL"}, "fail"),
        ({"device_name": "NVIDIA H200"}, {"device_name": "nvidia h200"}, "fail"),
        ({"device_name": "NVIDIA H200"}, {"device_name": ""}, "fail"),
        ({"device_name": "NVIDIA H200"}, {}, "inconclusive"),
        ({"driver": "580.159.04"}, {"cuda_driver": "580.159.04"}, "pass"),
        ({"driver": "580.159.04"}, {"cuda_driver": "580.159.4"}, "fail"),
        ({"driver": "580.159.04"}, {"cuda_driver": "580.159"}, "fail"),
        ({"driver": "580.159"}, {"cuda_driver": "580.159.04"}, "fail"),
        ({"driver": "580.159.04"}, {"cuda_driver": None}, "inconclusive"),
        ({"driver": "580.159.04"}, {"cuda_driver": 580}, "inconclusive"),
        ({"driver": "580.159.04"}, {"driver": "580.159.04"}, "inconclusive"),
        ({"python": "3.12"}, {"python": "3.12.4"}, "pass"),
        ({"python": "3.12"}, {"python": "3.12.0rc1"}, "pass"),
        ({"python": "3.12"}, {"python": "3.13.0"}, "fail"),
        ({"python": "3.12"}, {"python": "3.1.2"}, "fail"),
        ({"python": "3.1"}, {"python": "3.12.0"}, "fail"),
        ({"python": "3.12.1"}, {"python": "3.12.1"}, "pass"),
        ({"python": "3.12.1"}, {"python": "3.12.10"}, "fail"),
        ({"python": "3.12.1"}, {"python": "3.12"}, "fail"),
        ({"python": "3.13.0"}, {"python": "3.13.0rc1"}, "fail"),
        ({"python": "3"}, {"python": "3.12.4"}, "pass"),
        ({"python": "3"}, {"python": "4.0.0"}, "fail"),
        ({"python": "3.12"}, {}, "inconclusive"),
        ({"python": "3.12"}, {"python": ["3", "12"]}, "inconclusive"),
    ],
)
def test_of_the_machine_what_is_registered_is_compared(
    machine: dict[str, str], known: dict[str, Any], outcome: str
) -> None:
    told = facts(
        device_name=known.get("device_name"), environment={name: known[name] for name in known if name != "device_name"}
    )
    verdict = judge("environment", Record(on(**machine), told))
    assert [check.name for check in verdict.checks] == [f"machine.{name}" for name in machine]
    assert verdict.outcome == outcome


def test_of_the_machine_what_nobody_registered_is_not_compared() -> None:
    told = facts(device_name="NVIDIA H200", environment={"cuda_driver": None, "python": "3.12.4"})
    verdict = judge("environment", Record(on(python="3.12"), told))
    assert [(check.name, check.observed, check.note) for check in verdict.checks] == [
        ("machine.python", "3.12", "found 3.12.4")
    ]
    assert judge("environment", Record(on(device_name="a", driver="1.0", python="3"))).outcome == "inconclusive"
    assert [
        str(check.outcome) for check in judge("environment", Record(on(driver="1.0", python="3"), told)).checks
    ] == [
        "inconclusive",
        "pass",
    ]


def judged(changed: Any) -> Verdict:
    """The verdict on the registered packages, with what is said of those that changed while the engine ran."""
    told = facts(versions={"vllm": "0.24.0", "x": "1"}, environment={"versions_changed": changed})
    return judge("environment", Record(plan(packages={"vllm": "0.24.0"}), told))


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"vllm": ["0.24.0", "0.25.1"]}, ["vllm"]),  # case i5, upgraded while running
        ({"vllm": ["0.24.0", None]}, ["vllm"]),
        ({"new": [None, "1"]}, ["new"]),
        ({"x": ["1", "2"]}, ["x"]),  # nobody registered it, and it may have run
        ({"vllm": ["0.24.0", "0.25.1"], "torch": ["2.11.0", "2.12.0"]}, ["torch", "vllm"]),
        ({"vllm": None}, ["vllm"]),
    ],
)
def test_a_package_that_changed_while_the_engine_ran_fails(changed: dict[str, Any], names: list[str]) -> None:
    verdict = judged(changed)
    assert verdict.outcome == "fail"
    check = checks(verdict)["versions_changed"]
    assert (check.outcome, check.observed) == ("fail", names)
    assert check.note == "version when listed, and now: " + ", ".join(f"{name} {changed[name]}" for name in names)


def test_of_packages_that_stayed_as_they_were_nothing_is_said() -> None:
    """Nor where an engine's facts do not tell: those of a foreign run, or of one before this was recorded."""
    untold = judge("environment", Record(plan(packages={"vllm": "0.24.0"}), facts(versions={"vllm": "0.24.0"})))
    for verdict in (judged({}), untold):
        assert [(check.name, check.outcome) for check in verdict.checks] == [("vllm", "pass")]


@pytest.mark.parametrize("changed", [None, [], ["vllm"], "vllm", "", 0, False])
def test_changes_that_cannot_be_read_are_inconclusive(changed: Any) -> None:
    verdict = judged(changed)
    assert (verdict.outcome, checks(verdict)["versions_changed"].outcome) == ("inconclusive", "inconclusive")
