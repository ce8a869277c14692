"""Compare gatepost with published evidence: a table published / recomputed / equal; exit 0 only if all are equal.

python -m conformance FOLDER        FOLDER holds published.json and one folder per experiment
"""

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

from conformance import native_seam, verified_macro_tasks
from gatepost.audit.native_seam import import_run
from gatepost.gatefiles import Gates
from gatepost.replay import replay
from gatepost.report import replay_text

FLOATING_NOISE = 1e-15
"""Below this a published number is rounding noise around zero (Wilson at 0 of 48 was printed as 6.4e-18)."""


def main() -> int:
    folder = Path(sys.argv[1])
    items = json.loads((folder / "published.json").read_bytes())["items"]
    source = folder / native_seam.FOLDER
    with tempfile.TemporaryDirectory() as scratch:
        archive = import_run(source, Path(scratch))
        result = replay(archive.root, gates=Gates(), studies=[])
        print(replay_text(result))
        derived = native_seam.derive(source, archive, result)
        beside = list(native_seam.facts_beside(source, archive))
    derived |= {name: recomputed for name, _, recomputed in beside}
    rows = [
        (item["name"], item["published"], derived.get(item["name"], "no derivation"), item["status"])
        for item in items
        if item["experiment"] == native_seam.EXPERIMENT
    ]
    published = {row[0] for row in rows}
    rows += [(name, expected, recomputed, "match") for name, expected, recomputed in beside if name not in published]
    macro = folder / "verified_macro_exact_cudagraph_rerun"
    rows += [(name, expected, recomputed, "match") for name, expected, recomputed in verified_macro_tasks.check(macro)]
    failures = [name for name, *row in rows if not _print_row(name, *row)]
    if not result.faithful:
        failures.append("replay")
    for note in native_seam.described(source):
        print(note)
    derivable = sum(row[3] == "match" for row in rows)
    print(f"{derivable - len(failures)} of {derivable} derivable numbers equal; {len(rows) - derivable} not derivable")
    return 1 if failures else 0


def _print_row(name: str, expected: Any, recomputed: Any, status: str) -> bool:
    if status == "not_derivable":
        print(f"{name:<60} {_short(expected):>24} {'not derivable':>24}  -")
        return True
    equal = _equal(expected, recomputed)
    print(f"{name:<60} {_short(expected):>24} {_short(recomputed):>24}  {'equal' if equal else 'DIFFERS'}")
    return equal


def _equal(expected: Any, recomputed: Any) -> bool:
    if isinstance(expected, float) and isinstance(recomputed, (int, float)):
        return math.isclose(expected, recomputed, rel_tol=1e-9, abs_tol=FLOATING_NOISE)
    return type(expected) is type(recomputed) and bool(expected == recomputed)


def _short(value: Any) -> str:
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"


if __name__ == "__main__":
    sys.exit(main())
