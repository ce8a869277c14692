"""The public form of study A, written anew: its facts and counts as published, over tasks of the project's own.

Nothing is copied from the publication but numbers; digests of files that are not there are made up.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gatepost import bundled
from gatepost.audit.verified_macro import EXPERIMENT, PUBLIC

Document = dict[str, Any]


class Published(NamedTuple):
    """The numbers of one probe."""

    name: str
    budget: int
    width: int
    sizes: list[int]
    live_tokens: int
    periods: list[int]
    answer_limit: int
    sampled: int
    seconds: float


PROBES = (
    Published("49k", 49152, 19, [1, 2, 4, 8, 16, 19], 996864, [5] * 38, 6, 2363163, 4809.081014),
    Published("61k", 61440, 15, [1, 2, 4, 8, 15], 997888, [3, *[5] * 39], 4, 2951995, 7422.885983),
)
LONGEST_PROMPT = 990


def documents(probes: tuple[Published, ...] = PROBES) -> Document:
    """Every document that an import reads, by name; ``audits`` holds both."""
    tasks, library = _tasks()
    return {
        "audits": {probe.name: _audit(probe) for probe in probes},
        "catalog": {
            "experiment_id": EXPERIMENT,
            "entries": [
                {"k": 4, "n_records": 12, "thinking_budget": probe.budget, "files": {"rows": _rows(probe)}}
                for probe in probes
            ],
        },
        "selection": {
            "tiers": [
                {"budget": probe.budget, "scientific_probe": {"artifacts": {"rows": _rows(probe)["sha256"]}}}
                for probe in probes
            ]
        },
        "prompt_manifest": {
            "arms": {
                "base": [
                    {
                        "id": f"{task['id']}::base",
                        "prompt_tokens": LONGEST_PROMPT - index,
                        "rendered_prompt_sha256": _sha256(task["id"]),
                    }
                    for index, task in enumerate(tasks)
                ]
            }
        },
        "libraries": {"libraries": {"designed_ceiling": {"macros": library}}},
        "tasks": {"tasks": [*tasks, {**tasks[0], "id": "eval-000", "split": "reuse"}]},
    }


def write(folder: Path, written: Mapping[str, Any], *, layout: str = "compact") -> Path:
    """Write documents in one of the two layouts."""
    for name, document in written.items():
        data = json.dumps(document).encode()
        if layout == "public" and name == "audits":
            for audit in document:
                _put(
                    folder / f"analysis/scientific_smoke_{audit}_termination_audit.json",
                    json.dumps(document[audit]).encode(),
                )
        elif layout == "public":
            _put(folder / PUBLIC[name], data)
        elif name == "tasks":
            _put(folder / "tasks.json.gz", gzip.compress(data))
        else:
            _put(folder / f"{name}.json", data)
    return folder


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _audit(probe: Published) -> Document:
    loops = len(probe.periods)
    rows = _rows(probe)
    return {
        "experiment_id": EXPERIMENT,
        "bundle": {
            "files": {"rows": {"bytes": rows["bytes"], "sha256": rows["sha256"]}},
            "k": 4,
            "n_completions": 48,
            "n_records": 12,
            "thinking_budget": probe.budget,
        },
        "capacity_fit": {
            "block_size_tokens": 528,
            "live_kv_cache_tokens": probe.live_tokens,
            "max_num_seqs": probe.width,
        },
        "cudagraph_resolution": {
            "decode_mode": "FULL",
            "has_full_cudagraphs": True,
            "requested_capture_sizes": probe.sizes,
            "resolved_capture_sizes": probe.sizes,
        },
        "generation": {"generation_seconds": probe.seconds, "sampled_tokens": probe.sampled},
        "termination": {
            "answer_limit_contacts": probe.answer_limit,
            "answer_restarts_after_natural_close": 0,
            "forced_interventions": 48,
            "period_tokens": sorted(probe.periods),
            "periodic_loop_contacts": loops,
            "reasoning_boundary_contacts": 48,
            "samples": 48,
            "stage1_length_finishes": 48,
            "unresolved_cap_contacts": 48 - loops,
        },
    }


def _rows(probe: Published) -> Document:
    path = f"smoke_budget_probes/think_{probe.budget}/base.jsonl"
    return {"bytes": 30617193, "relative_path": path, "sha256": _sha256(path)}


def _tasks() -> tuple[list[Document], list[Document]]:
    path = bundled.folder("studies") / "verified_macro" / "tasks" / "probe.jsonl"
    own = [json.loads(line) for line in path.read_bytes().splitlines()]
    library = [{"token": token, "expansion": names} for token, names in own[0]["library"].items()]
    kept = ("min_depth", "program", "visible", "hidden", "probe")
    tasks = [
        {
            "id": f"smoke-{index:03}",
            "split": "smoke_reuse" if task["motifs"] else "smoke_no_reuse",
            "motif_names": task["motifs"],
            **{name: task[name] for name in kept},
        }
        for index, task in enumerate(own)
    ]
    return tasks, library


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
