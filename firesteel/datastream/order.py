"""Order: which way a partition is sorted."""

from __future__ import annotations

from enum import Enum


class Order(Enum):
    """Flink's Java class, not in PyFlink."""

    ASCENDING = "ascending"
    DESCENDING = "descending"
