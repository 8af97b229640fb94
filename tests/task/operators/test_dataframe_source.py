"""The DataFrame source: rows of Spark become records, with timestamps if a strategy says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.errors import TypeMismatchError
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.graph.transformations import ChainingStrategy
from firesteel.metrics import MetricRegistry
from firesteel.task.operator_factory import create_operator
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.dataframe_source import DataFrameSourceOperator
from firesteel.task.record_batch import RecordBatch
from firesteel.task.runtime_context import SubtaskInfo
from firesteel.task.time.clock import SubtaskClock
from firesteel.testing import ManualClock

WORDS = Types.ROW_NAMED(["word", "time"], [Types.STRING(), Types.LONG()])


class Source:
    def __init__(self, strategy: WatermarkStrategy | None, value_type: Any = WORDS) -> None:
        node = StreamNode(
            id=1,
            operator_id="source",
            name="Source: frame",
            description="",
            spec=DataFrameSourceSpec(value_type, strategy, bounded=False),
            parallelism=1,
            max_parallelism=1,
            slot_sharing_group="default",
            chaining=ChainingStrategy.ALWAYS,
            buffer_timeout=100,
        )
        self.now = ManualClock()
        clock = SubtaskClock(now_millis=self.now)
        context = OperatorContext(
            node, SubtaskInfo("job", 0), clock, MetricRegistry(), lambda *_: None
        )
        operator = create_operator(context)
        assert isinstance(operator, DataFrameSourceOperator)
        self.operator = operator
        self.heard: list[Any] = []
        operator.output.emit = self._hear
        operator.output.watermark = self.heard.append
        operator.restore(None)

    def _hear(self, batch: RecordBatch) -> None:
        times: Sequence[int | None] = batch.timestamps or [None] * len(batch)
        self.heard.extend(zip([value["word"] for value in batch.values], times, strict=True))

    def receive(self, *rows: tuple[str, int]) -> int:
        return self.receive_table(
            pa.table({"word": [r[0] for r in rows], "time": [r[1] for r in rows]})
        )

    def receive_table(self, table: pa.Table) -> int:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return self.operator.receive_external(sink.getvalue().to_pybytes())


@pytest.fixture
def timed() -> Source:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return Source(strategy.with_timestamp_assigner(lambda row, _: row["time"]))


def test_rows_become_named_rows():
    source = Source(None)
    assert source.receive(("to", 1), ("be", 2)) == 2
    assert source.heard == [("to", None), ("be", None)]
    assert source.operator.next_tick() is None


def test_structs_become_rows_and_maps_dicts_however_deep():
    inner = Types.ROW_NAMED(["m"], [Types.MAP(Types.STRING(), Types.LONG())])
    words = Types.ROW_NAMED(["word"], [Types.LIST(inner)])
    source = Source(None, words)
    column = pa.array([[{"m": {"k": 1}}, {"m": None}], None], Types.LIST(inner).to_arrow_type())
    source.receive_table(pa.table({"word": column}))
    assert source.heard == [([Row(m={"k": 1}), Row(m=None)], None), (None, None)]


def test_a_value_that_python_cannot_hold_is_named():
    source = Source(None, Types.ROW_NAMED(["word"], [Types.SQL_DATE()]))
    days = pa.array([0, 9_999_999], pa.int32()).cast(pa.date32())
    with pytest.raises(TypeMismatchError, match="column word") as caught:
        source.receive_table(pa.table({"word": days}))
    assert caught.value.operator == "Source: frame"


def test_a_strategy_stamps_rows_and_emits_watermarks(timed):
    timed.receive(("to", 10), ("be", 20))
    timed.now.advance(200)
    timed.operator.tick()
    assert timed.heard == [("to", 10), ("be", 20), 19]
    assert timed.operator.emitted_watermark(MIN_WATERMARK) == 19
    assert timed.operator.emitted_watermark(MAX_WATERMARK) == MAX_WATERMARK


def test_the_end_of_an_epoch_emits_and_its_end_does_not(timed):
    timed.receive(("to", 10))
    timed.operator.end_epoch(finished=False)
    assert timed.heard[-1] == 9
    timed.receive(("be", 20))
    timed.operator.end_epoch(finished=True)
    assert timed.heard[-1] == ("be", 20)


def test_the_watermark_survives_a_restore(timed):
    timed.receive(("to", 10))
    timed.operator.end_epoch(finished=False)
    whole = timed.operator.snapshot()
    timed.operator.restore(None)
    assert timed.operator.emitted_watermark(0) == MIN_WATERMARK
    timed.operator.restore(whole)
    timed.receive(("be", 10))
    timed.operator.end_epoch(finished=False)
    assert timed.heard == [("to", 10), 9, ("be", 10)]
