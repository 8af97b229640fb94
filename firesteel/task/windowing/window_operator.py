"""The general window operator: any assigner, any trigger, windows that merge or not.

The rules are those of Flink's WindowOperator:
- A window is late when the watermark has reached its last moment plus the allowed lateness. A
  record is late if all of its windows are.
- A window that fires emits the results of its contents, with its last moment as their timestamp.
- The contents and the states of trigger and function are dropped at the last moment plus lateness.
"""

from __future__ import annotations

from copy import copy
from itertools import repeat
from typing import Any

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import RuntimeContext
from firesteel.datastream.state import ListStateDescriptor
from firesteel.datastream.window import MergingWindowAssigner, TriggerResult, WindowAssigner
from firesteel.datastream.window.assigners import TumblingWindows
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import WindowSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aggregators import Aggregator, create_aggregator
from firesteel.task.windowing.base_window_operator import BaseWindowOperator, FiringWindow
from firesteel.task.windowing.merging_window_set import MergingWindowSet, MergingWindowSets
from firesteel.task.windowing.output_modes import OUTPUT_MODES
from firesteel.task.windowing.trigger_context import TaskTriggerContext
from firesteel.task.windowing.window_state import (
    TimedRecordsState,
    WindowState,
    create_window_state,
)
from firesteel.usercode.failures import failed_function


class StaggeredAssigner:
    """An assigner with a stagger offset, which is operator state.

    assigner: a copy, because different operators may share the one of the program.
    """

    def __init__(self, assigner: TumblingWindows, context: OperatorContext) -> None:
        self.assigner = copy(assigner)
        self._context = context
        self._saved: int | None = None

    def load(self) -> None:
        """Read the offset. After rescaling there may be several, or none."""
        shifts = self._state().get()
        self._saved = self.assigner.stagger_offset = shifts[0] if shifts else None

    def save(self) -> None:
        shift = self.assigner.stagger_offset
        if shift is not None and shift != self._saved:
            self._saved = shift
            self._state().update([shift])

    def _state(self) -> Any:
        descriptor = ListStateDescriptor("stagger-offset", Types.LONG())
        return self._context.operator_state.get_list_state(descriptor)


def staggered(assigner: Any, context: OperatorContext) -> StaggeredAssigner | None:
    if isinstance(assigner, TumblingWindows) and assigner.is_staggered:
        return StaggeredAssigner(assigner, context)
    return None


_CONTINUE = TriggerResult.CONTINUE


class AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._runtime_context: RuntimeContext | None = None

    def get_current_processing_time(self) -> int:
        return self._context.clock.now_millis()

    def get_runtime_context(self) -> RuntimeContext:
        if self._runtime_context is None:
            self._runtime_context = self._context.runtime_context()
        return self._runtime_context


class WindowOperator(BaseWindowOperator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._spec = spec
        self._staggered = staggered(spec.assigner, context)
        self._assigner = spec.assigner if self._staggered is None else self._staggered.assigner
        self._trigger = spec.trigger
        self._lateness = spec.allowed_lateness
        self._is_event_time = spec.assigner.is_event_time()
        self.contents = self.create_state(spec, context)
        if self.contents.aggregator is not None:
            self.stateless_function = self.contents.aggregator.function
        self._key_context = context.key_context
        self._clock = context.clock
        self._timers = context.timers.create(
            "window-timers", self._on_event_time, self._on_processing_time, self._round_ended
        )
        self._trigger_context = TaskTriggerContext(context, self._timers)
        self._assigner_context = AssignerContext(context)
        self._merging: MergingWindowSets | None = None
        if isinstance(spec.assigner, MergingWindowAssigner):
            self._merging = MergingWindowSets(context.keyed_state, spec.assigner)
        self._results = OUTPUT_MODES[spec.output_mode](
            context.keyed_state, self.call_function, lambda: self.collected
        )
        # Late records of the current batch.
        self._late_values: list[Any] = []
        self._late_stamps: list[int] = []

    def create_state(self, spec: WindowSpec, context: OperatorContext) -> WindowState:
        return create_window_state(context.keyed_state, spec.contents, self.name)

    # Records

    def process(self, batch: RecordBatch) -> None:
        values, keys, timestamps = batch.values, batch.keys, batch.timestamps
        assert keys is not None
        self.ensure_loaded()
        process = self._process if self._merging is None else self._process_merging
        stamps = repeat(MIN_WATERMARK) if timestamps is None else timestamps
        key_context = self._key_context
        iterator = iter(values)
        try:
            for value, key, stamp in zip(iterator, keys, stamps, strict=False):
                key_context.key = key
                process(value, key, stamp)
        except Exception as error:
            raise self.failure(error, self._failed(error), values, iterator) from error
        if self._late_values:
            late = RecordBatch(self._late_values, self._late_stamps)
            self._late_values, self._late_stamps = [], []
            self.add_late(late)
        self._round_ended()

    def add_late(self, batch: RecordBatch) -> None:
        self.late.add(batch)

    def _process(self, value: Any, key: Any, timestamp: int) -> None:
        skipped = True
        for window in self._assigner.assign_windows(value, timestamp, self._assigner_context):
            if self._is_late(window):
                continue
            skipped = False
            self._add(value, key, timestamp, window, window)
        if skipped:
            self._skip(value, timestamp)

    def _process_merging(self, value: Any, key: Any, timestamp: int) -> None:
        assert self._merging is not None
        windows = self._merging.of(key)
        skipped = True
        for new in self._assigner.assign_windows(value, timestamp, self._assigner_context):
            window = windows.add(new, self._merge)
            if self._is_late(window):
                windows.retire(window)
                continue
            skipped = False
            self._add(value, key, timestamp, window, windows.state_window(window))
        self._merging.persist(key, windows)
        if skipped:
            self._skip(value, timestamp)

    def _add(self, value: Any, key: Any, timestamp: int, window: Any, state_window: Any) -> None:
        stamp = None if timestamp == MIN_WATERMARK else timestamp
        self.contents.add(key, state_window, value, stamp)
        context = self._trigger_context
        context.window = window
        result = self._trigger.on_element(value, timestamp, window, context)
        self._obey(result, key, window, state_window)
        cleanup = self._cleanup_time(window)
        if cleanup == MAX_WATERMARK:
            return
        context.window = window
        if self._is_event_time:
            context.register_event_time_timer(cleanup)
        else:
            context.register_processing_time_timer(cleanup)

    def _skip(self, value: Any, timestamp: int) -> None:
        """Note a record that is in no window as late, unless it never had a window."""
        if self._is_event_time and timestamp + self._lateness <= self.context.clock.watermark:
            self._late_values.append(value)
            self._late_stamps.append(timestamp)

    def _merge(self, window: Any, merged: list[Any], state_window: Any, others: list[Any]) -> None:
        """Merge windows of the current key into ``window``."""
        self._check_merged(window)
        key, context = self._key_context.key, self._trigger_context
        context.window, context.merged = window, merged
        self._trigger.on_merge(window, context)
        for old in merged:
            context.window = old
            self._trigger.clear(old, context)
            cleanup = self._cleanup_time(old)
            if cleanup == MAX_WATERMARK:
                continue
            if self._is_event_time:
                context.delete_event_time_timer(cleanup)
            else:
                context.delete_processing_time_timer(cleanup)
        self.contents.merge(key, state_window, others)
        self._results.merged(key, merged)

    def _check_merged(self, window: Any) -> None:
        if self._is_event_time:
            is_over = self._is_late(window)
        else:
            is_over = window.max_timestamp() <= self.context.clock.now_millis()
        if is_over:
            raise InvalidProgramError(
                f"'{self.name}': merging created {window}, whose end has already passed. An "
                f"assigner must not merge windows into one that ends earlier."
            )

    # Time

    def _cleanup_time(self, window: Any) -> int:
        last: int = window.max_timestamp()
        return min(last + self._lateness, MAX_WATERMARK) if self._is_event_time else last

    def _is_late(self, window: Any) -> bool:
        return self._is_event_time and self._cleanup_time(window) <= self._clock.watermark

    def _on_event_time(self, key: Any, window: Any, time: int) -> None:
        self._on_timer(key, window, time, self._trigger.on_event_time, self._is_event_time)

    def _on_processing_time(self, key: Any, window: Any, time: int) -> None:
        self._on_timer(key, window, time, self._trigger.on_processing_time, not self._is_event_time)

    def _on_timer(self, key: Any, window: Any, time: int, on_time: Any, ends_windows: bool) -> None:
        self._key_context.key = key
        windows: MergingWindowSet | None = None
        state_window = window
        if self._merging is not None:
            windows = self._merging.of(key)
            state_window = windows.state_window(window)
            if state_window is None:
                # The window was merged, and the trigger did not delete its timer.
                return
        context = self._trigger_context
        context.window = window
        try:
            self._obey(on_time(time, window, context), key, window, state_window)
            if ends_windows and time == self._cleanup_time(window):
                self._drop(key, window, state_window, windows)
        except Exception as error:
            raise self.failure(error, self._failed(error), [FiringWindow(key, window)]) from error
        if self._merging is not None and windows is not None:
            self._merging.persist(key, windows)

    def _drop(
        self, key: Any, window: Any, state_window: Any, windows: MergingWindowSet | None
    ) -> None:
        self._results.expire(key, window, lambda: self.final_contents(key, window, state_window))
        self.contents.clear(key, state_window)
        self._trigger_context.window = window
        self._trigger.clear(window, self._trigger_context)
        self.clear_function(key, window)
        if windows is not None:
            windows.retire(window)

    # Results

    def _obey(self, result: TriggerResult, key: Any, window: Any, state_window: Any) -> None:
        if result is _CONTINUE:
            return
        if not isinstance(result, TriggerResult):
            raise TypeError(f"a trigger must return a TriggerResult, but it returned {result!r}")
        if result.is_fire():
            results = self._results
            if results.waits:
                return
            self.fire(key, window, state_window)
            if results.accumulates and self._cleanup_time(window) != MAX_WATERMARK:
                # The contents are dropped when the window expires.
                return
        if result.is_purge():
            self.contents.clear(key, state_window)
            self._results.purged(key, window)

    def fire(self, key: Any, window: Any, state_window: Any) -> None:
        contents = self.contents.get(key, state_window)
        if contents is not None:
            self._results.fire(key, window, contents)

    def final_contents(self, key: Any, window: Any, state_window: Any) -> list[Any] | None:
        """The contents for the function of a window that is about to be dropped."""
        return self.contents.get(key, state_window)

    def _round_ended(self) -> None:
        self._results.round_ended()
        self.emit_collected()

    def _failed(self, error: Exception) -> Any:
        aggregator = self.contents.aggregator
        return failed_function(
            error,
            *self._functions(),
            *(() if aggregator is None else aggregator.user_functions),
            self._trigger.on_element,
        )

    def _functions(self) -> list[Any]:
        trigger, assigner = self._trigger, self._assigner
        return [
            assigner.assign_windows,
            trigger.on_element,
            trigger.on_event_time,
            trigger.on_processing_time,
            trigger.on_merge,
            trigger.clear,
        ]

    # State

    def load(self) -> None:
        super().load()
        if self._staggered is not None:
            self._staggered.load()

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        if self._staggered is not None:
            self._staggered.save()

    def restore(self, whole: Any) -> None:
        super().restore(whole)
        self._late_values, self._late_stamps = [], []


class EvictingWindowOperator(WindowOperator):
    """Keeps all records for an evictor. Aggregates are computed from the rest at each firing."""

    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        self._aggregator: Aggregator | None = None
        super().__init__(spec, context)
        self._evictor = spec.evictor
        if spec.contents.is_aggregate:
            self._aggregator = create_aggregator(spec.contents, self.name)
            self.stateless_function = self._aggregator.function

    def create_state(self, spec: WindowSpec, context: OperatorContext) -> WindowState:
        self._records = TimedRecordsState(context.keyed_state)
        return self._records

    def fire(self, key: Any, window: Any, state_window: Any) -> None:
        elements = self._records.timed(key, state_window)
        if not elements:
            return
        context, evictor = self._trigger_context, self._evictor
        kept = list(evictor.evict_before(elements, len(elements), window, context))
        values = [element.value for element in kept]
        if values or self._aggregator is None:
            self._results.fire(key, window, self._aggregated(values))
        kept = list(evictor.evict_after(kept, len(kept), window, context))
        if len(kept) < len(elements):
            self._records.replace(key, state_window, kept)

    def final_contents(self, key: Any, window: Any, state_window: Any) -> list[Any] | None:
        elements = self._records.timed(key, state_window)
        if not elements:
            return None
        kept = self._evictor.evict_before(elements, len(elements), window, self._trigger_context)
        values = [element.value for element in kept]
        return self._aggregated(values) if values or self._aggregator is None else None

    def _aggregated(self, values: list[Any]) -> list[Any]:
        aggregator = self._aggregator
        if aggregator is None:
            return values
        aggregator.prepare(values)
        first, *rest = values
        accumulator = aggregator.first(first)
        for value in rest:
            accumulator = aggregator.add(accumulator, value)
        return [aggregator.result(accumulator)]

    def _functions(self) -> list[Any]:
        called = () if self._aggregator is None else self._aggregator.user_functions
        evicting = [self._evictor.evict_before, self._evictor.evict_after]
        return [*super()._functions(), *called, *evicting]
