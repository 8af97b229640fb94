"""Calls of the user's window functions, with their context and state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from itertools import chain
from typing import Any

from firesteel.datastream.functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    KeyedStateStore,
    MapPartitionFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import WindowJoinSpec
from firesteel.task.key_context import NamespacedKey
from firesteel.task.operators.base import OperatorContext
from firesteel.task.state.keyed_state_store import TaskKeyedStateStore


class FunctionContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The context of a window. One object serves all: ``scope.namespace`` is the firing window."""

    def __init__(self, context: OperatorContext, *, merging: bool) -> None:
        self._context = context
        self._merging = merging
        self.scope = NamespacedKey(context.key_context)
        self._window_state: KeyedStateStore | None = None

    def window(self) -> Any:
        return self.scope.namespace

    def current_processing_time(self) -> int:
        return self._context.clock.now_millis()

    def current_watermark(self) -> int:
        return self._context.clock.watermark

    def window_state(self) -> KeyedStateStore:
        if self._merging:
            raise InvalidProgramError(
                "windows that merge have no per-window state: use global_state()"
            )
        if self._window_state is None:
            self._window_state = window_store(self._context, self.scope, "window")
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._context.runtime_context()


def window_store(context: OperatorContext, scope: NamespacedKey, owner: str) -> KeyedStateStore:
    """Return state by key and window. ``owner`` separates the names of triggers and functions."""
    return _PrefixedStore(
        TaskKeyedStateStore(context.keyed_state, context.key_context, context.clock, scope), owner
    )


class _PrefixedStore(KeyedStateStore):
    def __init__(self, store: TaskKeyedStateStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def get_state(self, state_descriptor: Any) -> Any:
        return self._store.get_state(self._named(state_descriptor))

    def get_list_state(self, state_descriptor: Any) -> Any:
        return self._store.get_list_state(self._named(state_descriptor))

    def get_map_state(self, state_descriptor: Any) -> Any:
        return self._store.get_map_state(self._named(state_descriptor))

    def get_reducing_state(self, state_descriptor: Any) -> Any:
        return self._store.get_reducing_state(self._named(state_descriptor))

    def get_aggregating_state(self, state_descriptor: Any) -> Any:
        return self._store.get_aggregating_state(self._named(state_descriptor))

    def _named(self, descriptor: Any) -> Any:
        named = copy(descriptor)
        named.name = f"{self._prefix}/{descriptor.name}"
        return named


Call = Callable[[Any, Any, list[Any]], Iterable[Any]]


class WindowCalls:
    """Calls the function of a window.

    call: gives the results of (key, window, contents).
    clear: called when a window expires, or None if the function has no ``clear`` of its own.
    function: the object to open and close. It is None for a plain callable, and if the contents are
        the results.
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


Sides = tuple[list[Any], list[Any]]


class PairCalls:
    """Calls the function of a window over two streams.

    call: gives the results of (key, window, (lefts, rights)).
    groups: the function is also called if one side is empty.
    function: the object to open and close, or None for a plain callable.
    """

    clear: None = None

    def __init__(self, spec: WindowJoinSpec) -> None:
        given = spec.window_function
        self.function: Function | None = given if isinstance(given, Function) else None
        self.groups = spec.groups
        self.user_call: Callable[..., Any] = given
        self.call: Callable[[Any, Any, Sides], Iterable[Any]]
        if isinstance(given, CoGroupFunction):
            self.user_call = given.co_group
        elif isinstance(given, JoinFunction | FlatJoinFunction):
            self.user_call = given.join
        if spec.groups:
            self.call = self._group
        elif isinstance(given, FlatJoinFunction):
            self.call = self._join_flat
        else:
            self.call = self._join

    def _join(self, _: Any, __: Any, sides: Sides) -> Iterable[Any]:
        # No starmap(): it takes a StopIteration of the user's function for the end of the pairs.
        join, (lefts, rights) = self.user_call, sides
        return chain.from_iterable([join(left, right) for right in rights] for left in lefts)

    def _join_flat(self, _: Any, __: Any, sides: Sides) -> Iterable[Any]:
        join, (lefts, rights) = self.user_call, sides
        return (result for left in lefts for right in rights for result in join(left, right))

    def _group(self, _: Any, __: Any, sides: Sides) -> Iterable[Any]:
        results: Iterable[Any] = self.user_call(*sides)
        return results
