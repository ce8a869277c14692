"""How much of a trace is said again: distinct ids, and the commonest n-gram."""

import numpy as np
from numpy.typing import NDArray

from gatepost.audit.onset import Ids

CODE_BITS = 63


def tail_unique_ratio(ids: Ids, tail_tokens: int) -> float | None:
    """Distinct ids over all ids of the last ``tail_tokens``, of all if there are fewer; ``None`` for no ids."""
    tail = ids[max(len(ids) - tail_tokens, 0) :]
    return len(_ends_of_runs(np.sort(tail))) / len(tail) if len(tail) else None


def max_ngram_count(ids: Ids, n: int = 3) -> int:
    """How often the commonest n-gram of ids occurs, 0 without any: what ``gatepost.periodicity`` says, n from 1 on."""
    if n < 1:
        raise ValueError(f"n is {n}, expected 1 or more")
    count = len(ids) - n + 1
    if count < 1:
        return 0
    codes, size = ids.astype(np.int64), int(ids.max()) + 1
    if ids.min() < 0:
        codes, size = _ranks(codes)
    letters, letter_size = codes, size
    codes = codes[:count]
    for offset in range(1, n):
        if (size * letter_size).bit_length() > CODE_BITS:
            codes, size = _ranks(codes)
        codes, size = codes * letter_size + letters[offset : offset + count], size * letter_size
    return int(np.diff(_ends_of_runs(np.sort(codes)), prepend=0).max())


def _ranks(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The same codes numbered from 0 by size, and how many there are."""
    distinct, ranks = np.unique(codes, return_inverse=True)
    return ranks.astype(np.int64), len(distinct)


def _ends_of_runs(ordered: NDArray[np.signedinteger]) -> NDArray[np.int64]:
    """Index behind each run of equal values."""
    return np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered))
