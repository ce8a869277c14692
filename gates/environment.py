"""Is this the registered environment?"""

from gatepost.gate import Check, Checks, Evidence, canonicalize_name, canonicalize_version, gate


@gate(version=1, reads=["engine"], role="validity")
def environment(evidence: Evidence) -> Checks:
    """Every registered package is installed in the registered version, as PEP 440 understands ``==``.

    Spelling and trailing zeros do not count. The local part (``+cpu``) counts only if it was registered: it tells
    builds of one release apart, which a study may or may not care for.
    """
    registered = evidence.plan.protocol.engine["packages"]
    facts = evidence.engine
    installed = {} if facts is None else {canonicalize_name(name): version for name, version in facts.versions.items()}
    for package, version in sorted(registered.items()):
        found = installed.get(canonicalize_name(package))
        if found is None:
            yield Check(package, None if facts is None else "missing", "==", canonicalize_version(version))
            continue
        compared = found if "+" in version else found.partition("+")[0]
        note = None if found == version else f"registered {version}, installed {found}"
        yield Check(package, canonicalize_version(compared), "==", canonicalize_version(version), note=note)
