"""The audit as tables: record batches of rows in, record batches of what the audit says of each row out.

``audit_batch`` is the whole audit of one batch, a pure function that can be sent to another process. All else here is a
fold around it, so that one machine and many give the same numbers.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from gatepost.audit.loops import audit_trace
from gatepost.audit.row_files import Format, read_batches
from gatepost.audit.row_model import BATCH_ROWS, MODEL, as_numpy, flat, token_count
from gatepost.errors import DataError
from gatepost.periodicity import STUDY_A, LoopRule

RESULTS = pa.schema(
    [
        MODEL.field("task_id"),
        MODEL.field("sample_index"),
        MODEL.field("finish_reason"),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("period", pa.int32()),
        pa.field("smallest_period", pa.int32()),
        pa.field("match_rate", pa.float64()),
        pa.field("nearest_period", pa.int32()),
        pa.field("nearest_match_rate", pa.float64()),
        pa.field("loop_start", pa.int32()),
        pa.field("loop_end", pa.int32()),
        pa.field("wasted_tokens", pa.int32()),
        pa.field("unique_ratio", pa.float64()),
        pa.field("max_trigram_count", pa.int32(), nullable=False),
    ]
)
"""What is said of a row: which sample it is, and the fields of ``gatepost.audit.loops.TraceAudit``."""

_KEY = ("task_id", "sample_index", "finish_reason")
TABLE = pa.schema([pa.field("file", pa.string(), nullable=False), *RESULTS])

ROWS_FILE = "rows.parquet"

Progress = Callable[[Path, float, int, int], None]
"""Called with a file, the share of it that is audited, and the rows and ids that were audited since the last call."""


def audit_batch(
    batch: pa.RecordBatch, rule: LoopRule = STUDY_A, *, nearest: bool = False, compiled: bool | None = False
) -> pa.RecordBatch:
    """Audit rows of the model ``gatepost.audit.row_model.MODEL``; one row out (``RESULTS``) for each row in, in order.

    Args:
        nearest: look for the nearest period too where none holds.
        compiled: by the compiled extra, which gives the same answers; loading it takes longer than some thousand rows
            without it, and more memory than all else. ``None`` takes it where it is installed.
    """
    offsets, ids = flat(batch.column("token_ids"))
    every_id, found = as_numpy(ids), []
    thinking = batch.column("thinking_tokens").to_pylist()
    for (start, end), thinking_tokens in zip(pairwise(offsets.tolist()), thinking, strict=True):
        trace = every_id[start : end if thinking_tokens is None else start + thinking_tokens]
        found.append(audit_trace(trace, rule, compiled, nearest=nearest)._asdict())
    columns = [batch.column(name) for name in _KEY]
    columns += [pa.array([row[name] for row in found], RESULTS.field(name).type) for name in RESULTS.names[len(_KEY) :]]
    return pa.RecordBatch.from_arrays(columns, schema=RESULTS)


def audit_file(
    path: Path,
    rule: LoopRule = STUDY_A,
    *,
    format: Format | None = None,
    nearest: bool = False,
    compiled: bool | None = False,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Audit a file in batches. Raises ``DataError`` where its rows cannot be read, or a sample is there twice."""
    seen = SeenKeys(path)
    for batch in read_batches(path, format=format, batch_rows=batch_rows):
        seen.add(batch.rows)
        yield audit_batch(batch.rows, rule, nearest=nearest, compiled=compiled)
        if progress is not None:
            progress(path, batch.done, batch.rows.num_rows, token_count(batch.rows))
    seen.refuse_repeated()


def audit_each(
    files: Sequence[Path],
    rule: LoopRule = STUDY_A,
    *,
    ray: str | None = None,
    format: Format | None = None,
    nearest: bool = False,
    compiled: bool | None = False,
    progress: Progress | None = None,
) -> Generator[tuple[Path, Iterator[pa.RecordBatch]], None, None]:
    """Audit files one after the other: each with its results, to be taken before the next file.

    Args:
        ray: the address of a Ray cluster that does it, see ``gatepost.audit.on_ray.audit_files``; the answers are the
            same.

    Raises as ``audit_file``, and for a cluster as ``audit_files``.
    """
    if ray is not None:
        from gatepost.audit.on_ray import audit_files

        one = partial(audit_batch, rule=rule, nearest=nearest, compiled=compiled)
        yield from audit_files(files, one, address=ray, format=format, progress=progress)
        return
    for path in files:
        found = audit_file(path, rule, format=format, nearest=nearest, compiled=compiled, progress=progress)
        yield path, found


def audit(
    paths: Path | str | Iterable[Path | str],
    rule: LoopRule = STUDY_A,
    *,
    format: Format | None = None,
    nearest: bool = False,
    compiled: bool | None = False,
    evidence: Path | None = None,
    ray: str | None = None,
) -> pa.Table:
    """Audit row files and archives; one row per sample, in the order of the files, ``file`` before the columns of
    ``RESULTS``. ``.to_pandas()`` makes a data frame of it.

    Args:
        paths: Parquet, Arrow IPC, npz or JSON lines, or an archive, or a folder of archives.
        rule: the loop detector; study A's if it is not said.
        format: what the files have to be; by their first bytes where it is not said.
        nearest, compiled: see ``audit_batch``.
        evidence: folder of large evidence that was moved out of archives.
        ray: see ``audit_each``.

    Raises ``DataError`` naming file, row, what was found and what was expected.
    """
    listed = [paths] if isinstance(paths, Path | str) else paths
    batches = []
    files = input_files(map(Path, listed), evidence=evidence)
    for path, results in audit_each(files, rule, ray=ray, format=format, nearest=nearest, compiled=compiled):
        for found in results:
            names = pa.array([str(path)] * found.num_rows, pa.string())
            batches.append(pa.RecordBatch.from_arrays([names, *found.columns], schema=TABLE))
    return pa.Table.from_batches(batches, schema=TABLE)


def input_files(paths: Iterable[Path], *, evidence: Path | None = None) -> list[Path]:
    """The row files behind paths: a file is one; an archive has one per finished step that has rows, in ladder order.

    Raises ``DataError`` for a folder that holds no archive, or none with rows, for rows that lie elsewhere and not
    in the folder ``evidence``, and for a file that comes twice.
    """
    files: list[Path] = []
    for path in paths:
        files += _files_of_folder(path, evidence) if path.is_dir() else [path]
    if not files:
        raise DataError("no files to audit")
    path, times = Counter(files).most_common(1)[0]
    if times > 1:
        raise DataError(f"{path}: is named {times} times, expected once")
    return files


def _files_of_folder(folder: Path, evidence: Path | None) -> list[Path]:
    from gatepost.archive import Archive, find_archives
    from gatepost.elsewhere import locate

    found: list[Path] = []
    for root in find_archives(folder):
        archive = Archive(root, evidence=evidence)
        for step in archive.finished_steps():
            located = locate(archive, archive.step_folder(step), [ROWS_FILE])
            for absent in located.away.values():
                raise DataError(f"{root}: {absent}")
            found += located.here.values()
    if not found:
        raise DataError(f"{folder}: holds no step with rows")
    return found


class SeenKeys:
    """Which samples a file held so far: 16 bytes a sample, so that a million of them fit beside the rows."""

    def __init__(self, path: Path) -> None:
        self._path, self._digests = path, bytearray()

    def add(self, rows: pa.RecordBatch) -> None:
        """Note the samples of rows that have the columns ``task_id`` and ``sample_index``."""
        for key in zip(*(rows.column(name).to_pylist() for name in ("task_id", "sample_index")), strict=True):
            self._digests += blake2b(repr(key).encode(), digest_size=16).digest()

    def refuse_repeated(self) -> None:
        """Raise ``DataError`` if a sample came twice, naming both rows: a share of rows would count it twice."""
        digests = np.frombuffer(self._digests, dtype=np.dtype("V16"))
        order = np.argsort(np.frombuffer(self._digests, dtype="<u8")[::2], kind="stable")
        again = np.flatnonzero(digests[order][1:] == digests[order][:-1])
        if len(again):
            rows = sorted(int(row) for row in order[again[0] : again[0] + 2])
            raise DataError(f"{self._path}: row {rows[1]} is of the same task and sample as row {rows[0]}")
