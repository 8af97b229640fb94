"""Event-time session windows with an incremental aggregate and the default trigger.

The results are those of the general operator. A key has a few sessions, (start, end, accumulator),
in one value. A record extends a session, begins one, or joins two. Keys wait together for the time
at which they are due. A record moves its key only if it becomes due earlier.
"""

from __future__ import annotations

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
from firesteel.task.windowing.key_schedule import KeySchedule
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
        self._schedule = KeySchedule()
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
        first, add, gap, extract = aggregator.first, aggregator.add, self._gap, self._extract
        look, last = self._schedule.look, 1 - (self._lateness if self._emits_once else 0)
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
                if not sessions:
                    # The key begins a session, which fires later.
                    if end - last > passed:
                        overlay[key] = ((start, end, first(value)),)
                        look(key, end - last)
                        continue
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
        self._schedule.look(key, self._due(session))
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

    def process_watermark(self, watermark: int) -> None:
        self.ensure_loaded()
        for time, keys in self._schedule.due(watermark):
            # Before anything is dropped.
            self.context.timers.advance_watermark(time)
            self._at(time, keys)
        self._passed.advance(watermark)
        self.emit_collected()
        super().process_watermark(watermark)

    def _at(self, time: int, keys: list[Any]) -> None:
        """Fire and drop the sessions of these keys that are due at this time."""
        get, remove = self._table.get, self._table.remove
        look, forget = self._schedule.look_next, self._schedule.forget
        fires_once = (
            not self._lateness and self.calls.clear is None and time > self._passed.fired_until
        )
        for key in keys:
            sessions = get(key)
            if sessions is MISSING:
                forget(key)
            elif not fires_once or len(sessions) > 1:
                self._at_key(time, key, sessions)
            elif sessions[0][1] - 1 > time:
                # The common cases: the session has continued, or it ends.
                look([key], sessions[0][1] - 1)
            else:
                self._fire(key, sessions[0])
                remove(key)
                forget(key)

    def _at_key(self, time: int, key: Any, sessions: tuple[Session, ...]) -> None:
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
            self._schedule.look_next([key], next_time)
        else:
            self._schedule.forget(key)

    def _on_timer(self, key: Any, _: Any, time: int) -> None:
        sessions = self._table.get(key)
        for session in () if sessions is MISSING else sessions:
            if self._fire_time(session[1]) == time:
                self._fire(key, session)

    # Results

    def _fire(self, key: Any, session: Session) -> None:
        start, end, accumulator = session
        try:
            result = copy_of(self._aggregator.result(accumulator))
        except Exception as error:
            raise self.failure(
                error,
                self._aggregator.called_for_result,
                [FiringWindow(key, TimeWindow(start, end))],
            ) from error
        if self.calls.function is None:
            # The result of the aggregate is the result of the window.
            self.collected.results.append(result)
            self.collected.stamps.append(end - 1)
        else:
            self.call_function(key, TimeWindow(start, end), [result])

    # State

    def load(self) -> None:
        super().load()
        self._passed.load()
        self._schedule.clear()
        for key, sessions in self._table.items():
            self._schedule.look(key, min(map(self._due, sessions)))

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        self._passed.save()


def _start(session: Session) -> int:
    return session[0]


def _checked(gap: int) -> int:
    if gap <= 0:
        raise ValueError(f"the gap of a session must be positive, but the extractor returned {gap}")
    return gap
