"""Can the records of a window be aggregated in parts? Tried on the first ones that come.

Windows that share slices add records to parts and merge those. Flink adds the records of each window one
by one, so a program may have a merge() that was never needed, or a reduction that only works that way
(``lambda total, new: total + 1``).
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

from firesteel import pickling
from firesteel.task.windowing.aggregators import Aggregator
from firesteel.task.windowing.deep_copies import deep_copy_of

_SAMPLES = 4


class MergeProbe(NamedTuple):
    """``agrees``: merging parts gives what adding gives. ``is_pure``: it leaves the parts alone."""

    agrees: bool
    is_pure: bool


UNKNOWN = MergeProbe(agrees=False, is_pure=False)


def probe_merge(aggregator: Aggregator, values: list[Any], keys: list[Any]) -> MergeProbe:
    """Look at a few records of the first key."""
    found = [value for value, key in zip(values, keys, strict=True) if key == keys[0]][:_SAMPLES]
    samples = (found * _SAMPLES)[:_SAMPLES]
    half = len(samples) // 2
    try:
        expected = _added(aggregator, samples)
        one, other = _added(aggregator, samples[:half]), _added(aggregator, samples[half:])
        before = pickling.dumps((one, other))
        merged = aggregator.merge(one, other)
        is_pure = pickling.dumps((one, other)) == before
        # The parts of a window are merged in the order of time, which need not be that of arrival.
        swapped = aggregator.merge(
            _added(aggregator, samples[half:]), _added(aggregator, samples[:half])
        )
        return MergeProbe(_equal(merged, expected) and _equal(swapped, expected), is_pure)
    except Exception:  # noqa: BLE001 - whatever merge() does when nobody expected it to be called
        return UNKNOWN


def _added(aggregator: Aggregator, values: list[Any]) -> Any:
    first, *rest = map(deep_copy_of, values)
    return reduce(aggregator.add, rest, aggregator.first(first))


def _equal(one: Any, other: Any) -> bool:
    # Objects without an __eq__ of their own are compared by what they hold.
    return bool(one == other) or pickling.dumps(one) == pickling.dumps(other)
