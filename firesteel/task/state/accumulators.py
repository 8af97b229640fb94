"""Values that grow in place: what reducing and aggregating state keep in their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.state.missing import MISSING
from firesteel.state.tables import ValueTable
from firesteel.task.copies import copy_of
from firesteel.task.state.ttl import TtlValueTable


def own_value_getter(table: ValueTable | TtlValueTable) -> Callable[[Any], Any]:
    """A ``get(key)`` whose value may be changed in place, if it is put back afterwards.

    What the epoch has written is nobody else's; what comes from the base is copied once.
    """
    if isinstance(table, TtlValueTable):
        return table.get_own

    overlay, base = table.overlay, table.base

    def get_own(key: Any) -> Any:
        value = overlay.get(key, MISSING)
        if value is not MISSING or key in overlay:
            return value
        value = base.get(key, MISSING)
        return value if value is MISSING else copy_of(value)

    return get_own
