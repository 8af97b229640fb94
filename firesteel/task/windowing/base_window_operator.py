"""What both window operators have in common: functions, late records, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.functions import Function
from firesteel.datastream.window import MergingWindowAssigner
from firesteel.graph.operator_specs import WindowSpec
from firesteel.task.errors import user_function_error
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.process import ResultCollector
from firesteel.task.windowing.late_records import LateRecords
from firesteel.task.windowing.pair_calls import PairCalls
from firesteel.task.windowing.window_calls import WindowCalls
from firesteel.task.windowing.window_context import FunctionContext


class FiringWindow:
    """What an error says in place of the record."""

    def __init__(self, key: Any, window: Any) -> None:
        self._key = key
        self._window = window

    def __repr__(self) -> str:
        return f"{self._window!r} of key {self._key!r}"


class BaseWindowOperator(Operator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self.late = LateRecords(spec.late_tags, context, self.output)
        # The input that the records at hand come from.
        self.side = 0
        self.calls = self.create_calls(spec)
        # Results since the last emit.
        self.collected = ResultCollector(self.output)
        # As in Flink, only the window function has state of its own.
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

    def failure(
        self,
        error: BaseException,
        function: Callable[..., Any],
        values: list[Any] | None = None,
        iterator: Any = None,
    ) -> Exception:
        return user_function_error(error, self.name, function, values, iterator)

    # State

    def restore(self, whole: Any) -> None:
        """Tables may still be added after this; they are looked at when they are needed."""
        self._loaded = False
        self.collected = ResultCollector(self.output)

    def ensure_loaded(self) -> None:
        if not self._loaded:
            self._loaded = True
            self.load()

    def load(self) -> None:
        """Keyed and operator state are what they are to be."""
        self.late.load()

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        self.ensure_loaded()
        self.late.save()

    # Results

    def call_function(self, key: Any, window: Any, contents: Any) -> None:
        """Collect what the window's function makes of its contents."""
        self.context.key_context.key = key
        try:
            results: Iterable[Any] | None = self.calls.call(key, window, contents)
            if results is not None:
                self.collected.add(results, window.max_timestamp())
        except Exception as error:
            raise self.failure(error, self.calls.user_call, [FiringWindow(key, window)]) from error

    def clear_function(self, key: Any, window: Any) -> None:
        """Tell the window's function that the window is gone."""
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
