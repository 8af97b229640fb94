"""The record writer of key_by, which sends each record to the subtask that owns its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.key_expressions import KeyExpressions
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.protocol.rows import BufferRow
from firesteel.state.key_groups import KeyRouter, TargetLookup
from firesteel.state.stable_hash import FOLDED_INTS
from firesteel.task.codegen.key_loops import Add, RoutingLoops, keys_of
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.exchange.keys import (
    column_targets,
    key_converter,
    key_expression,
    key_function,
    route_keys,
)
from firesteel.task.exchange.record_writers import SelectingWriter
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS

# Values, keys and timestamps for each target.
Lists = list[tuple[list[Any], list[Any], list[int]]]
# Adds a value to the buffer of a target, and its key.
AddPair = tuple[Add, Add]


class HashWriter(SelectingWriter):
    """HASH: sends a record to the subtask that owns the group of its key.

    The keys travel with the records, except for integers that are a plain expression of the record.
    The receiver computes those again, which costs less than making, sending and freeing them. It
    also computes those of columns.
    """

    def __init__(
        self,
        edge: StreamEdge,
        source: StreamNode,
        target: StreamNode,
        subtask: int,
        first_slot: int,
        send: Callable[[BufferRow], None],
    ) -> None:
        super().__init__(edge, source, target, subtask, first_slot, send)
        self._select = key_function(edge)
        select = self._select
        self._expressions = select if isinstance(select, KeyExpressions) else None
        self.takes_columns = (
            self._expressions is not None and self._expressions.reason_for_rows is None
        )
        self._router = KeyRouter(target.parallelism, target.max_parallelism)
        self._lookup: TargetLookup | None = self._router.small_ints
        expression = key_expression(edge)
        self._loops = None if expression is None else RoutingLoops.of(expression)
        # One entry per folded integer. The tables are made when the first integer keys come.
        self._adds: list[Add] = []
        self._add_pairs: list[AddPair] = []
        self._name = f"key_by after {source.name}"
        self._convert = key_converter(edge, self._name)

    def emit_rows(self, batch: RecordBatch) -> None:
        values, timestamps = batch.values, batch.timestamps
        if self._convert is not None:
            self._emit_typed(values, timestamps, self._convert)
            return
        lookup = self._lookup
        if lookup is not None:
            try:
                if timestamps is None and lookup is self._router.small_ints:
                    self._emit_ints(values, large=False)
                elif timestamps is None and lookup is self._router.large_ints:
                    self._emit_ints(values, large=True)
                else:
                    self._emit_looked_up(values, timestamps, lookup)
            except USER_ERRORS:
                # The keys are of a different kind, or the user's function failed. Nothing was sent yet,
                # and the general way below raises the failure again, with its reason.
                self._lookup = None
            else:
                return
        self._emit_routed(values, timestamps, keys_of(values, self._select, self._name))

    def divided_columns(self, batch: ColumnBatch) -> Sequence[tuple[int, ColumnBatch]]:
        expressions = self._expressions
        assert expressions is not None
        targets = column_targets(self._router, expressions, batch.columns)
        return self._divided_by(batch, targets)

    def _emit_routed(
        self, values: list[Any], timestamps: list[int] | None, keys: list[Any]
    ) -> None:
        keys, targets = route_keys(self._router, self._name, self._select, values, keys)
        self._lookup = self._router.lookup_for(keys)
        self._scatter(RecordBatch(values, timestamps, keys), targets)

    def _emit_typed(
        self,
        values: list[Any],
        timestamps: list[int] | None,
        convert: Callable[[list[Any]], list[Any]],
    ) -> None:
        """Convert the keys to their declared type, as PyFlink does."""
        keys = convert(keys_of(values, self._select, self._name))
        if self._lookup is not None:
            try:
                self._emit_keyed(values, keys, timestamps, self._lookup)
            except (LookupError, TypeError):
                # The keys are of a different kind. Nothing was sent yet.
                self._lookup = None
            else:
                return
        self._emit_routed(values, timestamps, keys)

    def _emit_keyed(
        self,
        values: list[Any],
        keys: list[Any],
        timestamps: list[int] | None,
        lookup: TargetLookup,
    ) -> None:
        """Add each record and its key to the list of its target, in one pass."""
        lists: Lists = [([], [], []) for _ in range(self._count)]
        if timestamps is None:
            pairs = [(of_values.append, of_keys.append) for of_values, of_keys, _ in lists]
            for value, key in zip(values, keys, strict=True):
                add_value, add_key = pairs[lookup[key]]
                add_value(value)
                add_key(key)
        else:
            triples = [(v.append, k.append, t.append) for v, k, t in lists]
            for value, key, timestamp in zip(values, keys, timestamps, strict=True):
                add_value, add_key, add_timestamp = triples[lookup[key]]
                add_value(value)
                add_key(key)
                add_timestamp(timestamp)
        self._append_all(lists, timestamps)

    def _emit_looked_up(
        self, values: list[Any], timestamps: list[int] | None, lookup: TargetLookup
    ) -> None:
        """Do the same without a list of keys, which would cost a fifth more."""
        select = self._select
        lists: Lists = [([], [], []) for _ in range(self._count)]
        if timestamps is None:
            pairs = [(of_values.append, of_keys.append) for of_values, of_keys, _ in lists]
            for value in values:
                key = select(value)
                add_value, add_key = pairs[lookup[key]]
                add_value(value)
                add_key(key)
        else:
            triples = [(v.append, k.append, t.append) for v, k, t in lists]
            for value, timestamp in zip(values, timestamps, strict=True):
                key = select(value)
                add_value, add_key, add_timestamp = triples[lookup[key]]
                add_value(value)
                add_key(key)
                add_timestamp(timestamp)
        self._append_all(lists, timestamps)

    def _append_all(self, lists: Lists, timestamps: list[int] | None) -> None:
        for index, (of_values, of_keys, stamps) in enumerate(lists):
            if of_values:
                of_stamps = None if timestamps is None else stamps
                self._append(index, RecordBatch(of_values, of_stamps, of_keys))

    def _emit_ints(self, values: list[Any], *, large: bool) -> None:
        """Add the records to the buffers directly, through a table of their ``append`` methods."""
        loops = self._loops
        if any(self._timestamps) or (loops is not None and any(self._keys)):
            self.flush()
        if not self._adds:
            self._make_tables()
        sizes = [len(pending) for pending in self._values]
        try:
            if loops is not None:
                (loops.large if large else loops.small)(values, self._adds)
            else:
                self._add_ints_with_keys(values, self._add_pairs, large=large)
        except USER_ERRORS:
            for size, of_values, of_keys in zip(sizes, self._values, self._keys, strict=True):
                del of_values[size:], of_keys[size:]
            raise
        for index, of_values in enumerate(self._values):
            if len(of_values) >= self._limit:
                self._flush(index)

    def _add_ints_with_keys(
        self, values: list[Any], add_pairs: list[AddPair], *, large: bool
    ) -> None:
        select = self._select
        if large:
            for value in values:
                key = select(value)
                add_value, add_key = add_pairs[key % FOLDED_INTS]
                add_value(value)
                add_key(key)
        else:
            for value in values:
                key = select(value)
                add_value, add_key = add_pairs[key]
                add_value(value)
                add_key(key)

    def _make_tables(self) -> None:
        adds = [of_values.append for of_values in self._values]
        pairs = [(add, k.append) for add, k in zip(adds, self._keys, strict=True)]
        self._adds = [adds[target] for target in self._router.small_ints]
        self._add_pairs = [pairs[target] for target in self._router.small_ints]
