"""Row files with random damage: refused by name, never a crash; where a format has checksums, never other rows."""

import random
from pathlib import Path

import pytest

from gatepost.audit.row_files import write_batches
from gatepost.errors import DataError
from tests.audit.row_tables import SUFFIXES, mixed_rows, read

CHECKSUMMED = (".parquet", ".npz")
TRIES = 150


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Flipped bits, a part cut out, or bytes put in."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        position, kind = chance.randrange(len(changed)), chance.random()
        if kind < 0.7:
            changed[position] ^= 1 << chance.randrange(8)
        elif kind < 0.85:
            del changed[position : position + chance.randrange(1, 50)]
        else:
            changed[position:position] = chance.randbytes(5)
    return bytes(changed)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_random_damage(tmp_path: Path, suffix: str) -> None:
    rows, path, chance = mixed_rows(12), tmp_path / f"damaged{suffix}", random.Random(17)
    write_batches(tmp_path / f"rows{suffix}", [rows.slice(start, 4) for start in (0, 4, 8)])
    good, refused = (tmp_path / f"rows{suffix}").read_bytes(), list[str]()
    for _ in range(TRIES):
        path.write_bytes(damaged(good, chance))
        try:
            found = read(path)
        except DataError as error:
            refused.append(str(error))
        else:
            assert suffix not in CHECKSUMMED or found.to_pylist() == rows.to_pylist()
    assert len(refused) > TRIES / 4
    assert all(message.startswith(str(path)) for message in refused)
