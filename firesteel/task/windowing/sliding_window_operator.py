"""Event-time sliding windows with an incremental aggregate and the default trigger.

The results are those of the general operator, which adds records one by one, as they come, to the
accumulators of their windows. There are two faster ways to get them.

Keys have panes (``window_panes.py``) if the function is known to be commutative, or associative as
that of ``max``. Then the work per record does not depend on the number of windows. If the function
is only associative, the records of the key must come slice by slice.

The other keys have runs (``window_runs.py``). Records are added to each of their windows, but

- the windows of a key are one value, which is read once per record;
- windows of a key with the same records share an accumulator until their records differ;
- keys wait together for the end of a window.

sum, min and max of columns have panes of columns, if the order of records does not matter at all.
They are written into the tables of panes at the end of an epoch, or when the operator continues by
rows. It does so until no key has runs.

Expired windows stay in the runs until the key gets a record or its last window expires, so that
silent keys are not written again. A key with runs gets no panes before its last window has expired.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import islice
from operator import le
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.common.constants import MAX_WATERMARK
from firesteel.datastream.window import TimeWindow
from firesteel.graph.column_aggregation import ColumnAggregation
from firesteel.graph.operator_specs import WindowSpec
from firesteel.state.tables import MISSING, has_missing
from firesteel.task.column_aggregates import FieldAggregates
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.copies import are_scalars, copies_of, copy_of
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aggregators import create_aggregator
from firesteel.task.windowing.base_window_operator import (
    BaseWindowOperator,
    FiringWindow,
    PassedTime,
)
from firesteel.task.windowing.column_slices import (
    ColumnSlice,
    KeyedColumns,
    MergedPanes,
    emit_columns,
    part_of,
    places_in_slices,
)
from firesteel.task.windowing.key_schedule import KeySchedule
from firesteel.task.windowing.slices import SliceLayout, accumulators, pick, positions_of
from firesteel.task.windowing.window_panes import WindowPanes
from firesteel.task.windowing.window_runs import Run, WindowRuns, last_end

if TYPE_CHECKING:
    import numpy as np
else:
    from firesteel.common import numpy_on_demand as np

_EMIT_RECORDS = 4096
Plan = tuple[int, int, bool]
"""The windows that take a record: the ends of the first and the last, True if none has fired."""
_LATE: Plan = (0, 0, False)


class SlidingWindowOperator(BaseWindowOperator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        assigner = spec.assigner
        self._layout = SliceLayout(assigner.size, assigner.slide, assigner.offset)
        self._runs = WindowRuns(assigner.slide)
        self._lateness = spec.allowed_lateness
        self._updates = spec.output_mode == "update"
        # A final result waits until nothing can change it.
        self._fire_delay = self._lateness if spec.output_mode == "append" else 0
        self._aggregator = create_aggregator(spec.contents, self.name)
        self.stateless_function = self._aggregator.function
        self._table = context.keyed_state.value_table("_sliding-windows")
        self._schedule = KeySchedule()
        self._panes = WindowPanes(context.keyed_state, self._layout, self._aggregator)
        # The time at which the next window with panes fires, or None.
        self._panes_due: int | None = None
        # Panes keep merged accumulators in memory, and neither visit nor compare single windows.
        self._may_have_panes = (
            context.keyed_state.in_memory and not self._updates and self.calls.clear is None
        )
        self._aggregates: FieldAggregates | None = None
        if isinstance(spec.columns, ColumnAggregation) and self._may_have_panes:
            self._aggregates = FieldAggregates(spec.columns)
            self._merged_panes = MergedPanes(self._layout, self._aggregates)
        # The panes, if they are columns. Their tables have what earlier epochs left.
        self._columns: dict[int, ColumnSlice] = {}
        self._passed = PassedTime(context)
        # For records of windows that fired before a restart without a watermark.
        self._timers = context.timers.create(
            "window-timers", self._on_timer, self._on_timer, self.emit_collected
        )

    # Records

    def process(self, batch: RecordBatch) -> None:
        if self._aggregates is not None:
            if isinstance(batch, ColumnBatch) and self._process_columns(batch, self._aggregates):
                return
            self._make_rows()
        values, keys, timestamps = self.event_time_columns(batch)
        self._aggregator.prepare(values)
        if self._takes_panes():
            self._divide(values, keys, timestamps)
        else:
            self._convert(self._panes.keys())
            self._add_each(values, keys, timestamps)
        self.emit_collected()

    def _process_columns(self, batch: ColumnBatch, aggregates: FieldAggregates) -> bool:
        """Add a batch of columns. Return False, and change nothing, if it must be added as rows."""
        stamps = batch.stamps
        if stamps is None or not aggregates.accepts(batch):
            return False
        self.ensure_loaded()
        if self.context.clock.watermark < self._passed.fired_until:
            return False
        values = aggregates.values_in(batch.columns)
        if values is None:
            return False
        parts = places_in_slices(self._layout, stamps.to_numpy())
        if parts is None or not self._has_columns(aggregates):
            return False
        # A window has several panes.
        bound = sum(one.bound for one in self._columns.values())
        if aggregates.overflows(bound + aggregates.bound_of(values)):
            return False
        try:
            keys = aggregates.keys.arrays_of(batch.columns)
        except pa.ArrowException:
            return False
        columns = KeyedColumns(batch.columns, keys, values)
        late = []
        for start, places in parts.items():
            if self._plan(start) is _LATE:
                late.append(places)
                continue
            if start not in self._columns:
                self._columns[start] = ColumnSlice(aggregates)
                self._panes.create(start)
                self._look_at_panes()
            self._columns[start].add(columns.at(places))
            self._merged_panes.added(start)
        if late:
            self.late.add(part_of(batch, np.sort(np.concatenate(late))))
        return True

    def _has_columns(self, aggregates: FieldAggregates) -> bool:
        """Return True if all panes are columns now, and no key has runs."""
        if self._schedule:
            return False
        if self._columns or not self._panes:
            return True
        found = {}
        for start, table in self._panes.by_slice():
            found[start] = ColumnSlice(aggregates)
            if has_missing(table.overlay) or not found[start].load(accumulators(table)):
                return False
        self._columns = found
        self._merged_panes.forget()
        return True

    def _write_columns(self) -> None:
        """Write the panes of keys that have changed into their tables."""
        if self._columns:
            for start, table in self._panes.by_slice():
                table.overlay.update(zip(*self._columns[start].take_changed(), strict=True))

    def _make_rows(self) -> None:
        """Continue by rows."""
        if self._columns:
            self._write_columns()
            self._columns = {}
            self._panes.forget_merged()

    def _fire_columns(self, end: int) -> bool:
        """Emit the results of a window. Return False if only rows have them, or the error."""
        assert self._aggregates is not None
        found = self._merged_panes.window(end, self._columns)
        if found is None:
            return True
        try:
            results = self._aggregates.with_values(found.records, found.values)
        except pa.ArrowException:
            self._make_rows()
            return False
        emit_columns(self.output, ColumnBatch(results, self._aggregates.layout), end - 1)
        return True

    def _fire_panes(self, end: int) -> None:
        for _, table in self._panes.by_slice():
            # No record may have come since the restart.
            self._aggregator.prepare(list(islice(accumulators(table).values(), 1)))
            break
        self._emit(end, *self._merged(self._panes.fire, end))

    def _takes_panes(self) -> bool:
        # After a restart without a watermark, windows may begin again, without their old records.
        return (
            self._may_have_panes
            and self._aggregator.is_associative
            and self.context.clock.watermark >= self._passed.fired_until
        )

    def _divide(self, values: list[Any], keys: list[Any], timestamps: list[int]) -> None:
        """Add records to panes, and to runs those that are added to each of their windows."""
        layout = self._layout
        start = layout.slice_of(min(timestamps))
        apart = self._schedule.some_of(keys)
        commutes = self._aggregator.is_commutative
        if max(timestamps) < start + layout.width:
            plan = self._plan(start)
            if plan[2] and not commutes:
                apart |= self._panes.keys_after(start, keys)
            if plan[2] and not apart:
                self._add_to_pane(start, values, keys)
                return
            parts = {start: list(range(len(keys)))}
        else:
            starts = layout.slices_of(timestamps)
            parts = positions_of(starts)
            if not commutes:
                apart |= _out_of_order(keys, starts)
                for start, chosen in parts.items():
                    apart |= self._panes.keys_after(start, [keys[index] for index in chosen])
        rest: list[int] = []
        plans = {start: self._plan(start) for start in parts}
        for start, (_, _, is_fresh) in plans.items():
            if not is_fresh and plans[start] is not _LATE:
                apart.update(keys[index] for index in parts[start])
        self._convert(apart)
        for start, chosen in parts.items():
            if plans[start] is _LATE:
                rest += chosen
                continue
            if apart:
                rest += [index for index in chosen if keys[index] in apart]
                chosen = [index for index in chosen if keys[index] not in apart]
            if chosen:
                self._add_to_pane(start, *pick(chosen, values, keys))
        if rest:
            self._add_each(*pick(sorted(rest), values, keys, timestamps))

    def _add_to_pane(self, start: int, values: list[Any], keys: list[Any]) -> None:
        if self._panes.add(start, values, keys):
            self._look_at_panes()

    def _convert(self, keys: Iterable[Any]) -> None:
        """Replace the panes of these keys by runs."""
        if not self._panes:
            return
        # Windows that had expired at the snapshot must not return with an earlier watermark.
        watermark = max(self.context.clock.watermark, self._passed.saved)
        over = watermark + 1 - self._lateness
        for key, panes in self._panes.take(keys):
            runs = self._merged(self._panes.runs, panes, over)
            if runs:
                self._table.put(key, runs)
                due = self._next_due(runs, self.context.clock.watermark)
                if due is not None:
                    self._schedule.look(key, due)

    def _merged(self, merge: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of panes, which calls the function that merges accumulators."""
        try:
            return merge(*arguments)
        except Exception as error:
            raise self.failure(error, self._aggregator.called_for_merge) from error

    def _add_each(self, values: list[Any], keys: list[Any], timestamps: list[int]) -> None:
        """Add records to each of their windows."""
        aggregator = self._aggregator
        add_to_each = aggregator.add_to_each
        overlay = self._table.overlay
        in_overlay, missing = overlay.get, MISSING
        width, offset, slide = self._layout.width, self._layout.offset, self._layout.slide
        # The watermark is constant in a batch, so all records of a slice go to the same windows.
        plans: dict[int, Plan] = {}
        plan_of = plans.get
        late: tuple[list[Any], list[int]] = ([], [])
        iterator = iter(values)
        try:
            # The values come first: zip must not take a value that it then finds no key for.
            for value, key, timestamp in zip(iterator, keys, timestamps, strict=False):
                start = timestamp - (timestamp - offset) % width
                plan = plan_of(start)
                if plan is None:
                    plan = plans[start] = self._plan(start)
                first, last, is_fresh = plan
                runs = in_overlay(key, missing)
                if is_fresh and runs is not missing:
                    # The common case: all windows have had the last record of the key, too.
                    run_first, ends, held = runs[-1]
                    if ends[-1] == last and first >= run_first:
                        index = bisect_left(ends, first)
                        if first == (ends[index - 1] + slide if index else run_first):
                            held[index:] = add_to_each(held[index:], value)
                            continue
                if plan is _LATE:
                    late[0].append(value)
                    late[1].append(timestamp)
                    continue
                if runs is missing:
                    runs = self._own(key)
                self._add(key, value, plan, runs)
        except Exception as error:
            raise aggregator.failure(error, values, iterator) from error
        if late[0]:
            self.late.add(RecordBatch(*late))

    def _plan(self, start: int) -> Plan:
        """The windows of a slice that still take records."""
        ends, over, slide = self._layout.ends(start), self._newest_expired(), self._layout.slide
        first, last = ends[-1], ends[0]
        if last <= over:
            return _LATE
        if first <= over:
            first += (over - first) // slide * slide + slide
        passed = max(self.context.clock.watermark, self._passed.fired_until)
        return first, last, first - 1 + self._fire_delay > passed

    def _own(self, key: Any) -> list[Run]:
        """The runs of a key without expired windows, as copies that may be changed."""
        table = self._table
        found: Any = MISSING if key in table.overlay else table.base.get(key, MISSING)
        if found is MISSING:
            return []
        # Values from the base may be part of a snapshot, so the function gets copies.
        return _copies(self._runs.after(found, self._newest_expired()))

    def _newest_expired(self) -> int:
        """The highest end of expired windows."""
        watermark = self.context.clock.watermark
        return watermark if watermark == MAX_WATERMARK else watermark + 1 - self._lateness

    def _add(self, key: Any, value: Any, plan: Plan, runs: list[Run]) -> None:
        """Add a record to windows of which some are new or have fired."""
        first, last, is_fresh = plan
        fired = [] if is_fresh else self._fired_ends(first, last)
        before = [self._result(runs, end) for end in fired] if self._updates else None
        over = self._newest_expired()
        if runs and runs[0][0] + self._layout.size <= over:
            runs = self._runs.after(runs, over)
        runs, (_, _, held), begin, stop = self._runs.make_room(runs, first, last)
        aggregator = self._aggregator
        known = [kept for kept in held[begin:stop] if kept is not MISSING]
        added = iter(aggregator.add_to_each(known, value))
        held[begin:stop] = [
            aggregator.first(copy_of(value)) if kept is MISSING else next(added)
            for kept in held[begin:stop]
        ]
        self._table.put(key, runs)
        for number, end in enumerate(fired):
            result = self._result(runs, end)
            if before is None or result != before[number]:
                self._collect(key, end, result)
        watermark = self.context.clock.watermark
        if not is_fresh and watermark < self._passed.fired_until:
            self._register_timers(key, first, last)
        due = self._next_due(runs, watermark)
        if due is not None:
            self._schedule.look(key, due)

    def _fired_ends(self, first: int, last: int) -> list[int]:
        """The ends of the windows that fire again. As in Flink, the last window comes first."""
        watermark, slide = self.context.clock.watermark, self._layout.slide
        ends = range(last, first - 1, -slide)
        return [end for end in ends if end - 1 + self._fire_delay <= watermark]

    # Time

    def _expiry(self, end: int) -> int:
        return min(end - 1 + self._lateness, MAX_WATERMARK)

    def _next_due(self, runs: list[Run], time: int) -> int | None:
        """The next time at which a window of the key fires or expires, or None."""
        passed = max(time, self._passed.fired_until)
        end = self._runs.next_end(runs, passed + 1 - self._fire_delay)
        fire_time = None if end is None else end - 1 + self._fire_delay
        if fire_time is not None and self.calls.clear is None:
            return fire_time
        over = time + 1 - self._lateness
        # Only functions with a ``clear`` method need a visit at the end of every window.
        expiring = last_end(runs) if self.calls.clear is None else self._runs.next_end(runs, over)
        if expiring is None or expiring <= over:
            return fire_time
        expiry = expiring - 1 + self._lateness
        return expiry if fire_time is None else min(fire_time, expiry)

    def process_watermark(self, watermark: int) -> None:
        self.ensure_loaded()
        # With the last watermark everything is due.
        while self._panes_due is not None and (
            self._panes_due <= watermark or watermark == MAX_WATERMARK
        ):
            end = self._panes_due + 1 - self._fire_delay
            if not self._columns or not self._fire_columns(end):
                self._fire_panes(end)
            self._look_at_panes(end)
        if self._panes:
            self._panes.drop(lambda end: self._expiry(end) <= watermark)
            if self._columns:
                self._columns = {start: self._columns[start] for start, _ in self._panes.by_slice()}
        for time, keys in self._schedule.due(watermark):
            # Before anything is dropped.
            self.context.timers.advance_watermark(time)
            self._at(time, keys)
        self._passed.advance(watermark)
        super().process_watermark(watermark)

    def _look_at_panes(self, fired: int | None = None) -> None:
        """Find the next window with panes. Those up to ``fired``, and up to now, have fired."""
        if fired is None:
            passed = max(self.context.clock.watermark, self._passed.fired_until)
            fired = passed + 1 - self._fire_delay
        end = self._panes.next_end(fired)
        self._panes_due = None if end is None else end - 1 + self._fire_delay

    def _at(self, time: int, keys: list[Any]) -> None:
        """Fire and drop the windows of these keys that are due at this time."""
        end, slide = time + 1 - self._fire_delay, self._layout.slide
        overlay, base, missing = self._table.overlay.get, self._table.base.get, MISSING
        firing: list[Any] = []
        accumulators: list[Any] = []
        ending: list[Any] = []
        for key in keys:
            runs = overlay(key, missing)
            if runs is missing:
                runs = base(key, missing)
            first, ends, held = runs[0]
            if first <= end < ends[-1] and not (end - first) % slide:
                # The common case: the next window has records, too.
                accumulators.append(held[bisect_left(ends, end)])
                firing.append(key)
                continue
            ending.append(key)
            accumulator = self._runs.find(runs, end)
            if accumulator is not missing:
                accumulators.append(accumulator)
                firing.append(key)
        has_fired = time <= self._passed.fired_until
        if not has_fired:
            self._fire(end, firing, accumulators)
        if has_fired or self.calls.clear is not None:
            ending = keys
        for key in ending:
            self._end(key, time)
        if len(ending) < len(keys):
            ended = set(ending)
            self._schedule.look_next([key for key in keys if key not in ended], time + slide)

    def _end(self, key: Any, time: int) -> None:
        """Expire a window of the key, and the key if it was the last one."""
        runs, expired = self._table.get(key), time + 1 - self._lateness
        if self.calls.clear is not None and self._runs.find(runs, expired) is not MISSING:
            self.clear_function(key, self._window(expired))
        due = self._next_due(runs, time)
        if due is None:
            self._table.remove(key)
            self._schedule.forget(key)
        else:
            self._schedule.look_next([key], due)

    def _fire(self, end: int, keys: list[Any], held: list[Any]) -> None:
        """Emit the results of a window. ``held`` has the accumulator of each key."""
        if not are_scalars(held):
            get, find_own = self._table.get, self._runs.find_own
            held = [find_own(get(key), end) for key in keys]
        self._emit(end, keys, held)

    def _emit(self, end: int, keys: list[Any], held: list[Any]) -> None:
        """Emit the results of a window. The accumulators may be changed."""
        if self.calls.function is not None or self._updates:
            for key, accumulator in zip(keys, held, strict=True):
                self._collect(key, end, self._results(end, [accumulator], key)[0])
            self.emit_collected()
            return
        for first in range(0, len(held), _EMIT_RECORDS):
            results = self._results(end, held[first : first + _EMIT_RECORDS])
            self.output.emit(RecordBatch(results, [end - 1] * len(results)))

    # After a restart without a watermark

    def _register_timers(self, key: Any, first: int, last: int) -> None:
        """Let windows that fired before the restart fire again for this key."""
        watermark, slide = self.context.clock.watermark, self._layout.slide
        for end in range(first, last + 1, slide):
            fire_time = end - 1 + self._fire_delay
            if watermark < fire_time <= self._passed.fired_until:
                self._timers.register_event_time_timer(key, end, fire_time)

    def _on_timer(self, key: Any, end: int, _: int) -> None:
        runs = self._table.get(key)
        result = MISSING if runs is MISSING else self._result(runs, end)
        if result is not MISSING:
            self._collect(key, end, result)

    # Results

    def _window(self, end: int) -> TimeWindow:
        return TimeWindow(end - self._layout.size, end)

    def _result(self, runs: list[Run], end: int) -> Any:
        """The result of a window, or MISSING if the window is empty."""
        accumulator = self._runs.find_own(runs, end)
        return MISSING if accumulator is MISSING else self._results(end, [accumulator])[0]

    def _results(self, end: int, held: list[Any], key: Any = None) -> list[Any]:
        result = self._aggregator.result
        try:
            # The accumulators may change after their results were emitted.
            return copies_of([result(accumulator) for accumulator in held])
        except Exception as error:
            window = None if key is None else [FiringWindow(key, self._window(end))]
            raise self.failure(error, self._aggregator.called_for_result, window) from error

    def _collect(self, key: Any, end: int, result: Any) -> None:
        window = self._window(end)
        if self._updates:
            self.collected.add([((key, window), result)], end - 1)
        else:
            self.call_function(key, window, [result])

    # State

    def load(self) -> None:
        super().load()
        self._passed.load()
        self._columns = {}
        self._panes.load()
        self._look_at_panes()
        self._schedule.clear()
        watermark = self.context.clock.watermark
        # Windows that had expired at the snapshot must not return with an earlier watermark.
        over = self._passed.saved + 1 - self._lateness
        for key, found in self._table.items():
            runs = found
            if runs[0][0] <= over:
                runs = _copies(self._runs.after(runs, over))
                if not runs:
                    self._table.remove(key)
                    continue
                self._table.put(key, runs)
            due = self._next_due(runs, watermark)
            if due is not None:
                self._schedule.look(key, due)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        self._passed.save()
        self._write_columns()


def _copies(runs: list[Run]) -> list[Run]:
    return [(first, ends, copies_of(held)) for first, ends, held in runs]


def _out_of_order(keys: list[Any], starts: list[int]) -> set[Any]:
    """Return the keys with a record after one of a later slice."""
    if all(map(le, starts, islice(starts, 1, None))):
        return set()
    newest: dict[Any, int] = {}
    found = set()
    for key, start in zip(keys, starts, strict=True):
        if start < newest.get(key, start):
            found.add(key)
        else:
            newest[key] = start
    return found
