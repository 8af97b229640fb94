"""Can accumulators be merged? Tried on the first records, because a program may never have needed it."""

from __future__ import annotations

from typing import Any, NamedTuple

from firesteel import pickling
from firesteel.task.copies import copy_of
from firesteel.task.windowing.aggregators import Aggregator


class MergeProbe(NamedTuple):
    """``agrees``: merging gives what adding gives. ``is_pure``: it leaves its arguments alone."""

    agrees: bool
    is_pure: bool


UNKNOWN = MergeProbe(agrees=False, is_pure=False)


def probe_merge(aggregator: Aggregator, values: list[Any]) -> MergeProbe:
    """An AggregateFunction that was only used without merging may have a merge() of no use."""
    first, last = values[0], values[-1]
    try:
        added = aggregator.add(aggregator.first(copy_of(first)), copy_of(last))
        one, other = aggregator.first(copy_of(first)), aggregator.first(copy_of(last))
        before = pickling.dumps((one, other))
        merged = aggregator.merge(one, other)
        is_pure = pickling.dumps((one, other)) == before
        return MergeProbe(_equal(added, merged), is_pure)
    except Exception:  # noqa: BLE001 - whatever merge() does when nobody expected it to be called
        return UNKNOWN


def _equal(one: Any, other: Any) -> bool:
    # Objects without an __eq__ of their own are compared by what they hold.
    return bool(one == other) or pickling.dumps(one) == pickling.dumps(other)
