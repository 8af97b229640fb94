"""The keyed state of one operator subtask: its tables, sealed into one segment per epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel import pickling
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.hashmap.table import StateTable, drop_missing

# The log is replaced by a full snapshot when it has grown to this many times the state's size:
# each change is then written about 1.5 times, and a restore reads at most three times the state.
_LOG_GROWTH = 2


class HashMapKeyedState:
    """Tables by name. ``seal`` ends an epoch, ``confirm`` makes its changes the base."""

    def __init__(self) -> None:
        self._tables: dict[str, StateTable] = {}
        self._log_bytes = 0
        self._full_bytes = 0
        # Of the segments that travel in every control row.
        self._inline_bytes = 0

    def table(self, name: str) -> StateTable:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = StateTable()
        return table

    def seal(self, epoch: int, store: SegmentStore) -> Segment | None:
        """Write down what the epoch changed; None if it changed nothing."""
        changes = {name: table.overlay for name, table in self._tables.items() if table.overlay}
        if not changes:
            return None
        payload = pickling.dumps(changes)
        if self._log_bytes + len(payload) <= max(
            store.inline_threshold, _LOG_GROWTH * self._full_bytes
        ):
            self._log_bytes += len(payload)
            segment = store.write(payload, epoch=epoch, full=False, inline_bytes=self._inline_bytes)
            self._inline_bytes += len(segment.inline or b"")
            return segment
        payload = pickling.dumps(
            {name: dict(table.items()) for name, table in self._tables.items()}
        )
        self._full_bytes = len(payload)
        self._log_bytes = 0
        segment = store.write(payload, epoch=epoch, full=True)
        self._inline_bytes = len(segment.inline or b"")
        return segment

    def confirm(self) -> None:
        for table in self._tables.values():
            table.confirm()

    def restore(self, segments: Sequence[Segment], store: SegmentStore) -> None:
        """Become what the segments say: a full one first, or none, then changes in order.

        The tables stay the same objects, and so do their dictionaries: operators hold on to them.
        """
        for table in self._tables.values():
            table.clear()
        self._log_bytes = self._full_bytes = 0
        self._inline_bytes = sum(len(segment.inline or b"") for segment in segments)
        for segment in segments:
            payload = store.read(segment)
            if segment.full:
                self._full_bytes, self._log_bytes = len(payload), 0
            else:
                self._log_bytes += len(payload)
            for name, changes in pickling.loads(payload).items():
                self.table(name).base.update(changes)
        for table in self._tables.values():
            drop_missing(table.base)

    def snapshot(self) -> dict[str, dict[Any, Any]]:
        """A copy of everything, for tests and for redistribution."""
        return {name: dict(table.items()) for name, table in self._tables.items()}

    def load(self, tables: dict[str, dict[Any, Any]]) -> None:
        """Add entries to the base, e.g. those of a key group range that moved here."""
        for name, entries in tables.items():
            self.table(name).base.update(entries)
