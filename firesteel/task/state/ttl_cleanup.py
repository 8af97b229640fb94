"""Getting rid of expired state in the background, a few entries at a time."""

from __future__ import annotations

from firesteel.datastream.state import StateTtlConfig
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import Table
from firesteel.task.state.key_context import KeyContext
from firesteel.task.state.ttl import TtlRule, TtlTable


class _Cleaner:
    """Goes round the keys of a table."""

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
    """Arrange for the ways of cleaning up that the user chose and the backend has.

    As in Flink, the incremental clean-up is for state in memory, and the clean-up of compaction
    for RocksDB. RocksDB's compaction cannot call Python, so a round through the table does its work:
    with every batch of records it looks at ``query_time_after_num_entries`` keys.
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
