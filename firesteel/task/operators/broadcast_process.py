"""process on a stream connected with a broadcast stream, which writes the broadcast state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueStateDescriptor,
)
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import BroadcastProcessSpec, ProcessSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.process import ProcessOperator
from firesteel.task.record_batch import RecordBatch
from firesteel.task.state.operator_state_store import ReadOnlyView, TaskBroadcastState


class _BaseContext(BaseBroadcastProcessFunction.BaseContext):
    """The context of a record. One object serves all: the loop sets the timestamp."""

    def __init__(self, operator: BroadcastProcessOperator) -> None:
        self.element_timestamp: int | None = None
        self._operator = operator
        self._clock = operator.context.clock

    def timestamp(self) -> int | None:
        return self.element_timestamp

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def current_watermark(self) -> int:
        return self._clock.watermark


class ReadingContext(
    _BaseContext,
    BroadcastProcessFunction.ReadOnlyContext,
    KeyedBroadcastProcessFunction.OnTimerContext,
):
    """The context for records of the side that is not broadcast, and for its timers."""

    domain = TimeDomain.EVENT_TIME

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyView:
        return self._operator.broadcast_state(state_descriptor).read_only

    def timer_service(self) -> TimerService:
        return self._operator.timer_service

    def get_current_key(self) -> Any:
        return self._operator.context.key_context.key

    def time_domain(self) -> TimeDomain:
        return self.domain


class WritingContext(
    _BaseContext, BroadcastProcessFunction.Context, KeyedBroadcastProcessFunction.Context
):
    """The context for records of the broadcast side."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> TaskBroadcastState:
        return self._operator.broadcast_state(state_descriptor)

    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor, function: Callable[[Any, State], None]
    ) -> None:
        self._operator.apply_to_keyed_state(state_descriptor, function)


class BroadcastProcessOperator(ProcessOperator):
    """The broadcast stream is the second input."""

    def __init__(self, spec: BroadcastProcessSpec, context: OperatorContext) -> None:
        super().__init__(ProcessSpec(spec.function), context)
        self._descriptors = {descriptor.name: descriptor for descriptor in spec.descriptors}
        self._states: dict[str, TaskBroadcastState] = {}
        self._reading = ReadingContext(self)
        self._timer = ReadingContext(self)
        self._writing = WritingContext(self)

    def open(self) -> None:
        # Now, so that a state of a different type is refused before the first record.
        self._states = {
            name: self.context.operator_state.get_broadcast_state(descriptor)
            for name, descriptor in self._descriptors.items()
        }
        super().open()

    def process(self, batch: RecordBatch) -> None:
        process = self.function.process_element
        self.process_with(process, batch, self._reading)

    def process_second(self, batch: RecordBatch) -> None:
        self.context.key_context.forget()
        process = self.function.process_broadcast_element
        self.process_with(process, batch, self._writing)

    def timer_context(self) -> Any:
        return self._timer

    def broadcast_state(self, descriptor: MapStateDescriptor) -> TaskBroadcastState:
        state = self._states.get(descriptor.name)
        if state is None:
            names = ", ".join(f"'{name}'" for name in self._states)
            raise InvalidProgramError(
                f"there is no broadcast state '{descriptor.name}'; broadcast() was called with the "
                f"descriptors of {names}"
            )
        return state

    def apply_to_keyed_state(
        self, descriptor: StateDescriptor, function: Callable[[Any, State], None]
    ) -> None:
        runtime_context = self.context.runtime_context()
        getters: dict[type[StateDescriptor], Callable[[Any], State]] = {
            ValueStateDescriptor: runtime_context.get_state,
            ListStateDescriptor: runtime_context.get_list_state,
            MapStateDescriptor: runtime_context.get_map_state,
            ReducingStateDescriptor: runtime_context.get_reducing_state,
            AggregatingStateDescriptor: runtime_context.get_aggregating_state,
        }
        state = getters[type(descriptor)](descriptor)
        key_context = self.context.key_context
        try:
            for key in self.context.keyed_state.keys(descriptor.name):
                key_context.key = key
                function(key, state)
        finally:
            key_context.forget()
