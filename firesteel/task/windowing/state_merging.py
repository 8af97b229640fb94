"""Making one state of those of several windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.datastream.state import State
from firesteel.errors import InvalidProgramError
from firesteel.task.state.aggregating_state import TaskAggregatingState
from firesteel.task.state.key_context import NamespacedKey
from firesteel.task.state.list_state import TaskListState
from firesteel.task.state.reducing_state import TaskReducingState


def merge_states(state: State, scope: NamespacedKey, target: Any, sources: Sequence[Any]) -> None:
    """Move what ``state`` holds for the source windows to the target window, of the current key."""
    for source in sources:
        if source == target:
            continue
        scope.namespace = source
        if isinstance(state, TaskReducingState):
            value = state.get()
            state.clear()
            scope.namespace = target
            if value is not None:
                state.add(value)
        elif isinstance(state, TaskListState):
            values = state.get()
            state.clear()
            scope.namespace = target
            state.add_all(values)
        elif isinstance(state, TaskAggregatingState):
            accumulator = state.take_accumulator()
            scope.namespace = target
            state.merge_accumulator(accumulator)
        else:
            raise InvalidProgramError(
                "only reducing, aggregating and list state can be merged: a single value or a map "
                "does not say what two of it make"
            )
    scope.namespace = target
