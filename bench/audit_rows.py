"""Rows for ``bench/test_audit_command.py``, and the baseline that reads them: JSON lines, ``json``, the naive detector.

python bench/audit_rows.py rows FILE COUNT TOKENS    write rows, batch by batch, in the format of the suffix
python bench/audit_rows.py naive FILE                audit JSON lines by the naive detector, as a whole program
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

BATCH = 32


def naive(path: str) -> None:
    """Print the verdict of every row, as the command's JSON has it."""
    from naive import find_loop

    verdicts = []
    with open(path) as lines:  # noqa: PTH123  # as one writes it
        for line in lines:
            row = json.loads(line)
            verdicts.append(find_loop(row["token_ids"], tail=8192, max_period=2048, min_match=0.99))
    print(json.dumps(verdicts))


def write(path: Path, count: int, tokens: int) -> None:
    """Write study A's mix again and again: loops of the published periods, half of them noisy, and ten texts."""
    from gatepost.audit import write_batches

    write_batches(path, _batches(count, tokens))


def _batches(count: int, tokens: int) -> Iterator[object]:
    import numpy as np
    import pyarrow as pa

    from bench.test_audit import NOISE
    from gatepost.audit.row_model import MODEL, id_column
    from tests.audit.traces import PUBLISHED_PERIODS, REGISTERED, loop, text

    rng = np.random.default_rng(5)
    kinds = [*PUBLISHED_PERIODS, *[None] * 10]
    longest_start = tokens - REGISTERED.tail_tokens
    traces = []
    for number in range(2 * len(kinds)):  # more would only be drawn for longer: each is moved up the vocabulary below
        period, before = kinds[number % len(kinds)], int(rng.integers(0, longest_start + 1))
        if period is None:
            traces.append(text(rng, tokens, exponent=1.3))
        else:
            traces.append(loop(rng, tokens, period=period, before=before, changed=NOISE * (number % 2)))
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        ids = [traces[number % len(traces)] + np.int32(number // len(traces)) for number in numbers]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([f"task-{number // 3}" for number in numbers], pa.string()),
                pa.array([number % 3 for number in numbers], pa.int32()),
                id_column(np.arange(len(ids) + 1) * tokens, np.concatenate(ids)),
                pa.nulls(len(ids), pa.int32()),
                pa.array(["length"] * len(ids), pa.string()),
            ],
            schema=MODEL,
        )


if __name__ == "__main__":
    if sys.argv[1] == "naive":
        naive(sys.argv[2])
    else:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
