"""add_sink: invokes the user's SinkFunction with every record."""

from __future__ import annotations

from firesteel.datastream.functions import SinkFunction
from firesteel.graph.operator_specs import SinkFunctionSpec
from firesteel.task.codegen.fusion import Step, StepKind
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.time.clock import SubtaskClock
from firesteel.usercode.failures import USER_ERRORS


class InvocationContext(SinkFunction.Context):
    """The context of a record. One object serves all: the loop sets the timestamp."""

    def __init__(self, clock: SubtaskClock) -> None:
        self._clock = clock
        self.element_timestamp: int | None = None

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def current_watermark(self) -> int:
        return self._clock.watermark

    def timestamp(self) -> int | None:
        return self.element_timestamp


class SinkFunctionOperator(FunctionOperator):
    def __init__(self, spec: SinkFunctionSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._invocation = InvocationContext(context.clock)

    def step(self) -> Step:
        return self.step_of(StepKind.INVOKE, self.function.invoke, self._invocation)

    def process(self, batch: RecordBatch) -> None:
        values, timestamps = batch.values, batch.timestamps
        invoke, invocation = self.function.invoke, self._invocation
        iterator = iter(values)
        try:
            if timestamps is None:
                invocation.element_timestamp = None
                for value in iterator:
                    invoke(value, invocation)
            else:
                for value, invocation.element_timestamp in zip(iterator, timestamps, strict=True):
                    invoke(value, invocation)
        except USER_ERRORS as error:
            raise self.failure(error, invoke, values, iterator) from error
