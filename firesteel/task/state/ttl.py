"""Time to live: tables that know when each element was last used, and hide expired elements.

Elements are stored as (element, time of last use). Time is processing time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from firesteel.datastream.state import StateTtlConfig
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import MISSING, ListTable, MapTable, Table, ValueTable
from firesteel.task.copies import copy_of
from firesteel.task.key_context import KeyContext
from firesteel.task.time.clock import SubtaskClock

_UPDATE = StateTtlConfig.UpdateType
_VISIBILITY = StateTtlConfig.StateVisibility


class TtlRule:
    """The rule by which elements expire, and by which reads renew them."""

    __slots__ = ("_clock", "_ttl", "shows_expired", "updates_on_read")

    def __init__(self, config: StateTtlConfig, clock: SubtaskClock) -> None:
        self._clock = clock
        self._ttl = config.get_ttl().to_milliseconds()
        self.updates_on_read = config.get_update_type() is _UPDATE.OnReadAndWrite
        self.shows_expired = (
            config.get_state_visibility() is _VISIBILITY.ReturnExpiredIfNotCleanedUp
        )

    def now(self) -> int:
        return self._clock.now_millis()

    def has_expired(self, last_use: int, now: int) -> bool:
        return last_use + self._ttl <= now

    def is_alive(self, pair: tuple[Any, int]) -> bool:
        return pair[1] + self._ttl > self._clock.now_millis()


class TtlValueTable:
    """A value table whose values expire."""

    __slots__ = ("_rule", "_table", "access")

    def __init__(self, table: ValueTable, rule: TtlRule) -> None:
        self._table = table
        self._rule = rule
        # Called on every access, for the incremental cleanup.
        self.access: Callable[[], None] = _nothing

    def get(self, key: Any) -> Any:
        self.access()
        pair = self._table.get(key)
        if pair is MISSING:
            return MISSING
        rule = self._rule
        value, last_use = pair
        now = rule.now()
        if rule.has_expired(last_use, now):
            self._table.remove(key)
            return value if rule.shows_expired else MISSING
        if rule.updates_on_read:
            self._table.put(key, (value, now))
        return value

    def get_own(self, key: Any) -> Any:
        """Return the value, which may be changed in place and put back."""
        written = key in self._table.overlay
        value = self.get(key)
        return value if written or value is MISSING else copy_of(value)

    def put(self, key: Any, value: Any) -> None:
        self.access()
        self._table.put(key, (value, self._rule.now()))

    def remove(self, key: Any) -> None:
        self._table.remove(key)

    def drop_expired(self, key: Any) -> None:
        pair = self._table.get(key)
        if pair is not MISSING and not self._rule.is_alive(pair):
            self._table.remove(key)


class TtlListTable:
    """A list table whose elements expire one by one."""

    __slots__ = ("_rule", "_table", "access")

    def __init__(self, table: ListTable, rule: TtlRule) -> None:
        self._table = table
        self._rule = rule
        self.access: Callable[[], None] = _nothing

    def get(self, key: Any) -> list[Any] | None:
        self.access()
        pairs = self._table.get(key)
        if pairs is None:
            return None
        rule = self._rule
        now = rule.now()
        alive = [pair for pair in pairs if not rule.has_expired(pair[1], now)]
        if rule.updates_on_read and alive:
            self._table.replace(key, [(element, now) for element, _ in alive])
        elif not alive:
            self._table.remove(key)
        shown = pairs if rule.shows_expired else alive
        return [element for element, _ in shown] or None

    def append(self, key: Any, element: Any) -> None:
        self.access()
        self._table.append(key, (element, self._rule.now()))

    def extend(self, key: Any, elements: Iterable[Any]) -> None:
        self.access()
        now = self._rule.now()
        self._table.extend(key, [(element, now) for element in elements])

    def replace(self, key: Any, elements: Iterable[Any]) -> None:
        self.access()
        now = self._rule.now()
        self._table.replace(key, [(element, now) for element in elements])

    def remove(self, key: Any) -> None:
        self._table.remove(key)

    def drop_expired(self, key: Any) -> None:
        pairs = self._table.get(key)
        if pairs is not None:
            alive = list(filter(self._rule.is_alive, pairs))
            if len(alive) < len(pairs):
                self._table.replace(key, alive)


class TtlMapTable:
    """A map table whose entries expire one by one."""

    __slots__ = ("_rule", "_table", "access")

    def __init__(self, table: MapTable, rule: TtlRule) -> None:
        self._table = table
        self._rule = rule
        self.access: Callable[[], None] = _nothing

    def get(self, key: Any, entry: Any) -> Any:
        self.access()
        pair = self._table.get(key, entry)
        return MISSING if pair is MISSING else self._read(key, entry, pair, self._rule.now())

    def _read(self, key: Any, entry: Any, pair: tuple[Any, int], now: int) -> Any:
        rule = self._rule
        value, last_use = pair
        if rule.has_expired(last_use, now):
            self._table.remove_entry(key, entry)
            return value if rule.shows_expired else MISSING
        if rule.updates_on_read:
            self._table.put(key, entry, (value, now))
        return value

    def put(self, key: Any, entry: Any, value: Any) -> None:
        self.access()
        self._table.put(key, entry, (value, self._rule.now()))

    def amend(self, key: Any, entry: Any, value: Any) -> None:
        """Replace the value of an existing entry without renewing its time to live."""
        pair = self._table.get(key, entry)
        if pair is not MISSING:
            self._table.put(key, entry, (value, pair[1]))

    def remove_entry(self, key: Any, entry: Any) -> None:
        self._table.remove_entry(key, entry)

    def remove(self, key: Any) -> None:
        self._table.remove(key)

    def contains(self, key: Any) -> bool:
        rule = self._rule
        return any(rule.shows_expired or rule.is_alive(p) for _, p in self._table.entries(key))

    def entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        self.access()
        now = self._rule.now()
        # Read at once: a read may write the time of use, which must not undo what the user writes
        # between two entries.
        read = [(e, self._read(key, e, pair, now)) for e, pair in self._table.entries(key)]
        return ((entry, value) for entry, value in read if value is not MISSING)

    def drop_expired(self, key: Any) -> None:
        for entry, pair in self._table.entries(key):
            if not self._rule.is_alive(pair):
                self._table.remove_entry(key, entry)


TtlTable = TtlValueTable | TtlListTable | TtlMapTable


def _nothing() -> None:
    """Clean up nothing."""


class _Cleaner:
    """Checks the keys of a table in turn."""

    __slots__ = ("_size", "_table", "_ttl_table")

    def __init__(self, table: Table, ttl_table: TtlTable, size: int) -> None:
        self._table = table
        self._ttl_table = ttl_table
        self._size = size

    def on_access(self) -> None:
        self._look_at(self._size)

    def on_records(self, records: int) -> None:
        self._look_at(self._size * records)

    def on_batch(self, _: int) -> None:
        self._look_at(self._size)

    def _look_at(self, keys: int) -> None:
        for key in self._table.next_keys(keys):
            self._ttl_table.drop_expired(key)


def clean_up(
    config: StateTtlConfig,
    backend: KeyedStateBackend,
    table: Table,
    ttl_table: TtlTable,
    rule: TtlRule,
    context: KeyContext,
) -> None:
    """Set up the cleanup strategies that the user chose and the backend supports.

    As in Flink, the incremental cleanup is for state in memory, and the compaction filter is for
    RocksDB. RocksDB's compaction cannot call Python, so keys are checked in turn instead:
    ``query_time_after_num_entries`` keys with every batch of records.
    """
    strategies = config.get_cleanup_strategies()
    if strategies.in_full_snapshot():
        backend.leave_out_of_full_segments(table, lambda pair: not rule.is_alive(pair))
    incremental = strategies.get_incremental_cleanup_strategy()
    compaction = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    if backend.in_memory and incremental is not None:
        cleaner = _Cleaner(table, ttl_table, incremental.get_cleanup_size())
        ttl_table.access = cleaner.on_access
        if incremental.run_cleanup_for_every_record():
            context.after_batch.append(cleaner.on_records)
    if not backend.in_memory and compaction is not None:
        size = compaction.get_query_time_after_num_entries()
        context.after_batch.append(_Cleaner(table, ttl_table, size).on_batch)
