"""What a second run of the same samples shows: does their order matter, does an adapter do anything?

A run is what was sampled, by sample and in the order of submission. Samples are compared by their key: by position, a
run in another order would differ everywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from gatepost.fingerprint import RowKey
from gatepost.verdict import Check, share

Run = Mapping[RowKey, Sequence[int]]


def first_differences(first: Run, second: Run) -> dict[RowKey, int]:
    """Samples whose ids differ between two runs -> index of the first id that does; 0 for one that was not run."""
    differences = {}
    for key in sorted({*first, *second}):
        pairs = zip_longest(first.get(key, ()), second.get(key, ()))
        if key not in first or key not in second:
            differences[key] = 0
        elif (index := next((index for index, (a, b) in enumerate(pairs) if a != b), None)) is not None:
            differences[key] = index
    return differences


def order_stability(first: Run, reordered: Run, *, min_stable_share: float) -> Iterator[Check]:
    """Enough samples come out the same when the same seeds are submitted in another order.

    Another batch is another arithmetic (vllm-project/vllm#17524). A repeat in the same order tests none of that.
    """
    yield Check("submitted_in_another_order", list(first) != list(reordered), "==", True)
    yield _stable("stable_share", first, reordered, ">=", min_stable_share)


def adapter_applied(off: Run, on: Run, repeat: Run) -> Iterator[Check]:
    """More samples change with the adapter than change by themselves when it is on a second time."""
    noise = _stable("repeated_share", on, repeat, ">=", 0.0)
    yield noise
    yield _stable("unchanged_share", off, on, "<", noise.observed)


def _stable(name: str, first: Run, second: Run, relation: str, limit: float | None) -> Check:
    n, differences = len({*first, *second}), first_differences(first, second)
    note = "; ".join(f"{key} differs from id {index}" for key, index in list(differences.items())[:3]) or None
    return share(name, n - len(differences), n, relation, limit, note=note)
