"""Windows over two streams, for joins and co-groups.

``SlicedWindowJoinOperator`` is the fast one, for event-time tumbling and sliding windows with the
default trigger. Each slice has one table of records per side, and overlapping windows share slices.
Then records are numbered, so that each window gets them in the order of arrival. The other two
operators take any assigner, trigger and evictor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.window import TaggedUnion
from firesteel.graph.operator_specs import PairedRecords, WindowJoinSpec, WindowSpec
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import ListTable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aligned_window_operator import AlignedWindowOperator
from firesteel.task.windowing.arrivals import Arrivals, numbered_type
from firesteel.task.windowing.slices import RecordTables
from firesteel.task.windowing.window_functions import PairCalls, Sides
from firesteel.task.windowing.window_operator import EvictingWindowOperator, WindowOperator
from firesteel.task.windowing.window_state import WindowState


class PairedRecordsState(WindowState):
    """Two lists per key and window."""

    def __init__(self, backend: KeyedStateBackend, contents: PairedRecords) -> None:
        types = (contents.left_type, contents.right_type)
        self._tables = [
            backend.list_table(name, namespaced=True, element_type=None if t.is_pickled else t)
            for name, t in zip(
                ("_window-contents/left", "_window-contents/right"), types, strict=True
            )
        ]

    def add(self, key: Any, window: Any, value: TaggedUnion, timestamp: int | None) -> None:
        self._tables[value.side].append((key, window), value.value)

    def get(self, key: Any, window: Any) -> list[Any] | None:
        left, right = (table.get((key, window)) for table in self._tables)
        return None if left is None and right is None else [left or [], right or []]

    def clear(self, key: Any, window: Any) -> None:
        for table in self._tables:
            table.remove((key, window))

    def merge(self, key: Any, target: Any, sources: Iterable[Any]) -> None:
        for source in sources:
            for table in self._tables:
                elements = table.get((key, source))
                if elements:
                    table.extend((key, target), elements)
                    table.remove((key, source))


class _TwoInputs(WindowOperator):
    """Tags records with their side, and calls a function of both sides."""

    calls: PairCalls

    def create_calls(self, spec: WindowSpec) -> PairCalls:
        assert isinstance(spec, WindowJoinSpec)
        return PairCalls(spec)

    def process(self, batch: RecordBatch) -> None:
        self.side = 0
        super().process(_tagged(TaggedUnion.one, batch))

    def process_second(self, batch: RecordBatch) -> None:
        self.side = 1
        super().process(_tagged(TaggedUnion.two, batch))

    def add_late(self, batch: RecordBatch) -> None:
        values = [tagged.value for tagged in batch.values]
        self.late.add(RecordBatch(values, batch.timestamps), self.side)

    def split(self, contents: list[Any]) -> Sides:
        left, right = contents
        return left, right

    def call_function(self, key: Any, window: Any, contents: list[Any]) -> None:
        sides = self.split(contents)
        if all(sides) or self.calls.groups:
            super().call_function(key, window, sides)


def _tagged(tag: Callable[[Any], TaggedUnion], batch: RecordBatch) -> RecordBatch:
    return RecordBatch(list(map(tag, batch.values)), batch.timestamps, batch.keys)


class WindowJoinOperator(_TwoInputs):
    def create_state(self, spec: WindowSpec, context: OperatorContext) -> WindowState:
        assert isinstance(spec.contents, PairedRecords)
        return PairedRecordsState(context.keyed_state, spec.contents)


class EvictingWindowJoinOperator(_TwoInputs, EvictingWindowOperator):
    """Keeps the records of both sides in one list, as evictors see them."""

    def split(self, contents: list[TaggedUnion]) -> Sides:
        left = [tagged.value for tagged in contents if tagged.side == 0]
        return left, [tagged.value for tagged in contents if tagged.side == 1]


_EMIT_RECORDS = 4096
_NO_TABLES: list[ListTable] = []


class SlicedWindowJoinOperator(AlignedWindowOperator):
    calls: PairCalls

    def __init__(self, spec: WindowJoinSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        contents = spec.contents
        assert isinstance(contents, PairedRecords)
        self._arrivals = None if self._layout.is_tumbling else Arrivals(context)
        self._slices = [
            RecordTables(context.keyed_state, side, self._kept_type(kind))
            for side, kind in (("left", contents.left_type), ("right", contents.right_type))
        ]

    def create_calls(self, spec: WindowSpec) -> PairCalls:
        assert isinstance(spec, WindowJoinSpec)
        return PairCalls(spec)

    def _kept_type(self, kind: TypeInformation) -> TypeInformation | None:
        if self._arrivals is not None:
            return numbered_type(kind)
        return None if kind.is_pickled else kind

    # Records

    def process(self, batch: RecordBatch) -> None:
        self.side = 0
        super().process(self._numbered(batch))

    def process_second(self, batch: RecordBatch) -> None:
        self.side = 1
        super().process(self._numbered(batch))

    def _numbered(self, batch: RecordBatch) -> RecordBatch:
        if self._arrivals is None:
            return batch
        self.ensure_loaded()
        numbered = list(zip(self._arrivals.take(len(batch)), batch.values, strict=True))
        return RecordBatch(numbered, batch.timestamps, batch.keys)

    def _drop_late(self, values: list[Any], timestamps: list[int]) -> None:
        late = values if self._arrivals is None else [value for _, value in values]
        super()._drop_late(late, timestamps)

    def _add_to_slice(self, start: int, values: list[Any], keys: list[Any]) -> None:
        slices = self._slices[self.side]
        table = slices.get(start)
        if table is None:
            table = slices.create(start)
            self._schedule_slice(start)
        table.append_all(keys, values)

    # Results

    def _fire(self, end: int) -> None:
        lefts, rights = (self._tables_by_key(side, end) for side in (0, 1))
        groups, window = self.calls.groups, self._window(end)
        keys = {**lefts, **rights} if groups else min(lefts, rights, key=len)
        left_of, right_of = lefts.get, rights.get
        for key in keys:
            left, right = left_of(key, _NO_TABLES), right_of(key, _NO_TABLES)
            if groups or (left and right):
                sides = self._records(left, key, end), self._records(right, key, end)
                self.call_function(key, window, sides)
            if len(self.collected.results) >= _EMIT_RECORDS:
                self.emit_collected()
        self.emit_collected()

    def _tables_by_key(self, side: int, end: int) -> dict[Any, list[ListTable]]:
        """The tables that have records of each key. The records may not fit into memory."""
        tables_of: dict[Any, list[ListTable]] = {}
        for table in self._tables(side, end):
            for key in table.keys():  # noqa: SIM118 - a table is no mapping
                known = tables_of.get(key)
                if known is None:
                    tables_of[key] = [table]
                else:
                    known.append(table)
        return tables_of

    def _tables(self, side: int, end: int) -> list[ListTable]:
        found = map(self._slices[side].get, self._layout.slices(end))
        return [table for table in found if table is not None]

    def _fire_key(self, key: Any, end: int) -> None:
        left, right = (self._records(self._tables(side, end), key, end) for side in (0, 1))
        if (left and right) or (self.calls.groups and (left or right)):
            self.call_function(key, self._window(end), (left, right))

    def _records(self, tables: list[ListTable], key: Any, end: int) -> list[Any]:
        if self._arrivals is not None:
            return self._arrivals.records(tables, key, self._expiry(end))
        return [record for table in tables for record in table.get(key) or ()]

    # State

    def _drop_slice(self, start: int) -> None:
        for slices in self._slices:
            slices.drop(start)

    def _load_slices(self) -> None:
        if self._arrivals is not None:
            self._arrivals.load(self._passed.saved)
        for slices in self._slices:
            slices.restore()
            for start in slices:
                self._schedule_slice(start)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        if self._arrivals is not None:
            self._arrivals.save()
