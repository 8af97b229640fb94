"""The base of all window operators: their window function, late records and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.constants import MIN_WATERMARK
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import Function
from firesteel.datastream.state import ListStateDescriptor
from firesteel.datastream.window import MergingWindowAssigner
from firesteel.datastream.window.assigners import NoTimestampError
from firesteel.graph.operator_specs import WindowSpec
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.late_records import LateRecords
from firesteel.task.operators.process import ResultCollector
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.window_functions import FunctionContext, PairCalls, WindowCalls


class PassedTime:
    """Past watermarks, which windows must not fire for again.

    fired_until: the highest watermark so far.
    saved: the watermark of the restored snapshot.
    """

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self.fired_until = MIN_WATERMARK
        self.saved = MIN_WATERMARK

    def advance(self, watermark: int) -> None:
        self.fired_until = max(self.fired_until, watermark)

    def load(self) -> None:
        # All subtasks had the same watermark, because they had the same channels.
        pairs = self._state().get()
        self.fired_until = min((pair[0] for pair in pairs), default=MIN_WATERMARK)
        self.saved = min((pair[1] for pair in pairs), default=MIN_WATERMARK)

    def save(self) -> None:
        now = (self.fired_until, self._context.clock.watermark)
        if [now] != self._state().get():
            self._state().update([now])

    def _state(self) -> Any:
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        return self._context.operator_state.get_union_list_state(
            ListStateDescriptor("window-watermark", pair)
        )


class FiringWindow:
    """Stands for the record in the error of a window."""

    def __init__(self, key: Any, window: Any) -> None:
        self._key = key
        self._window = window

    def __repr__(self) -> str:
        return f"{self._window!r} of key {self._key!r}"


class BaseWindowOperator(Operator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self.late = LateRecords(spec.late_tags, context, self.output)
        # The input of the current batch.
        self.side = 0
        self.calls = self.create_calls(spec)
        # Results since the last emit.
        self.collected = ResultCollector(self.output)
        # As in Flink, this function has no state. Only the window function has.
        self.stateless_function: Function | None = None
        self._loaded = False

    def create_calls(self, spec: WindowSpec) -> WindowCalls | PairCalls:
        merging = isinstance(spec.assigner, MergingWindowAssigner)
        context = FunctionContext(self.context, merging=merging)
        return WindowCalls(spec.window_function, context)

    def open(self) -> None:
        self.ensure_loaded()
        if self.stateless_function is not None:
            self._open(self.stateless_function, self.context.bare_runtime_context())
        if self.calls.function is not None:
            self._open(self.calls.function, self.context.runtime_context())

    def _open(self, function: Function, context: Any) -> None:
        try:
            function.open(context)
        except Exception as error:
            raise self.failure(error, function.open) from error

    def close(self) -> None:
        for function in (self.stateless_function, self.calls.function):
            if function is not None:
                try:
                    function.close()
                except Exception as error:
                    raise self.failure(error, function.close) from error

    # State

    def restore(self, whole: Any) -> None:
        """Read the state later, because tables may still be added."""
        self._loaded = False
        self.collected = ResultCollector(self.output)

    def ensure_loaded(self) -> None:
        if not self._loaded:
            self._loaded = True
            self.load()

    def load(self) -> None:
        """Called once state has been restored."""
        self.late.load()

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        self.ensure_loaded()
        self.late.save()

    # Records

    def event_time_columns(self, batch: RecordBatch) -> tuple[list[Any], list[Any], list[int]]:
        """The values, keys and timestamps of a batch, which must have timestamps."""
        values, keys, timestamps = batch.values, batch.keys, batch.timestamps
        assert keys is not None
        if timestamps is None:
            raise self.failure(NoTimestampError(), self.process, values[:1])
        self.ensure_loaded()
        return values, keys, timestamps

    # Results

    def call_function(self, key: Any, window: Any, contents: Any) -> None:
        """Call the window's function, and collect its results."""
        self.context.key_context.key = key
        try:
            results: Iterable[Any] | None = self.calls.call(key, window, contents)
            if results is not None:
                self.collected.add(results, window.max_timestamp())
        except Exception as error:
            raise self.failure(error, self.calls.user_call, [FiringWindow(key, window)]) from error

    def clear_function(self, key: Any, window: Any) -> None:
        """Tell the window's function that the window has expired."""
        clear = self.calls.clear
        if clear is None:
            return
        self.context.key_context.key = key
        try:
            clear(window)
        except Exception as error:
            raise self.failure(error, clear, [FiringWindow(key, window)]) from error

    def emit_collected(self) -> None:
        collected, self.collected = self.collected, ResultCollector(self.output)
        collected.emit()
