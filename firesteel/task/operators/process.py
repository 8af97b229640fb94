"""process: the user's function sees each record with its context and may use side outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.functions import KeyedProcessFunction, ProcessFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.timerservice import TimerService
from firesteel.graph.operator_specs import ProcessSpec
from firesteel.task.operators.base import FunctionOperator, OperatorContext, Output
from firesteel.task.subtask_clock import SubtaskClock


class SubtaskTimerService(TimerService):
    def __init__(self, clock: SubtaskClock) -> None:
        self._clock = clock

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def current_watermark(self) -> int:
        return self._clock.watermark


class ElementContext(ProcessFunction.Context, KeyedProcessFunction.Context):
    """One object for all records: the loop sets the fields before each call."""

    def __init__(self, clock: SubtaskClock) -> None:
        self.element_timestamp: int | None = None
        self.element_key: Any = None
        self._timers = SubtaskTimerService(clock)

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int | None:
        return self.element_timestamp

    def get_current_key(self) -> Any:
        return self.element_key


class ResultCollector:
    """Sorts the results of a process function into main output and side outputs."""

    __slots__ = ("_output", "_side", "results", "stamps")

    def __init__(self, output: Output) -> None:
        self._output = output
        self.results: list[Any] = []
        self.stamps: list[int] = []
        self._side: dict[str, tuple[list[Any], list[int]]] = {}

    def add(self, results: Iterable[Any], timestamp: int | None) -> None:
        append = self.results.append
        for result in results:
            if type(result) is tuple and len(result) == 2 and type(result[0]) is OutputTag:
                values, stamps = self._side.setdefault(result[0].tag_id, ([], []))
                values.append(result[1])
                if timestamp is not None:
                    stamps.append(timestamp)
                continue
            append(result)
            if timestamp is not None:
                self.stamps.append(timestamp)

    def emit(self) -> None:
        """Side outputs go first: what is late or odd about a record is known before its result."""
        for tag_id, (values, stamps) in self._side.items():
            self._output.emit_side(tag_id, values, stamps or None)
        if self.results:
            self._output.emit(self.results, self.stamps or None)


class ProcessOperator(FunctionOperator):
    def __init__(self, spec: ProcessSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._element_context = ElementContext(context.clock)

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.process_with(self.function.process_element, values, None, timestamps)

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        self.process_with(self.function.process_element, values, keys, timestamps)

    def process_with(
        self,
        process_element: Callable[[Any, Any], Iterable[Any] | None],
        values: list[Any],
        keys: list[Any] | None,
        timestamps: list[int] | None,
    ) -> None:
        context = self._element_context
        context.element_timestamp = None
        collector = ResultCollector(self.output)
        add = collector.add
        iterator = iter(values)
        try:
            for index, value in enumerate(iterator):
                if timestamps is not None:
                    context.element_timestamp = timestamps[index]
                if keys is not None:
                    context.element_key = keys[index]
                results = process_element(value, context)
                if results is not None:
                    add(results, context.element_timestamp)
        except Exception as error:
            raise self.failure(error, process_element, values, iterator) from error
        collector.emit()
