"""The context of a trigger: times, timers and state of one key and window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueStateDescriptor,
)
from firesteel.datastream.window import Trigger
from firesteel.errors import InvalidProgramError, shorten
from firesteel.metrics import MetricGroup
from firesteel.task.key_context import NamespacedKey
from firesteel.task.operators.base import OperatorContext
from firesteel.task.state.states import Mergeable
from firesteel.task.time.timers import InternalTimerService
from firesteel.task.windowing.window_functions import window_store


def merge_states(state: State, scope: NamespacedKey, target: Any, sources: Sequence[Any]) -> None:
    """Move the state of the source windows to the target window, for the current key."""
    for source in sources:
        if source == target:
            continue
        if not isinstance(state, Mergeable):
            raise InvalidProgramError(
                "only reducing, aggregating and list state can be merged; value and map state do "
                "not define how to merge two values"
            )
        scope.namespace = source
        taken = state.take()
        scope.namespace = target
        state.merge(taken)


class TaskTriggerContext(Trigger.OnMergeContext):
    """One object for all windows. The operator sets the key, ``window`` and ``merged``."""

    def __init__(self, context: OperatorContext, timers: InternalTimerService) -> None:
        self._context = context
        self._clock = context.clock
        self._key_context = context.key_context
        self._timers = timers
        self._scope = NamespacedKey(context.key_context)
        store = window_store(context, self._scope, "trigger")
        self._creators: dict[type[StateDescriptor], Callable[[Any], State]] = {
            AggregatingStateDescriptor: store.get_aggregating_state,
            ListStateDescriptor: store.get_list_state,
            MapStateDescriptor: store.get_map_state,
            ReducingStateDescriptor: store.get_reducing_state,
            ValueStateDescriptor: store.get_state,
        }
        self.merged: Sequence[Any] = ()
        # Triggers ask for the same states again and again.
        self._states: dict[tuple[str, type[StateDescriptor]], State] = {}

    @property
    def window(self) -> Any:
        return self._scope.namespace

    @window.setter
    def window(self, window: Any) -> None:
        self._scope.namespace = window

    def get_current_processing_time(self) -> int:
        return self._clock.now_millis()

    def get_metric_group(self) -> MetricGroup:
        return self._context.bare_runtime_context().get_metrics_group()

    def get_current_watermark(self) -> int:
        return self._clock.watermark

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register_processing_time_timer(
            self._key_context.key, self._scope.namespace, time
        )

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register_event_time_timer(self._key_context.key, self._scope.namespace, time)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time_timer(
            self._key_context.key, self._scope.namespace, time
        )

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time_timer(self._key_context.key, self._scope.namespace, time)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        name = (state_descriptor.name, type(state_descriptor))
        state = self._states.get(name)
        if state is None:
            state = self._states[name] = self._create(state_descriptor)
        return state

    def _create(self, descriptor: StateDescriptor) -> State:
        for kind, create in self._creators.items():
            if isinstance(descriptor, kind):
                return create(descriptor)
        raise InvalidProgramError(
            f"get_partitioned_state expects a state descriptor, but got {shorten(descriptor)}."
        )

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        target = self._scope.namespace
        try:
            merge_states(
                self.get_partitioned_state(state_descriptor), self._scope, target, self.merged
            )
        finally:
            self._scope.namespace = target
