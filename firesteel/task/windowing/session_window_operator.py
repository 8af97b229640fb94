"""Event-time session windows with an incremental aggregate and the default trigger.

The results are those of the general operator. A key has a few sessions, (start, end, accumulator),
in one value. A record extends a session, begins one, or joins two. A heap holds the time at which
each key is due. A record adds an entry only if its key becomes due earlier.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from firesteel.common.constants import MAX_WATERMARK
from firesteel.datastream.window import DynamicEventTimeSessionWindows, TimeWindow
from firesteel.graph.operator_specs import WindowSpec
from firesteel.state.tables import MISSING
from firesteel.task.copies import copy_of
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aggregators import create_aggregator
from firesteel.task.windowing.base_window_operator import (
    BaseWindowOperator,
    FiringWindow,
    PassedTime,
)
from firesteel.usercode.failures import failed_function

Session = tuple[int, int, Any]
"""(start, end, accumulator). The sessions of a key do not touch each other."""


class SessionWindowOperator(BaseWindowOperator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        assigner = spec.assigner
        self._extract = None
        self._gap = 0
        if isinstance(assigner, DynamicEventTimeSessionWindows):
            self._extract = assigner.extractor.extract
        else:
            self._gap = assigner.session_gap
        self._aggregator = create_aggregator(spec.contents, self.name)
        self.stateless_function = self._aggregator.function
        self._lateness = spec.allowed_lateness
        self._emits_once = spec.output_mode == "append"
        self._table = context.keyed_state.value_table("_sessions")
        self._heap: list[tuple[int, int, Any]] = []
        # The valid heap entry of each key.
        self._next_look: dict[Any, int] = {}
        # Orders entries of equal time, so that keys need not be comparable.
        self._sequence = 0
        self._passed = PassedTime(context)
        # For records of sessions that fired before a restart without a watermark.
        self._timers = context.timers.create(
            "window-timers", self._on_timer, self._on_timer, self.emit_collected
        )

    # Records

    def process(self, batch: RecordBatch) -> None:
        values, keys, timestamps = self.event_time_columns(batch)
        aggregator = self._aggregator
        aggregator.prepare(values)
        add, gap, extract = aggregator.add, self._gap, self._extract
        overlay = self._table.overlay
        in_overlay, missing = overlay.get, MISSING
        passed = max(self.context.clock.watermark, self._passed.fired_until)
        late: tuple[list[Any], list[int]] = ([], [])
        iterator = iter(values)
        try:
            for value, key, start in zip(iterator, keys, timestamps, strict=False):
                end = start + (gap if extract is None else _checked(extract(value)))
                sessions = in_overlay(key, missing)
                if sessions is missing:
                    sessions = self._from_base(key)
                elif len(sessions) == 1:
                    # The common case: one session, which continues and has not fired.
                    ((old_start, old_end, accumulator),) = sessions
                    if old_start <= end and start <= old_end and old_end - 1 > passed:
                        overlay[key] = (
                            (
                                min(old_start, start),
                                max(old_end, end),
                                add(accumulator, value),
                            ),
                        )
                        continue
                if not self._add(key, value, start, end, sessions):
                    late[0].append(value)
                    late[1].append(start)
        except Exception as error:
            functions = aggregator.user_functions
            candidates = functions if extract is None else (extract, *functions)
            raise self.failure(
                error, failed_function(error, *candidates), values, iterator
            ) from error
        if late[0]:
            self.late.add(RecordBatch(*late))
        self.emit_collected()

    def _from_base(self, key: Any) -> tuple[Session, ...]:
        table = self._table
        found: Any = MISSING if key in table.overlay else table.base.get(key, MISSING)
        if found is MISSING:
            return ()
        # A value from the base may be part of a snapshot, so the function gets a copy.
        return tuple((start, end, copy_of(kept)) for start, end, kept in found)

    def _add(
        self, key: Any, value: Any, start: int, end: int, sessions: tuple[Session, ...]
    ) -> bool:
        """Add a record to the sessions of its key. False if it is late."""
        watermark = self.context.clock.watermark
        aggregator = self._aggregator
        apart = sessions
        touching: tuple[Session, ...] = ()
        # Sessions are ordered by time, and most records are newer than all but the last one.
        if sessions and start <= sessions[-1][1]:
            touching = tuple(s for s in sessions if s[0] <= end and start <= s[1])
            apart = tuple(s for s in sessions if s[0] > end or start > s[1])
        if not touching and self._expiry(end) <= watermark:
            return False
        if touching:
            accumulator = touching[0][2]
            for _, _, other in touching[1:]:
                accumulator = aggregator.merge(accumulator, other)
            accumulator = aggregator.add(accumulator, value)
            start = min(start, *(s[0] for s in touching))
            end = max(end, *(s[1] for s in touching))
        else:
            accumulator = aggregator.first(value)
        session = (start, end, accumulator)
        if apart and apart[-1][0] > start:
            self._table.put(key, tuple(sorted((*apart, session), key=_start)))
        else:
            self._table.put(key, (*apart, session))
        fire_time = self._fire_time(end)
        if fire_time <= watermark:
            self._fire(key, session)
        elif fire_time <= self._passed.fired_until:
            self._timers.register_event_time_timer(key, None, fire_time)
        self._look_again(self._due(session), key)
        return True

    # Time

    def _expiry(self, end: int) -> int:
        return min(end - 1 + self._lateness, MAX_WATERMARK)

    def _fire_time(self, end: int) -> int:
        return self._expiry(end) if self._emits_once else end - 1

    def _due(self, session: Session) -> int:
        """The next time at which a session fires or is dropped."""
        end = session[1]
        fire_time = self._fire_time(end)
        passed = max(self.context.clock.watermark, self._passed.fired_until)
        return fire_time if fire_time > passed else self._expiry(end)

    def _look_again(self, time: int, key: Any) -> None:
        known = self._next_look.get(key)
        if known is None or time < known:
            self._next_look[key] = time
            self._sequence += 1
            heappush(self._heap, (time, self._sequence, key))

    def process_watermark(self, watermark: int) -> None:
        self.ensure_loaded()
        heap = self._heap
        while heap and heap[0][0] <= watermark:
            time, _, key = heappop(heap)
            if self._next_look.get(key) == time:
                del self._next_look[key]
                # Before anything is dropped.
                self.context.timers.advance_watermark(time)
                self._at(time, key)
        self._passed.advance(watermark)
        self.emit_collected()
        super().process_watermark(watermark)

    def _at(self, time: int, key: Any) -> None:
        """Fire and drop the sessions of a key that are due at this time."""
        sessions = self._table.get(key)
        if sessions is MISSING:
            return
        kept = []
        next_time = None
        for session in sessions:
            end = session[1]
            fire_time, expiry = self._fire_time(end), self._expiry(end)
            if fire_time == time > self._passed.fired_until:
                self._fire(key, session)
            if expiry <= time:
                self.clear_function(key, TimeWindow(session[0], end))
                continue
            kept.append(session)
            due = fire_time if fire_time > max(time, self._passed.fired_until) else expiry
            next_time = due if next_time is None else min(next_time, due)
        if len(kept) < len(sessions):
            if kept:
                self._table.put(key, tuple(kept))
            else:
                self._table.remove(key)
        if next_time is not None:
            self._look_again(next_time, key)

    def _on_timer(self, key: Any, _: Any, time: int) -> None:
        sessions = self._table.get(key)
        for session in () if sessions is MISSING else sessions:
            if self._fire_time(session[1]) == time:
                self._fire(key, session)

    # Results

    def _fire(self, key: Any, session: Session) -> None:
        start, end, accumulator = session
        window = TimeWindow(start, end)
        try:
            result = copy_of(self._aggregator.result(accumulator))
        except Exception as error:
            raise self.failure(
                error, self._aggregator.called_for_result, [FiringWindow(key, window)]
            ) from error
        self.call_function(key, window, [result])

    # State

    def load(self) -> None:
        super().load()
        self._passed.load()
        self._next_look = {
            key: min(map(self._due, sessions)) for key, sessions in self._table.items()
        }
        looks = enumerate(self._next_look.items())
        self._heap[:] = [(time, number, key) for number, (key, time) in looks]
        heapify(self._heap)
        self._sequence = len(self._heap)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        self._passed.save()


def _start(session: Session) -> int:
    return session[0]


def _checked(gap: int) -> int:
    if gap <= 0:
        raise ValueError(f"the gap of a session must be positive, but the extractor returned {gap}")
    return gap
