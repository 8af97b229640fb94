"""interval_join: joins records of two keyed streams whose timestamps are close to each other.

A left record and a right record of one key are joined if
left.time + lower <= right.time <= left.time + upper. As in Flink, each side is kept for as long as
a record of the other side can match it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.datastream.window.assigners import NoTimestampError
from firesteel.graph.operator_specs import IntervalJoinSpec
from firesteel.state.backend import KeyedStateBackend
from firesteel.task.copies import copy_of, is_immutable
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.operators.late_records import LateRecords
from firesteel.task.operators.process import ResultCollector
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class IntervalBuffer:
    """The records of one side, by key and timestamp.

    keep: a record is dropped when the watermark is this far ahead of it.
    """

    def __init__(self, backend: KeyedStateBackend, name: str, element_type: Any, keep: int) -> None:
        self._table = backend.list_table(
            name, namespaced=True, element_type=None if element_type.is_pickled else element_type
        )
        self._keep = keep
        # The timestamps of each key, in ascending order.
        self._timestamps: dict[Any, list[int]] = {}
        # The keys of each timestamp, and a heap of the timestamps.
        self._keys: dict[int, list[Any]] = {}
        self._heap: list[int] = []

    def load(self) -> None:
        """Read the keyed state after it was replaced."""
        self._timestamps, self._keys = {}, {}
        for key, timestamp in self._table.keys():  # noqa: SIM118 - a table is no mapping
            self._timestamps.setdefault(key, []).append(timestamp)
            self._keys.setdefault(timestamp, []).append(key)
        for timestamps in self._timestamps.values():
            timestamps.sort()
        self._heap = list(self._keys)
        heapify(self._heap)

    def add(self, values: list[Any], keys: list[Any], timestamps: list[int]) -> None:
        # The user's function must not get the stored object if it can change it.
        stored = values if is_immutable(values[0]) else map(copy_of, values)
        self._table.append_all(zip(keys, timestamps, strict=True), stored)
        timestamps_of, keys_at, heap = self._timestamps, self._keys, self._heap
        times, names = timestamps_of.get, keys_at.get
        for key, timestamp in zip(keys, timestamps, strict=True):
            known = times(key)
            if known is None:
                timestamps_of[key] = [timestamp]
            elif timestamp > known[-1]:
                known.append(timestamp)
            else:
                position = bisect_left(known, timestamp)
                if known[position] == timestamp:
                    continue
                known.insert(position, timestamp)
            there = names(timestamp)
            if there is None:
                keys_at[timestamp] = [key]
                heappush(heap, timestamp)
            else:
                there.append(key)

    def timestamps(self, key: Any, start: int, end: int) -> list[int]:
        """The timestamps of a key's records from ``start`` to ``end``, both included."""
        known = self._timestamps.get(key)
        if known is None or known[-1] < start or known[0] > end:
            return []
        if start <= known[0] and known[-1] <= end:
            return known
        return known[bisect_left(known, start) : bisect_right(known, end)]

    def records(self, key: Any, timestamp: int) -> Sequence[Any]:
        """The records of a key at one of its timestamps. The caller may change them."""
        records = self._table.view((key, timestamp))
        return records if is_immutable(records[0]) else list(map(copy_of, records))

    def advance(self, watermark: int) -> None:
        """Drop records that can only match late records."""
        heap, remove = self._heap, self._table.remove
        last = watermark - self._keep
        all_known = self._timestamps
        gone: list[Any] = []
        while heap and heap[0] <= last:
            timestamp = heappop(heap)
            keys = self._keys.pop(timestamp)
            for key in keys:
                remove((key, timestamp))
            gone += keys
        for key in gone:
            known = all_known.get(key)
            # A key with several timestamps is in the list several times.
            if known is None or known[0] > last:
                continue
            if known[-1] <= last:
                del all_known[key]
            else:
                del known[: bisect_right(known, last)]


LEFT, RIGHT = 0, 1


class PairContext(ProcessJoinFunction.Context):
    """The context of a pair. One object serves all: the loop sets the timestamps."""

    def __init__(self) -> None:
        self.timestamps = [0, 0]

    def get_left_timestamp(self) -> int:
        return self.timestamps[LEFT]

    def get_right_timestamp(self) -> int:
        return self.timestamps[RIGHT]

    def get_timestamp(self) -> int:
        return max(self.timestamps)


class IntervalJoinOperator(FunctionOperator):
    def __init__(self, spec: IntervalJoinSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        backend, lower, upper = context.keyed_state, spec.lower, spec.upper
        self._buffers = (
            IntervalBuffer(backend, "interval-join/left", spec.left_type, max(0, upper)),
            IntervalBuffer(backend, "interval-join/right", spec.right_type, max(0, -lower)),
        )
        # The interval of matching timestamps, as seen from a record of each side.
        self._bounds = ((lower, upper), (-upper, -lower))
        self._late = LateRecords((spec.left_late_tag, spec.right_late_tag), context, self.output)
        self._pair = PairContext()
        self._loaded = False

    def open(self) -> None:
        self._ensure_loaded()
        super().open()

    # Records

    def process(self, batch: RecordBatch) -> None:
        self._join(LEFT, batch)

    def process_second(self, batch: RecordBatch) -> None:
        self._join(RIGHT, batch)

    def _join(self, side: int, batch: RecordBatch) -> None:
        values, keys, timestamps = batch.values, batch.keys, batch.timestamps
        assert keys is not None
        if timestamps is None:
            raise self.failure(NoTimestampError("an interval join"), self.process, values[:1])
        self._ensure_loaded()
        if min(timestamps) < self.context.clock.watermark:
            values, keys, timestamps = self._without_late(side, values, keys, timestamps)
            if not values:
                return
        self._buffers[side].add(values, keys, timestamps)
        self._process_pairs(side, values, keys, timestamps)

    def _without_late(
        self, side: int, values: list[Any], keys: list[Any], timestamps: list[int]
    ) -> tuple[list[Any], list[Any], list[int]]:
        watermark = self.context.clock.watermark
        records = list(zip(values, keys, timestamps, strict=True))
        late = [record for record in records if record[2] < watermark]
        self._late.add(
            RecordBatch([late_value for late_value, _, _ in late], [stamp for _, _, stamp in late]),
            side,
        )
        on_time = [record for record in records if record[2] >= watermark]
        return (
            [value for value, _, _ in on_time],
            [key for _, key, _ in on_time],
            [stamp for _, _, stamp in on_time],
        )

    def _process_pairs(
        self, side: int, values: list[Any], keys: list[Any], timestamps: list[int]
    ) -> None:
        from_here, to_here = self._bounds[side]
        others = self._buffers[1 - side]
        timestamps_of, records_of = others.timestamps, others.records
        process, context, key_context = (
            self.function.process_element,
            self._pair,
            self.context.key_context,
        )
        stamps, other_side = context.timestamps, 1 - side
        collector = ResultCollector(self.output)
        iterator = iter(values)
        try:
            for value, key, stamp in zip(iterator, keys, timestamps, strict=False):
                found = timestamps_of(key, stamp + from_here, stamp + to_here)
                if not found:
                    continue
                key_context.key = key
                stamps[side] = stamp
                for other_stamp in found:
                    stamps[other_side] = other_stamp
                    timestamp = max(stamp, other_stamp)
                    for other in records_of(key, other_stamp):
                        results = (
                            process(value, other, context)
                            if side == LEFT
                            else process(other, value, context)
                        )
                        if results is not None:
                            collector.add(results, timestamp)
        except USER_ERRORS as error:
            raise self.failure(error, process, values, iterator) from error
        collector.emit()

    # Time

    def process_watermark(self, watermark: int) -> None:
        self._ensure_loaded()
        for buffer in self._buffers:
            buffer.advance(watermark)
        super().process_watermark(watermark)

    def end_key(self) -> None:
        super().end_key()
        for buffer in self._buffers:
            buffer.load()

    # State

    def restore(self, whole: Any) -> None:
        """Read the state later, because tables may still be added."""
        self._loaded = False

    def _ensure_loaded(self) -> None:
        if not self._loaded:
            self._loaded = True
            self._late.load()
            for buffer in self._buffers:
                buffer.load()

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        self._ensure_loaded()
        self._late.save()
