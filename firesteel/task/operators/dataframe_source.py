"""A DataFrame as a source: Spark reads, the records arrive as Arrow streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.common.types import new_row
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.operators.timestamps_and_watermarks import create_stream_time
from firesteel.task.watermarks import MAX_WATERMARK


class DataFrameSourceOperator(Operator):
    """Turns the rows of a DataFrame into named Rows."""

    def __init__(self, spec: DataFrameSourceSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._names = list(spec.column_names)
        strategy = spec.watermark_strategy
        self._time = None if strategy is None else create_stream_time(strategy, self)

    def receive_external(self, payload: bytes) -> int:
        """Emit the records of one Arrow stream; how many they are."""
        count = 0
        names = self._names
        with pa.ipc.open_stream(payload) as reader:
            for batch in reader:
                columns = [column.to_pylist() for column in batch.columns]
                values: list[Any] = [
                    new_row(list(fields), names) for fields in zip(*columns, strict=True)
                ]
                count += len(values)
                if self._time is None:
                    self.output.emit(values, None)
                else:
                    self._time.process(None, values, None)
        return count

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
