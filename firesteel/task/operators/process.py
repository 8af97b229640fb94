"""process: calls the user's function with each record and a context, and emits side outputs.

On a keyed stream the function has state and timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from typing import Any

from firesteel.datastream.functions import KeyedProcessFunction, ProcessFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService
from firesteel.graph.operator_specs import ProcessSpec
from firesteel.task.key_context import KeyContext
from firesteel.task.operators.base import FunctionOperator, OperatorContext, Output
from firesteel.task.record_batch import RecordBatch
from firesteel.task.time.timers import KeyedTimerService, UnkeyedTimerService
from firesteel.usercode.failures import USER_ERRORS


class ElementContext(ProcessFunction.Context, KeyedProcessFunction.Context):
    """The context of a record. One object serves all: the loop sets its fields before each call."""

    def __init__(self, timers: TimerService, key_context: KeyContext) -> None:
        self.element_timestamp: int | None = None
        self._timers = timers
        self._key_context = key_context

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int | None:
        return self.element_timestamp

    def get_current_key(self) -> Any:
        return self._key_context.key


class TimerContext(ElementContext, KeyedProcessFunction.OnTimerContext):
    """The context of a timer that fires."""

    domain = TimeDomain.EVENT_TIME

    def time_domain(self) -> TimeDomain:
        return self.domain


class FiringTimer:
    """Stands for the record in the error of a timer."""

    def __init__(self, key: Any, timestamp: int) -> None:
        self._key = key
        self._timestamp = timestamp

    def __repr__(self) -> str:
        return f"timer {self._timestamp} of key {self._key!r}"


class ResultCollector:
    """Sorts the results of a process function into main output and side outputs."""

    __slots__ = ("_output", "_side", "results", "stamps")

    def __init__(self, output: Output) -> None:
        self._output = output
        self.results: list[Any] = []
        self.stamps: list[int] = []
        self._side: dict[str, tuple[list[Any], list[int]]] = {}

    def add(self, results: Iterable[Any], timestamp: int | None) -> None:
        for result in results:
            if type(result) is tuple and len(result) == 2 and type(result[0]) is OutputTag:
                self.add_to_side(*result, timestamp)
                continue
            self.results.append(result)
            if timestamp is not None:
                self.stamps.append(timestamp)

    def add_to_side(self, tag: OutputTag, value: Any, timestamp: int | None) -> None:
        values, stamps = self._side.setdefault(tag.tag_id, ([], []))
        values.append(value)
        if timestamp is not None:
            stamps.append(timestamp)

    def emit(self) -> None:
        """Emit the side outputs, then the main output."""
        for tag_id, (values, stamps) in self._side.items():
            self._output.emit_side(tag_id, RecordBatch(values, stamps or None))
        if self.results:
            self._output.emit(RecordBatch(self.results, self.stamps or None))


class ProcessOperator(FunctionOperator):
    def __init__(self, spec: ProcessSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._key_context = context.key_context
        if context.keyed:
            timers = context.timers.create(
                "user-timers",
                partial(self._on_timer, TimeDomain.EVENT_TIME),
                partial(self._on_timer, TimeDomain.PROCESSING_TIME),
                self._round_ended,
            )
            self.timer_service: TimerService = KeyedTimerService(
                timers, context.key_context, context.clock
            )
        else:
            self.timer_service = UnkeyedTimerService(context.clock)
        self._element_context = ElementContext(self.timer_service, context.key_context)
        self._timer_context = TimerContext(self.timer_service, context.key_context)
        # A CoProcessFunction on keyed streams may register timers, but has no on_timer.
        self._user_on_timer = getattr(self.function, "on_timer", None)
        # Results of the timers of a round.
        self._fired = ResultCollector(self.output)

    def process(self, batch: RecordBatch) -> None:
        self.process_with(self.function.process_element, batch)

    def process_with(
        self,
        process_element: Callable[[Any, Any], Iterable[Any] | None],
        batch: RecordBatch,
        context: Any = None,
    ) -> None:
        """Call a method of the function with each record.

        context: given to the function instead of the usual context.
        """
        values, keys, timestamps = batch.values, batch.keys, batch.timestamps
        key_context = self._key_context
        context = self._element_context if context is None else context
        collector = ResultCollector(self.output)
        append, append_stamp = collector.results.append, collector.stamps.append
        tag_type = OutputTag
        iterator = iter(values)
        stamps: Iterable[int | None] = repeat(None) if timestamps is None else timestamps
        # Without keys, the current key stays.
        in_order: Iterable[Any] = repeat(key_context.key) if keys is None else keys
        try:
            for value, key_context.key, stamp in zip(iterator, in_order, stamps, strict=False):
                context.element_timestamp = stamp
                results = process_element(value, context)
                if results is None:
                    continue
                # The collector's add, inlined: a call per record would cost more than its work.
                for result in results:
                    if (
                        type(result) is tuple
                        and result
                        and type(result[0]) is tag_type
                        and len(result) == 2
                    ):
                        collector.add_to_side(*result, stamp)
                        continue
                    append(result)
                    if stamp is not None:
                        append_stamp(stamp)
        except USER_ERRORS as error:
            raise self.failure(error, process_element, values, iterator) from error
        collector.emit()

    # Timers

    def timer_context(self) -> Any:
        """The context for ``on_timer``."""
        return self._timer_context

    def _on_timer(self, domain: TimeDomain, key: Any, _: Any, timestamp: int) -> None:
        on_timer = self._user_on_timer
        if on_timer is None:
            return
        self._key_context.key = key
        context = self.timer_context()
        context.element_timestamp = timestamp
        context.domain = domain
        try:
            results = on_timer(timestamp, context)
            if results is not None:
                # As in PyFlink, results carry the time of the timer, in both time domains.
                self._fired.add(results, timestamp)
        except USER_ERRORS as error:
            raise self.failure(error, on_timer, [FiringTimer(key, timestamp)]) from error

    def _round_ended(self) -> None:
        fired, self._fired = self._fired, ResultCollector(self.output)
        fired.emit()
