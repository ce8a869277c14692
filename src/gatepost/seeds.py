"""Child seeds, derived from ids so that reordering the input changes nothing."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from gatepost.errors import RegistrationError

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
