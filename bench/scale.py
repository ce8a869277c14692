"""What a million long samples take, by arithmetic from what is measured here: ``python -m bench.scale``.

Bytes and seconds an id are measured on Parquet files of some samples of that length, of text alone and of study A's
mix; no id comes twice in another sample of a file, so that no file packs better than a long one would.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from bench.test_audit import NOISE
from bench.test_audit_command import cost
from bench.turns import machine
from gatepost.audit import write_batches
from tests.audit.row_tables import rows_of
from tests.audit.traces import PUBLISHED_PERIODS, loop, text

SAMPLES = 10**6
ROUNDS = 3


def texts(count: int, tokens: int) -> Iterator[pa.RecordBatch]:
    rng = np.random.default_rng(3)
    for first in range(0, count, 6):
        yield _keyed(first, [text(rng, tokens, exponent=1.3) for _ in range(6)])


def mix(count: int, tokens: int) -> Iterator[pa.RecordBatch]:
    """Loops of the published periods, which begin anywhere before the tail, half of them noisy; and ten texts in 48."""
    rng, kinds = np.random.default_rng(4), [*PUBLISHED_PERIODS, *[None] * 10]
    for first in range(0, count, 6):
        traces = []
        for number in range(first, first + 6):
            period, before = kinds[number * 5 % len(kinds)], int(rng.integers(0, tokens - 8192))
            noise = NOISE * (number % 2)
            traces.append(
                text(rng, tokens, exponent=1.3)
                if period is None
                else loop(rng, tokens, period=period, before=before, changed=noise)
            )
        yield _keyed(first, traces)


def _keyed(first: int, traces: list[np.ndarray]) -> pa.RecordBatch:
    rows = rows_of(traces)
    keys = pa.array([f"task-{first + number}" for number in range(len(traces))], pa.string())
    return rows.set_column(0, rows.schema.field(0), keys)


def main() -> None:
    """Print a table, a line a kind of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=60_000)
    parser.add_argument("--count", type=int, default=480)
    options = parser.parse_args()
    print(f"{machine()}; {options.count} samples of {options.tokens} ids; a core's seconds, median of {ROUNDS}")
    ids, every_id = options.count * options.tokens, SAMPLES * options.tokens
    with tempfile.TemporaryDirectory() as folder:
        start = min(_seconds(Path(folder), "start", _keyed(0, [np.arange(9, dtype=np.int32)])))
        for kind, batches in (("texts", texts), ("mix", mix)):
            seconds = _seconds(Path(folder), kind, *batches(options.count, options.tokens))
            size = (Path(folder) / f"{kind}.parquet").stat().st_size
            rate = ids / (median(seconds) - start)
            print(
                f"{kind}: {size / ids:.2f} bytes an id, {rate / 1e6:.1f} million ids a second and core "
                f"({median(seconds) - start:.2f} s beside {start:.2f} s of start; rounds {min(seconds):.2f} to "
                f"{max(seconds):.2f} s)\n  a million: {4 * every_id / 1e9:.0f} GB of raw ids, "
                f"{size / ids * every_id / 1e9:.0f} GB of Parquet, {every_id / rate / 3600:.2f} hours of a core, "
                f"read at {size / ids * rate / 1e6:.0f} MB/s a core"
            )


def _seconds(folder: Path, kind: str, *batches: pa.RecordBatch) -> list[float]:
    path = folder / f"{kind}.parquet"
    write_batches(path, batches)
    return [cost(path)[0] for _ in range(ROUNDS)]


if __name__ == "__main__":
    sys.exit(main())
