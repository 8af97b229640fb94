"""assign_timestamps_and_watermarks: event time starts here and ignores that of the input."""

from __future__ import annotations

from typing import Any

from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.watermark_strategy import NoWatermarks, WatermarkStrategy
from firesteel.graph.operator_specs import TimestampsAndWatermarksSpec
from firesteel.task.capabilities import Ticking
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.time.stream_time import StreamTime

_WHOLE_STREAM = None


class TimestampsAndWatermarksOperator(Operator, Ticking):
    def __init__(self, spec: TimestampsAndWatermarksSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._time = create_stream_time(spec.watermark_strategy, self)

    def process(self, batch: RecordBatch) -> None:
        self._time.process(_WHOLE_STREAM, batch)

    def process_watermark(self, watermark: int) -> None:
        """Ignore the watermarks of the input, except for the last one."""
        if watermark == MAX_WATERMARK:
            self.output.watermark(watermark)

    def process_idle(self, idle: bool) -> None:
        """Ignore the idleness of the input. This operator decides about it."""

    def emitted_watermark(self, watermark: int) -> int:
        return watermark if watermark == MAX_WATERMARK else self._time.watermark

    def tick(self) -> None:
        self._time.tick()

    def found_nothing(self) -> None:
        """Note that the input is silent now. The test harness, which has no epochs, calls it."""
        self._time.found_nothing()

    def next_tick(self) -> int | None:
        return self._time.next_tick()

    def end_epoch(self, *, finished: bool) -> None:
        if not finished:
            self._time.end_epoch()

    def snapshot(self) -> Any:
        return self._time.snapshot()

    def restore(self, whole: Any) -> None:
        self._time.restore(whole)

    def resume_time(self, watermark: int) -> None:
        self._time.resume(watermark)


def create_stream_time(strategy: WatermarkStrategy, operator: Operator) -> StreamTime:
    context = operator.context
    interval = context.subtask.auto_watermark_interval
    if context.subtask.batch:
        # The only watermark of a batch is the one at its end.
        strategy, interval = _without_watermarks(strategy), 0
    return StreamTime(
        strategy,
        interval,
        operator.name,
        context.clock.now_millis,
        operator.output,
        # Timestamps change nothing in a record.
        context.node.output_type,
    )


def _without_watermarks(strategy: WatermarkStrategy) -> WatermarkStrategy:
    return WatermarkStrategy(NoWatermarks(), strategy.timestamp_assigner)
