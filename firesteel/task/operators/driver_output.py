"""Sinks whose records go to the driver: print and collect."""

from __future__ import annotations

from firesteel.graph.operator_specs import CollectSpec, PrintSpec
from firesteel.protocol.rows import OUTPUT
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling
from firesteel.usercode.failures import USER_ERRORS
from firesteel.usercode.unpicklable import unpicklable_record


class PrintOperator(Operator):
    """Formats records as PyFlink prints them. The driver writes the lines to standard output."""

    def __init__(self, spec: PrintSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._prefix = print_prefix(
            spec.sink_identifier, context.subtask.index, context.node.parallelism
        )
        value_type = spec.value_type
        typed = value_type is not None and not value_type.is_pickled
        self._format = value_type.to_print_string if typed else str

    def process(self, batch: RecordBatch) -> None:
        prefix, to_line = self._prefix, self._format
        iterator = iter(batch.values)
        try:
            lines = [prefix + to_line(value) for value in iterator]
        except USER_ERRORS as error:
            # The user's __str__ failed.
            raise self.failure(error, to_line, batch.values, iterator) from error
        self.context.to_driver(OUTPUT, pickling.dumps(lines))


class CollectOperator(Operator):
    """execute_and_collect: sends the records themselves to the driver."""

    def __init__(self, spec: CollectSpec, context: OperatorContext) -> None:
        super().__init__(context)

    def process(self, batch: RecordBatch) -> None:
        try:
            payload = pickling.dumps(batch.values)
        except Exception as error:
            raise unpicklable_record(error, batch.values, self.name) from error
        self.context.to_driver(OUTPUT, payload)


def print_prefix(sink_identifier: str | None, subtask: int, parallelism: int) -> str:
    """Flink's prefix: the identifier, if any, and the subtask from 1 if there are several."""
    if parallelism == 1:
        return f"{sink_identifier}> " if sink_identifier else ""
    number = subtask + 1
    return f"{sink_identifier}:{number}> " if sink_identifier else f"{number}> "
