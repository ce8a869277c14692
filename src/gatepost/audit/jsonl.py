"""Sampled rows as JSON lines, for rows that somebody else's runner wrote and somebody converted: one sample a line.

    {"task_id": "t", "sample_index": 0, "seed": 1, "prompt_tokens": 9, "token_ids": [5, 7], "finish_reason": "stop"}

Every field has the name that it has in ``gatepost.evidence.Row``. Those above are required; of a row that was closed by
force also ``stage_two_seed``, ``stage_one_finish_reason``, ``injected_start``, ``injected_tokens`` and
``reprefilled_tokens``. ``forward_input_lengths`` and ``claims`` may be there. A field of any other name is refused, not
dropped: names differ between runners, and a row without its forced close would be judged as another row.
"""

from array import array
from collections.abc import Iterator
from pathlib import Path

from gatepost.audit.foreign import Foreign
from gatepost.errors import DataError
from gatepost.evidence import Row
from gatepost.fingerprint import RowKey
from gatepost.jsonfile import MAX_RECORD_BYTES, loads, open_regular
from gatepost.verdict import JSON

REQUIRED = ("task_id", "sample_index", "seed", "prompt_tokens", "token_ids", "finish_reason")
FORCED = ("stage_two_seed", "stage_one_finish_reason", "injected_start", "injected_tokens", "reprefilled_tokens")
OPTIONAL = ("forward_input_lengths", "claims")
LIMIT = 2**31


def read_rows(path: Path) -> Iterator[Row]:
    """Read rows one by one.

    Raises ``DataError`` naming file, line, field, what was found and what was expected; for a link, a pipe, a device or
    a folder, ``IntegrityError``.
    """
    seen: dict[RowKey, int] = {}
    with open_regular(path) as lines:
        for number, line in enumerate(iter(lambda: lines.readline(MAX_RECORD_BYTES + 1), b""), start=1):
            if len(line) > MAX_RECORD_BYTES:
                raise DataError(f"{path}:{number}: is longer than {MAX_RECORD_BYTES} bytes, expected a row")
            row = _row(Foreign(f"{path}:{number}", loads(line, source=f"{path}:{number}")))
            if (first := seen.setdefault(row.key, number)) != number:
                raise DataError(f"{path}:{number}: {row.key} is that of line {first}")
            yield row
    if not seen:
        raise DataError(f"{path}: is empty, expected a row a line")


def _row(line: Foreign) -> Row:
    found = set(line.value) if isinstance(line.value, dict) else set()
    forced = FORCED if found & set(FORCED) else ()
    expected = {*REQUIRED, *forced}
    if odd := sorted((expected - found) | (found - expected - set(OPTIONAL))):
        problem = "is missing" if odd[0] in expected else "is not one"
        names = ", ".join((*REQUIRED, *FORCED, *OPTIONAL))
        raise DataError(f"{line}: field {odd[0]!r} {problem}; the fields of a row are {names}")
    lengths, claims = line.value.get("forward_input_lengths"), line.value.get("claims", {})
    if not isinstance(claims, dict):
        line.at("claims").refuse("an object")
    second: dict[str, JSON] = {name: _number(line, name) for name in forced if name != "stage_one_finish_reason"}
    if forced:
        second["stage_one_finish_reason"] = _reason(line, "stage_one_finish_reason")
    row = Row(
        key=RowKey(line.text("task_id"), _number(line, "sample_index")),
        seed=_number(line, "seed"),
        prompt_tokens=_number(line, "prompt_tokens"),
        token_ids=_ids(line, "token_ids"),
        forward_input_lengths=None if lengths is None else _ids(line, "forward_input_lengths"),
        finish_reason=_reason(line, "finish_reason"),
        claims=claims,
        **second,
    )
    begin = row.injected_start or 0
    if begin + row.injected_tokens > len(row.token_ids):
        line.at("injected_tokens").refuse(f"at most what {len(row.token_ids)} ids hold from {begin} on")
    return row


def _number(line: Foreign, name: str) -> int:
    value = line.count(name)
    if value >= LIMIT:
        line.at(name).refuse(f"a whole number in [0, {LIMIT})")
    return value


def _ids(line: Foreign, name: str) -> "array[int]":
    values = line.counts(name)
    if any(value >= LIMIT for value in values):
        line.at(name).refuse(f"whole numbers in [0, {LIMIT})")
    return array("i", values)


def _reason(line: Foreign, name: str) -> str | None:
    return None if line.at(name).value is None else line.text(name)
