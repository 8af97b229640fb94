"""What window functions and triggers may ask about the key and window at hand."""

from __future__ import annotations

from copy import copy
from typing import Any

from firesteel.datastream.functions import (
    KeyedStateStore,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from firesteel.errors import InvalidProgramError
from firesteel.task.operators.base import OperatorContext
from firesteel.task.state.key_context import NamespacedKey
from firesteel.task.state.keyed_state_store import TaskKeyedStateStore


class FunctionContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """One object for all windows: ``scope.namespace`` is the window that fires."""

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
                "windows that merge have no state of their own: use global_state()"
            )
        if self._window_state is None:
            self._window_state = window_store(self._context, self.scope, "window")
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._context.runtime_context()


def window_store(context: OperatorContext, scope: NamespacedKey, owner: str) -> KeyedStateStore:
    """State by key and window. ``owner`` keeps the names of triggers and functions apart."""
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
