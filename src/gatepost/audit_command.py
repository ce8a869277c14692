"""``gatepost audit``: loops in rows of token ids, without a look at what they say."""

import argparse
import sys
import time
from contextlib import closing, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from gatepost.arguments import add_evidence
from gatepost.errors import GatepostError
from gatepost.periodicity import STUDY_A, LoopRule

REWRITE_SECONDS = 0.2
LINE_SECONDS = 30.0
FORMATS = ("parquet", "arrow", "npz", "jsonl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "rows",
        type=Path,
        nargs="+",
        metavar="ROWS",
        help="Parquet, Arrow IPC, npz or JSON lines; or an archive, or a folder of archives",
    )
    for option, value, of in (
        ("--tail-tokens", _natural, "the last ids, which are searched"),
        ("--max-period-tokens", _natural, "the longest period"),
        ("--min-match-rate", _rate, "how many have to match"),
    ):
        default = getattr(STUDY_A, option[2:].replace("-", "_"))
        text = f"of the loop detector: {of} (default: study A's, {default})"
        parser.add_argument(option, type=value, default=default, metavar="R" if value is _rate else "N", help=text)
    parser.add_argument("--compiled", action="store_true", help="use the compiled extra: it pays on thousands of rows")
    parser.add_argument("--nearest", action="store_true", help="name the nearest period too where none holds; slower")
    parser.add_argument(
        "--max-loop-share", type=_rate, metavar="R", help="exit with 1 if more than this share of the rows loops"
    )
    parser.add_argument("--format", choices=("auto", *FORMATS), default="auto", help="default: by the first bytes")
    add_evidence(parser)
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="on a Ray cluster: auto, HOST:PORT, ray://HOST:PORT; or local, one of this machine's cores for this audit",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print what is found of every row, as JSON")
    output.add_argument("-o", "--output", type=Path, metavar="FILE", help="write that JSON to a new file")


def run(options: argparse.Namespace) -> int:
    """Audit. Returns 0, or 1 where more rows loop than ``--max-loop-share`` allows."""
    from gatepost.audit import audit_each, input_files  # says what to install where numpy is missing
    from gatepost.audit.row_files import new_file
    from gatepost.audit.summary import Summary, count, write_json

    rule = LoopRule(options.tail_tokens, options.max_period_tokens, options.min_match_rate)
    if rule.max_period_tokens >= rule.tail_tokens:
        raise GatepostError(
            f"--max-period-tokens is {rule.max_period_tokens}, expected less than the tail of {rule.tail_tokens}"
        )
    files = input_files(options.rows, evidence=options.evidence)
    summary = Summary(rule, max_loop_share=options.max_loop_share)
    out = sys.stdout
    # Ray prints there that a worker died: that belongs to progress, not into a document.
    aside = redirect_stdout(sys.stderr) if options.ray is not None else nullcontext()
    each = partial(
        audit_each,
        ray=options.ray,
        format=None if options.format == "auto" else options.format,
        nearest=options.nearest,
        compiled=options.compiled,
    )
    with aside, Progress(files, sys.stderr) as progress, closing(each(files, rule, progress=progress)) as results:
        if options.json:
            import shutil
            import tempfile

            with tempfile.TemporaryFile() as whole:  # so that half a document is never printed
                write_json(whole, results, summary)
                whole.seek(0)
                shutil.copyfileobj(whole, out.buffer)
        elif options.output is not None:
            with new_file(options.output) as sink:
                write_json(sink, results, summary)
        else:
            count(results, summary)
    if not options.json:
        print("\n".join(summary.lines()))
    return 1 if summary.within_limit is False else 0


class Progress:
    """How far the audit is: one line that is rewritten on a terminal, else a line now and then."""

    def __init__(self, files: list[Path], stream: TextIO) -> None:
        self._stream, self._live = stream, stream.isatty()
        self._sizes = {path: path.stat().st_size for path in files if path.is_file()}
        self._done_bytes, self._rows, self._ids = dict.fromkeys(files, 0.0), 0, 0
        self._written_at = self._started_at = time.monotonic()

    def __call__(self, path: Path, share: float, rows: int, ids: int) -> None:
        """Count rows and ids of a file, of which now so much is audited."""
        self._rows, self._ids = self._rows + rows, self._ids + ids
        self._done_bytes[path] = share * self._sizes[path]
        now = time.monotonic()
        if now - self._written_at >= (REWRITE_SECONDS if self._live else LINE_SECONDS):
            self._written_at = now
            done = sum(self._done_bytes.values()) / max(sum(self._sizes.values()), 1)
            rate = self._rows / (now - self._started_at)
            line = f"audit: {100 * done:.0f} %, {self._rows} rows, {self._ids} ids, {rate:.0f} rows/s"
            self._stream.write(f"\r\x1b[K{line}" if self._live else f"{line}\n")
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live and self._written_at != self._started_at:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _natural(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a whole number from 1 on")
    return value


def _rate(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not in [0, 1]")
    return value
