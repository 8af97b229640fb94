"""The base of operators for event-time windows that begin and end together for all keys.

Records are kept in slices. A batch is added to its slices, and windows wait in one heap, regardless
of the number of keys. Subclasses define the contents of a slice and the result of a window.
"""

from __future__ import annotations

from abc import abstractmethod
from heapq import heappop, heappush
from typing import Any

from firesteel.common.constants import MAX_WATERMARK
from firesteel.datastream.window import TimeWindow
from firesteel.graph.operator_specs import WindowSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.base_window_operator import BaseWindowOperator, PassedTime
from firesteel.task.windowing.slices import SliceLayout, pick, positions_of

# The events of one time, in this order.
_FIRE, _CLEAR, _DROP = range(3)


class AlignedWindowOperator(BaseWindowOperator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        assigner = spec.assigner
        self._layout = SliceLayout(assigner.size, assigner.slide, assigner.offset)
        self._lateness = spec.allowed_lateness
        self._mode = spec.output_mode
        self._fires_late = self._lateness > 0 and self._mode != "append"
        # A final result waits until nothing can change it.
        self._fire_delay = self._lateness if self._mode == "append" else 0
        self._events: list[tuple[int, int, int]] = []
        self._scheduled: set[tuple[int, int]] = set()
        self._passed = PassedTime(context)
        # For records of windows that fired before a restart without a watermark.
        self._timers = context.timers.create(
            "window-timers", self._on_timer, self._on_timer, self.emit_collected
        )

    @abstractmethod
    def _add_to_slice(self, start: int, values: list[Any], keys: list[Any]) -> None:
        """Add records to a slice. A new slice must be passed to ``_schedule_slice``."""

    @abstractmethod
    def _fire(self, end: int) -> None:
        """Emit the results of all keys of a window."""

    @abstractmethod
    def _fire_key(self, key: Any, end: int) -> None:
        """Collect the results of one key, if it has any."""

    @abstractmethod
    def _drop_slice(self, start: int) -> None: ...

    @abstractmethod
    def _load_slices(self) -> None:
        """Find the slices that were restored, and schedule them."""

    def _clear(self, end: int) -> None:
        """Called when a window expires, if its function has a ``clear`` method."""

    def _window(self, end: int) -> TimeWindow:
        return TimeWindow(end - self._layout.size, end)

    # Records

    def process(self, batch: RecordBatch) -> None:
        values, keys, timestamps = self.event_time_columns(batch)
        self._prepare(values, keys)
        layout = self._layout
        start = layout.slice_of(min(timestamps))
        if max(timestamps) < start + layout.width:
            if self._is_over(start):
                self._drop_late(values, timestamps)
            elif self._fires_late and self._refires(start):
                self._add_late(values, keys, [start] * len(values))
            else:
                self._add(start, values, keys)
            return
        starts = layout.slices_of(timestamps)
        too_late: list[int] = []
        late: list[int] = []
        for start, chosen in positions_of(starts).items():
            if self._is_over(start):
                too_late += chosen
            elif self._fires_late and self._refires(start):
                late += chosen
            else:
                self._add(start, *pick(chosen, values, keys))
        # Their order is visible, so they keep the order of arrival.
        if too_late:
            late_values, late_stamps = pick(sorted(too_late), values, timestamps)
            self._drop_late(late_values, late_stamps)
        if late:
            self._add_late(*pick(sorted(late), values, keys, starts))

    def _prepare(self, values: list[Any], keys: list[Any]) -> None:
        """Look at a batch before it is divided."""

    def _add_late(self, values: list[Any], keys: list[Any], starts: list[int]) -> None:
        """Add records one by one. Each makes the windows that have fired fire again."""
        for value, key, start in zip(values, keys, starts, strict=True):
            self._add(start, [value], [key])
            for end in self._layout.ends(start):
                if self._has_fired(end):
                    self._fire_key(key, end)
        self.emit_collected()

    def _add(self, start: int, values: list[Any], keys: list[Any]) -> None:
        if self.context.clock.watermark < self._passed.fired_until:
            self._register_timers(start, keys)
        self._add_to_slice(start, values, keys)

    def _drop_late(self, values: list[Any], timestamps: list[int]) -> None:
        self.late.add(RecordBatch(values, timestamps), self.side)

    def _is_over(self, start: int) -> bool:
        """True if all windows of the slice have expired."""
        return self._expiry(self._layout.last_end(start)) <= self.context.clock.watermark

    def _refires(self, start: int) -> bool:
        """True if a window of the slice has fired and still takes records."""
        return any(map(self._has_fired, self._layout.ends(start)))

    def _has_fired(self, end: int) -> bool:
        return end - 1 <= self.context.clock.watermark < self._expiry(end)

    # Time

    def _expiry(self, end: int) -> int:
        return min(end - 1 + self._lateness, MAX_WATERMARK)

    def _schedule_slice(self, start: int) -> None:
        for end in self._layout.ends(start):
            self._schedule_window(end)
        self._schedule(self._expiry(self._layout.last_end(start)), _DROP, start)

    def _schedule_window(self, end: int) -> None:
        watermark = self.context.clock.watermark
        fire_time = end - 1 + self._fire_delay
        if fire_time > max(watermark, self._passed.fired_until):
            self._schedule(fire_time, _FIRE, end)
        if self.calls.clear is not None and self._expiry(end) > watermark:
            self._schedule(self._expiry(end), _CLEAR, end)

    def _schedule(self, time: int, kind: int, number: int) -> None:
        if (kind, number) not in self._scheduled:
            self._scheduled.add((kind, number))
            heappush(self._events, (time, kind, number))

    def process_watermark(self, watermark: int) -> None:
        self.ensure_loaded()
        events = self._events
        while events and events[0][0] <= watermark:
            time, kind, number = heappop(events)
            self._scheduled.discard((kind, number))
            if kind != _FIRE:
                # Before anything is dropped.
                self.context.timers.advance_watermark(time)
            if kind == _FIRE:
                self._fire(number)
            elif kind == _CLEAR:
                self._clear(number)
            else:
                self._drop_slice(number)
        self._passed.advance(watermark)
        super().process_watermark(watermark)

    # After a restart without a watermark

    def _register_timers(self, start: int, keys: list[Any]) -> None:
        """Let windows that fired before the restart fire again for these keys."""
        watermark = self.context.clock.watermark
        for end in self._layout.ends(start):
            fire_time = end - 1 + self._fire_delay
            if watermark < fire_time <= self._passed.fired_until:
                for key in dict.fromkeys(keys):
                    self._timers.register_event_time_timer(key, end, fire_time)

    def _on_timer(self, key: Any, end: int, _: int) -> None:
        self._fire_key(key, end)

    # State

    def load(self) -> None:
        super().load()
        self._passed.load()
        self._events.clear()
        self._scheduled.clear()
        self._load_slices()

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        self._passed.save()
