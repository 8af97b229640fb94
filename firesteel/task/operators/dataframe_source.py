"""DataFrame sources: Spark reads, and the records arrive as Arrow streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.common.arrow_values import MISFITS, arrow_reader
from firesteel.common.columns import column_layout
from firesteel.common.constants import MAX_WATERMARK
from firesteel.errors import TypeMismatchError
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.task.capabilities import Ticking
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.exchange.input_gate import InputGate
from firesteel.task.head import SubtaskHead
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.timestamps_and_watermarks import create_stream_time
from firesteel.task.record_batch import RecordBatch


class DataFrameSourceOperator(Operator, Ticking):
    """Turns the rows of a DataFrame into named Rows."""

    def __init__(self, spec: DataFrameSourceSpec, context: OperatorContext) -> None:
        super().__init__(context)
        # The records have the types of the DataFrame's columns already.
        self.checks_results = False
        self._type = spec.value_type
        self._read = arrow_reader(spec.value_type)
        self._layout = column_layout(spec.value_type)
        strategy = spec.watermark_strategy
        self._time = None if strategy is None else create_stream_time(strategy, self)

    def create_head(self, gate: InputGate) -> SubtaskHead:
        return DataFrameHead(self)

    def receive_external(self, payload: bytes) -> int:
        """Emit the records of one Arrow stream, and return their number."""
        count = 0
        with pa.ipc.open_stream(payload) as reader:
            for arrow_batch in reader:
                batch = self._batch(arrow_batch)
                count += len(batch)
                if self._time is None:
                    self.output.emit(batch)
                else:
                    self._time.process(None, batch)
        return count

    def _batch(self, batch: pa.RecordBatch) -> RecordBatch:
        if self._layout is None:
            return RecordBatch(self._rows(batch))
        return ColumnBatch(self._layout.fitted(batch), self._layout)

    def _rows(self, batch: pa.RecordBatch) -> list[Any]:
        try:
            return self._read(batch.to_struct_array())
        except MISFITS:
            self._raise_for_first(batch)
            raise

    def _raise_for_first(self, batch: pa.RecordBatch) -> None:
        """Find the value that Python cannot hold, for example a date after the year 9999."""
        kinds = zip(batch.schema.names, self._type.get_field_types(), batch.columns, strict=True)
        for name, kind, column in kinds:
            read = arrow_reader(kind)
            for position in range(len(column)):
                value = column.slice(position, 1)
                try:
                    read(value)
                except MISFITS as error:
                    # Arrow's own text, because Python cannot print a value that it cannot hold.
                    text = " ".join(value.to_string().split())
                    reason = f"column {name}: {error}."
                    raise TypeMismatchError(text, kind, reason, self.name) from error

    def emitted_watermark(self, watermark: int) -> int:
        if self._time is None or watermark == MAX_WATERMARK:
            return watermark
        return self._time.watermark

    def tick(self) -> None:
        if self._time is not None:
            self._time.tick()

    def next_tick(self) -> int | None:
        return None if self._time is None else self._time.next_tick()

    def end_epoch(self, *, finished: bool) -> None:
        if self._time is not None and not finished:
            self._time.end_epoch()

    def snapshot(self) -> Any:
        return None if self._time is None else self._time.snapshot()

    def restore(self, whole: Any) -> None:
        if self._time is not None:
            self._time.restore(whole)


class DataFrameHead(SubtaskHead):
    """Takes the rows of a DataFrame, which Spark reads. They end with the last epoch."""

    is_origin = True

    def __init__(self, source: DataFrameSourceOperator) -> None:
        self._source = source
        self._ended = False

    @property
    def finished(self) -> bool:
        return self._ended

    def restore(self) -> None:
        self._ended = False

    def accept_external(self, payload: bytes) -> None:
        self.records_read += self._source.receive_external(payload)

    def end_epoch(self, *, last: bool) -> None:
        self._ended = last
