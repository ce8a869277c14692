"""Check the published tasks, macro libraries and demonstrations of study A with the project's own macro language.

python -m conformance.verified_macro_tasks FOLDER        FOLDER is the experiment's

Not derivable, and so not here: what a published program signature is a digest of (only that signatures tell the same
programs apart as ours do), the support of a macro (counted over programs that were not published; only that libraries
agree on it) and the prompts, which are not ours to copy.
"""

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gatepost import bundled
from gatepost.gatefiles import load_module

domain: Any = load_module(bundled.folder("studies") / "verified_macro" / "domain.py", prefix="gatepost_domain")

Row = tuple[str, Any, Any]
Record = Mapping[str, Any]
DECOY = "DECOY_"
"""How the designed library names the macros that are no motif of any task."""


def check(folder: Path) -> list[Row]:
    """(name, published, recomputed) for everything that the published files let us derive."""
    files = {"tasks": gzip.decompress((folder / "tasks.json.gz").read_bytes())}
    files |= {name: (folder / f"{name}.json").read_bytes() for name in ("libraries", "demonstrations")}
    data = json.loads((folder / "protocol.json").read_bytes())["config"]["data"]
    prompts = json.loads((folder / "prompt_manifest.json").read_bytes())["arms"]
    document = json.loads(files["tasks"])
    tasks, manifest = document["tasks"], document["dataset_manifest"]
    libraries = json.loads(files["libraries"])["libraries"]
    demonstrations = json.loads(files["demonstrations"])["demonstrations"]
    smoke = [task for task in tasks if task["split"].startswith("smoke")]
    full = [task for task in tasks if task not in smoke]

    rows: list[Row] = [(f"{name}.file_sha256", data[f"{name}_sha256"], _sha256(files[name])) for name in files]
    rows += [
        ("tasks.total", manifest["counts"]["tasks"], len(tasks)),
        ("tasks.smoke_tasks", data["smoke_tasks"], len(smoke)),
        ("tasks.content_sha256", manifest["semantic_sha256"]["tasks"], _digest(tasks)),
        ("tasks.smoke_sha256", manifest["v2_smoke_sha256"], _digest(smoke)),
        ("tasks.full_sha256", manifest["v1_full_evaluation_sha256"], _digest(full)),
        *_programs(tasks),
        *_composition(tasks, libraries["designed_ceiling"]["macros"]),
        *_libraries(libraries, manifest["prepared_library_sha256_by_arm"]),
        ("demonstrations.total", manifest["counts"]["demonstrations"], len(demonstrations)),
        ("demonstrations.content_sha256", manifest["semantic_sha256"]["demonstrations"], _digest(demonstrations)),
        ("demonstrations.examples", *_reproduced(demonstrations, "io")),
    ]
    for arm, entries in prompts.items():
        rows.append((f"prompts.{arm}.ids", [entry["id"] for entry in entries], [f"{t['id']}::{arm}" for t in smoke]))
    return rows


def _programs(tasks: Sequence[Record]) -> Iterator[Row]:
    """Programs map inputs to outputs, are as deep as published, and are told apart."""
    for part in domain.PARTS:
        yield f"tasks.{part}_examples", *_reproduced(tasks, part)
    depths = [task["min_depth"] for task in tasks]
    yield "tasks.min_depths", depths, [domain.program_depth(task["program"]) for task in tasks]
    signatures = [task["program_signature"] for task in tasks]
    yield (
        "tasks.same_programs",
        _first_equals(signatures),
        _first_equals([domain.signature(t["program"]) for t in tasks]),
    )


def _composition(tasks: Sequence[Record], designed: Sequence[Record]) -> Iterator[Row]:
    """Motifs are the macros of the designed library that occur in a program; paired tasks share their inputs."""
    motifs = {tuple(m["expansion"]): m["source_name"] for m in designed if not m["source_name"].startswith(DECOY)}
    yield "tasks.motif_names", [t["motif_names"] for t in tasks], [_motifs(t["program"], motifs) for t in tasks]
    by_id = {task["id"]: task for task in tasks}
    paired = [task for task in tasks if task["paired_task_id"]]
    mutual = [(task, by_id[task["paired_task_id"]]) for task in paired]
    shared = sum(left["id"] == right["paired_task_id"] and _inputs(left) == _inputs(right) for left, right in mutual)
    yield "tasks.pairs_of_equal_inputs", len(paired), shared


def _libraries(libraries: Mapping[str, Any], digests: Mapping[str, str]) -> Iterator[Row]:
    for arm, library in libraries.items():
        macros = library["macros"]
        expansions = [macro["expansion"] for macro in macros]
        identity = _digest({"arm": arm, "expansions": expansions})[:16]
        yield f"library.{arm}.content_sha256", digests[arm], _digest(library)
        yield f"library.{arm}.id", library["id"], f"{arm}-{identity}"
        if not macros:
            continue
        lengths = [macro["length"] for macro in macros]
        called = [domain.expand(macro["token"], {macro["token"]: macro["expansion"]}) for macro in macros]
        yield f"library.{arm}.tokens", [macro["token"] for macro in macros], [f"M{n}" for n in range(len(macros))]
        yield f"library.{arm}.lengths", lengths, [len(names or ()) for names in called]
        yield f"library.{arm}.depths", lengths, [domain.program_depth(names) for names in expansions]
    every = [macro for library in libraries.values() for macro in library["macros"]]
    last = {tuple(macro["expansion"]): macro["support"] for macro in every}
    yield "libraries.same_support", [m["support"] for m in every], [last[tuple(m["expansion"])] for m in every]


def _reproduced(records: Sequence[Record], part: str) -> tuple[int, int]:
    """How many examples there are, and how many of them the record's program maps from input to output."""
    pairs = [(record["program"], *pair) for record in records for pair in domain.examples(record, part)]
    return len(pairs), sum(domain.run(program, given) == result for program, given, result in pairs)


def _motifs(program: Sequence[str], motifs: Mapping[tuple[str, ...], str]) -> list[str]:
    """Names of the motifs that occur in a program, from left to right, none overlapping another."""
    found, start = [], 0
    while start < len(program):
        here = next((names for names in motifs if tuple(program[start : start + len(names)]) == names), None)
        found += [motifs[here]] if here else []
        start += len(here) if here else 1
    return found


def _inputs(task: Record) -> list[list[int]]:
    return [pair["input"] for part in domain.PARTS for pair in task[part]]


def _first_equals(values: Sequence[str]) -> list[int]:
    """For each value the place of the first one equal to it: two lists of labels that agree divide alike."""
    return [values.index(value) for value in values]


def _digest(value: Any) -> str:
    return _sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> int:
    rows = check(Path(sys.argv[1]))
    for name, published, recomputed in rows:
        verdict = "equal" if published == recomputed else "DIFFERS"
        print(f"{name:<40} {_short(published):>28} {_short(recomputed):>28}  {verdict}")
    equal = sum(published == recomputed for _, published, recomputed in rows)
    print(f"{equal} of {len(rows)} equal")
    return 0 if equal == len(rows) else 1


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 28 else f"{text[:27]}…"


if __name__ == "__main__":
    sys.exit(main())
