"""Calling the user's window function, whichever kind it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.functions import (
    AllWindowFunction,
    Function,
    MapPartitionFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from firesteel.task.windowing.window_context import FunctionContext

Call = Callable[[Any, Any, list[Any]], Iterable[Any]]


class WindowCalls:
    """``call(key, window, contents)`` gives results. ``clear`` is None where nobody listens.

    ``function`` is None where the contents are the results, and where there is nothing to open.
    """

    def __init__(
        self, function: Function | Callable[..., Any] | None, context: FunctionContext
    ) -> None:
        self.function = function if isinstance(function, Function) else None
        self._context = context
        self.call: Call = _contents_are_results
        self.user_call: Callable[..., Any] = _contents_are_results
        self.clear: Callable[[Any], None] | None = None
        if isinstance(function, WindowFunction):
            self.call = self.user_call = function.apply
        elif isinstance(function, MapPartitionFunction):
            self.user_call = function.called
            self.call = _partition_call(function.map_partition)
        elif function is not None and not isinstance(function, Function):
            self.user_call = function
            self.call = _partition_call(function)
        elif isinstance(function, AllWindowFunction):
            self.user_call = function.apply
            self.call = self._apply_to_all
        elif isinstance(function, ProcessWindowFunction | ProcessAllWindowFunction):
            self.user_call = function.process
            keyed = isinstance(function, ProcessWindowFunction)
            self.call = self._process if keyed else self._process_all
            base = ProcessWindowFunction if keyed else ProcessAllWindowFunction
            if type(function).clear is not base.clear:
                self.clear = self._clear

    def _apply_to_all(self, _: Any, window: Any, contents: list[Any]) -> Iterable[Any]:
        results: Iterable[Any] = self.user_call(window, contents)
        return results

    def _process(self, key: Any, window: Any, contents: list[Any]) -> Iterable[Any]:
        self._context.scope.namespace = window
        results: Iterable[Any] = self.user_call(key, self._context, contents)
        return results

    def _process_all(self, _: Any, window: Any, contents: list[Any]) -> Iterable[Any]:
        self._context.scope.namespace = window
        results: Iterable[Any] = self.user_call(self._context, contents)
        return results

    def _clear(self, window: Any) -> None:
        assert isinstance(self.function, ProcessWindowFunction | ProcessAllWindowFunction)
        self._context.scope.namespace = window
        self.function.clear(self._context)


def _contents_are_results(_: Any, __: Any, contents: list[Any]) -> list[Any]:
    return contents


def _partition_call(map_partition: Callable[[list[Any]], Iterable[Any] | None]) -> Call:
    return lambda _, __, contents: map_partition(contents) or ()
