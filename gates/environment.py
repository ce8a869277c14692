"""Is this the registered environment?"""

from gatepost.gate import (
    JSON,
    UNKNOWN_FACTS,
    Check,
    Checks,
    Evidence,
    Outcome,
    canonicalize_name,
    canonicalize_version,
    gate,
    share,
)


@gate(version=1, reads=["engine"], role="validity")
def environment(evidence: Evidence) -> Checks:
    """Every registered package is installed in the registered version, as PEP 440 understands ``==``.

    Spelling and trailing zeros do not count. The local part (``+cpu``) counts only if it was registered: it tells
    builds of one release apart, which a study may or may not care for. Under a lock, packages that are installed
    beside it are counted and named but are no fault: gatepost is one itself. Of the machine, what was registered is
    compared as text: the device's name, the version of its driver, and that of Python as far as it was registered.
    A package that was another version when the receipt was written is a fault, registered or not: what is installed
    then is not the code that ran.
    """
    protocol, facts = evidence.plan.protocol, evidence.engine
    registered = protocol.engine["packages"]
    installed = {} if facts is None else {canonicalize_name(name): version for name, version in facts.versions.items()}
    checks = []
    for package, version in sorted(registered.items()):
        found = installed.get(canonicalize_name(package))
        if found is None:
            checks.append(Check(package, None if facts is None else "missing", "==", canonicalize_version(version)))
            continue
        compared = found if "+" in version else found.partition("+")[0]
        note = None if found == version else f"registered {version}, installed {found}"
        checks.append(Check(package, canonicalize_version(compared), "==", canonicalize_version(version), note=note))
    yield from checks
    if facts is not None and protocol.locks:
        held = sum(check.outcome is Outcome.PASS for check in checks)
        beside = sorted(installed.keys() - set(map(canonicalize_name, registered)))
        note = f"{len(beside)} installed beside them: {', '.join(beside) or 'none'}"
        yield share("registered_packages", held, len(checks), "==", 1.0, note=note)
    yield from _machine(evidence)
    yield from _unchanged((facts or UNKNOWN_FACTS).environment.get("versions_changed", {}))


def _unchanged(changed: JSON) -> Checks:
    """Package -> versions before and after; a check only where there are any, or where that is not on record."""
    if not isinstance(changed, dict):
        yield Check("versions_changed", None, "==", [], note=f"found {changed!r}, expected packages")
    elif changed:
        note = "version when listed, and now: " + ", ".join(f"{name} {changed[name]}" for name in sorted(changed))
        yield Check("versions_changed", sorted(changed), "==", [], note=note)


def _machine(evidence: Evidence) -> Checks:
    """What was registered of device, driver and Python; ``3.12`` is any 3.12.x."""
    facts = evidence.engine or UNKNOWN_FACTS
    told = {
        "device_name": facts.device_name,
        "driver": facts.environment.get("cuda_driver"),
        "python": facts.environment.get("python"),
    }
    for name, expected in sorted(evidence.plan.protocol.engine.get("machine", {}).items()):
        found = told[name] if isinstance(told[name], str) else None
        compared = found
        if name == "python" and found is not None:
            compared = ".".join(found.split(".")[: len(expected.split("."))])
        note = None if found in (None, compared) else f"found {found}"
        yield Check(f"machine.{name}", compared, "==", expected, note=note)
