"""Child seeds, derived from ids so that reordering the input changes nothing, and never shared by two samples."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gatepost.errors import RegistrationError
from gatepost.protocol import Protocol
from gatepost.stages import Stage

SEED_LIMIT = 2**31
"""Seeds lie in [0, 2^31): every engine accepts them, and none of them means "unseeded"."""


def child_seed(base_seed: int, *ids: str | int) -> int:
    """The first 8 bytes of BLAKE2b over the base seed and the ids joined by NUL, big-endian, modulo 2^31.

    Study B derives its trace seeds this way from (task id, sample index), study A its parents from
    (record id, sample index, stage).
    """
    message = "\0".join(str(part) for part in (base_seed, *ids)).encode()
    return int.from_bytes(hashlib.blake2b(message, digest_size=8).digest(), "big") % SEED_LIMIT


class SampleSeeds(NamedTuple):
    """The seeds of one sample: of its first stage, and of the answer after a forced close."""

    first: int
    second: int


def sample_seeds(rule: str, base_seed: int, task_id: str, sample_index: int) -> SampleSeeds:
    """The registered seeds of one sample.

    ``blake2b64`` hashes (task id, sample index). ``blake2b64_two_stage`` is study A's: the first stage hashes (task
    id, -1, stage) once per task and adds the sample index, as an engine that numbers its children does; the second
    hashes (task id, sample index, stage).
    """
    second = child_seed(base_seed, task_id, sample_index, "stage2")
    if rule == "blake2b64_two_stage":
        parent = child_seed(base_seed, task_id, -1, "stage1")
        return SampleSeeds((parent + sample_index) % SEED_LIMIT, second)
    return SampleSeeds(child_seed(base_seed, task_id, sample_index), second)


def require_distinct(seeds: Iterable[tuple[str, int]]) -> None:
    """Refuse a registration in which two samples would share a seed, and so be copies of one another."""
    owner: dict[int, str] = {}
    for name, seed in seeds:
        if seed in owner:
            raise RegistrationError(
                f"base seed: samples {owner[seed]} and {name} derive the same child seed {seed}, "
                "expected all child seeds distinct; choose another base seed"
            )
        owner[seed] = name


def check(protocol: Protocol, task_ids: Mapping[str, Sequence[str]]) -> None:
    """Raise ``RegistrationError`` for stages with one base seed, and for samples of a stage with one child seed.

    Args:
        task_ids: split -> its task ids, in order.
    """
    owner: dict[int, str] = {}
    for stage in protocol.stages:
        if stage.base_seed is None:
            continue
        if stage.base_seed in owner:
            raise RegistrationError(
                f"stage {stage.name}: base_seed {stage.base_seed} is that of stage {owner[stage.base_seed]}, "
                "expected disjoint seeds"
            )
        owner[stage.base_seed] = stage.name
        ids = task_ids[stage.splits[0]][: stage.max_tasks]
        require_distinct(_child_seeds(protocol, stage, stage.base_seed, ids))


def _child_seeds(protocol: Protocol, stage: Stage, base_seed: int, ids: Sequence[str]) -> Iterator[tuple[str, int]]:
    for task_id in ids:
        for index in sorted(set(map(stage.draw, range(stage.samples_per_task)))):
            seeds = sample_seeds(protocol.seed_rule, base_seed, task_id, index)
            yield f"{task_id}/{index}", seeds.first
            if protocol.thinking == "force_close":
                yield f"{task_id}/{index}/stage2", seeds.second
