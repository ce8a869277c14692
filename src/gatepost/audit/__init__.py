"""Token rows on disk: readers, writers, importers, and the audit of rows that is blind to what was said.

For notebooks::

    from gatepost.audit import LoopRule, audit

    table = audit(["samples.parquet", "receipts/my-study"], LoopRule(8192, 2048, 0.99))  # a pyarrow.Table
"""

from importlib import import_module
from typing import TYPE_CHECKING

from gatepost.errors import MissingExtraError

if TYPE_CHECKING:
    from gatepost.audit.loops import TraceAudit, audit_trace
    from gatepost.audit.row_files import read_batches, write_batches
    from gatepost.audit.row_model import MODEL
    from gatepost.audit.tables import RESULTS, audit, audit_batch, audit_each, audit_file, input_files
    from gatepost.periodicity import STUDY_A, LoopRule

_PLACES = {
    "audit.loops": ("TraceAudit", "audit_trace"),
    "audit.row_files": ("read_batches", "write_batches"),
    "audit.row_model": ("MODEL",),
    "audit.tables": ("RESULTS", "audit", "audit_batch", "audit_each", "audit_file", "input_files"),
    "periodicity": ("STUDY_A", "LoopRule"),
}

__all__ = [
    "MODEL",
    "RESULTS",
    "STUDY_A",
    "LoopRule",
    "TraceAudit",
    "audit",
    "audit_batch",
    "audit_each",
    "audit_file",
    "audit_trace",
    "input_files",
    "read_batches",
    "write_batches",
]


def __getattr__(name: str) -> object:
    """Load what is asked for then: a replay imports this package too, and needs no numpy."""
    for module, names in _PLACES.items():
        if name in names:
            try:
                return getattr(import_module(f"gatepost.{module}"), name)
            except ModuleNotFoundError as error:
                if error.name != "numpy":
                    raise
            raise MissingExtraError("numpy", needed_for="the audit of rows", extra="audit")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
