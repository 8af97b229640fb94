"""What a join without a window keeps of one of its inputs.

The rows of a key are the entries of a map, so that adding one costs the same however many there are, and
one that is deleted is found at once. The value of an entry says how often the row is there and, where it
is needed, how many rows of the other side each of them is joined with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from firesteel.datastream.state import StateTtlConfig
from firesteel.state.missing import MISSING
from firesteel.state.tables import MapTable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.state.ttl import TtlMapTable, TtlRule
from firesteel.task.state.ttl_cleanup import clean_up


class JoinSide:
    """``outer``: rows without a match are part of the result. ``counts``: matches are counted.

    Matches need no counting if every row of a key is joined with every row of the other side: then a row
    has a match if the other side has any row.
    """

    def __init__(
        self,
        context: OperatorContext,
        name: str,
        *,
        outer: bool,
        counts: bool,
        ttl: StateTtlConfig | None,
    ) -> None:
        self.outer = outer
        self.counts = counts
        table = context.keyed_state.map_table(name, ttl=ttl is not None)
        self._table: MapTable | TtlMapTable = table
        # Adds a row whose matches are not counted.
        self.count_up: Callable[[Any, Any], None] = table.count_up
        # Replaces the value of an entry: a row stays as old as it is.
        self._amend: Callable[[Any, Any, Any], None] = table.put
        self.rows: Callable[[Any], Mapping[Any, Any]] = table.view
        """The entries of a key; only good until the next change, but values may be replaced."""
        if ttl is not None:
            rule = TtlRule(ttl, context.clock)
            expiring = self._table = TtlMapTable(table, rule)
            clean_up(ttl, context.keyed_state, table, expiring, rule, context.key_context)
            self.rows = lambda key: dict(expiring.entries(key))
            self.count_up = self._count_up
            self._amend = expiring.amend

    def add(self, key: Any, row: Any, matches: int) -> None:
        """One more of this row, each of which is joined with so many others."""
        if not self.counts:
            self.count_up(key, row)
            return
        known = self._table.get(key, row)
        self._table.put(key, row, (1 if known is MISSING else known[0] + 1, matches))

    def _count_up(self, key: Any, row: Any) -> None:
        known = self._table.get(key, row)
        self._table.put(key, row, 1 if known is MISSING else known + 1)

    def remove(self, key: Any, row: Any) -> int | None:
        """One less of it. The number of its matches, -1 if they are not counted; None: no such row."""
        table = self._table
        known = table.get(key, row)
        if known is MISSING:
            return None
        times, matches = known if self.counts else (known, -1)
        if times == 1:
            table.remove_entry(key, row)
        else:
            self._amend(key, row, (times - 1, matches) if self.counts else times - 1)
        found: int = matches
        return found

    def set_matches(self, key: Any, row: Any, times: int, matches: int) -> None:
        self._amend(key, row, (times, matches))

    def has_rows(self, key: Any) -> bool:
        return self._table.contains(key)
