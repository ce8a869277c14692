"""What an audit comes down to: one fold over its results, the same whoever made them and in whatever batches."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from gatepost.periodicity import STUDY_A, LoopRule

SHOWN_LOOPS = 20


class Summary:
    """Counts over all rows, and the first rows that loop.

    Attributes:
        rows, tokens: audited.
        loops: rows that end in a loop by the rule.
        wasted_tokens: ids in them after the first copy.
        by_finish_reason: loops by what their rows say of how they ended.
        first: (file, result) of the first rows that loop.
    """

    def __init__(self, rule: LoopRule, *, max_loop_share: float | None = None) -> None:
        self.rule, self.max_loop_share = rule, max_loop_share
        self.files = self.rows = self.tokens = self.loops = self.wasted_tokens = 0
        self.by_finish_reason: Counter[str] = Counter()
        self.first: list[tuple[Path, Mapping[str, Any]]] = []

    @property
    def loop_share(self) -> float | None:
        """Of the rows; ``None`` of no rows."""
        return self.loops / self.rows if self.rows else None

    @property
    def within_limit(self) -> bool | None:
        """Whether the share is at most the one allowed; ``None`` where none was set. No rows are within no limit."""
        if self.max_loop_share is None:
            return None
        return self.loop_share is not None and self.loop_share <= self.max_loop_share

    def add(self, path: Path, row: Mapping[str, Any]) -> None:
        """Count a row of ``gatepost.audit.RESULTS``, as plain values by column."""
        self.rows += 1
        self.tokens += row["tokens"]
        if row["period"] is None:
            return
        self.loops += 1
        self.wasted_tokens += row["wasted_tokens"] or 0
        self.by_finish_reason[row["finish_reason"] or "unknown"] += 1
        if len(self.first) < SHOWN_LOOPS:
            self.first.append((path, row))

    def to_json(self) -> dict[str, Any]:
        """The counts, without rows."""
        return {
            "files": self.files,
            "rows": self.rows,
            "tokens": self.tokens,
            "loops": self.loops,
            "loop_share": self.loop_share,
            "loops_by_finish_reason": dict(sorted(self.by_finish_reason.items())),
            "wasted_tokens": self.wasted_tokens,
            "max_loop_share": self.max_loop_share,
            "within_limit": self.within_limit,
        }

    def lines(self) -> Iterator[str]:
        """The same for people, with the first rows that loop."""
        yield f"rule: {rule_text(self.rule)}"
        yield f"read: {self.files} file{'s' * (self.files != 1)}, {self.rows} rows, {self.tokens} ids"
        share = "" if self.loop_share is None else f" ({self.loop_share:.4f})"
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.by_finish_reason.items()))
        ended = f"; they ended by: {reasons}" if reasons else ""
        yield f"loops: {self.loops} of {self.rows} rows{share}, {self.wasted_tokens} ids only repeat{ended}"
        for path, row in self.first:
            yield f"  {path}: {row['task_id']}/{row['sample_index']}: {loop_text(row)}"
        if self.loops > len(self.first):
            yield f"  and {self.loops - len(self.first)} more: --json tells each"
        if self.max_loop_share is not None:
            yield f"loop_share {self.loop_share} <= {self.max_loop_share}: {'yes' if self.within_limit else 'no'}"


def loop_text(row: Mapping[str, Any]) -> str:
    """The loop of a row of results: a certificate that anyone can check again."""
    smallest = row["smallest_period"]
    multiple = f" (smallest {smallest})" if smallest != row["period"] else ""
    where = "" if row["loop_start"] is None else f", ids {row['loop_start']} to {row['loop_end']}"
    cost = "" if row["wasted_tokens"] is None else f", {row['wasted_tokens']} only repeat"
    return f"period {row['period']}{multiple} at {row['match_rate']:.4f}{where}{cost}"


def rule_text(rule: LoopRule) -> str:
    """The rule, and whose it is. An answer "no loop" says nothing beyond these limits."""
    owner = " (study A's, as registered)" if rule == STUDY_A else ""
    return (
        f"the last {rule.tail_tokens} ids, periods up to {rule.max_period_tokens}, "
        f"at least {rule.min_match_rate} match{owner}"
    )


def write_json(sink: IO[bytes], results: Iterable[tuple[Path, Iterable[pa.RecordBatch]]], summary: Summary) -> None:
    """Write an audit as one JSON document, a line per row, while ``summary`` counts: its bytes depend on the rows and
    their order alone.

    Args:
        results: per file its results (``gatepost.audit.RESULTS``), in the order of its rows.
    """
    sink.write(f'{{"rule": {json.dumps(summary.rule._asdict())},\n"files": ['.encode())
    for path, batches in results:
        sink.write(f'{"," * (summary.files > 0)}\n{{"path": {json.dumps(str(path))}, "rows": ['.encode())
        summary.files += 1
        before = ""
        for batch in batches:
            for row in batch.to_pylist():
                summary.add(path, row)
                sink.write(f"{before}\n{json.dumps(row, allow_nan=False)}".encode())
                before = ","
        sink.write(b"]}")
    sink.write(f'],\n"summary": {json.dumps(summary.to_json(), allow_nan=False)}}}\n'.encode())


def count(results: Iterable[tuple[Path, Iterable[pa.RecordBatch]]], summary: Summary) -> None:
    """The same without a document."""
    for path, batches in results:
        summary.files += 1
        for batch in batches:
            for row in batch.to_pylist():
                summary.add(path, row)
