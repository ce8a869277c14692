"""Child seeds, derived from ids so that reordering the input changes nothing."""

import hashlib
from collections.abc import Iterable

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
