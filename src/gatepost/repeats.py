"""What a second run of the same samples shows: does their order matter?

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
    n, differences = len({*first, *reordered}), first_differences(first, reordered)
    note = "; ".join(f"{key} differs from id {index}" for key, index in list(differences.items())[:3]) or None
    yield share("stable_share", n - len(differences), n, ">=", min_stable_share, note=note)
