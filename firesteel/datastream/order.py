"""The direction in which a partition is sorted."""

from __future__ import annotations

from enum import Enum

from firesteel.stability import public_evolving


@public_evolving
class Order(Enum):
    """The direction of ``sort_partition``. Not in PyFlink.

    >>> partition = env.from_collection([1, 3, 2]).full_window_partition()
    >>> list(partition.sort_partition(0, Order.DESCENDING).execute_and_collect())
    [3, 2, 1]
    """

    ASCENDING = "ascending"
    DESCENDING = "descending"
