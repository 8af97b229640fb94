"""The DataFrame sink: records leave as Arrow streams of the declared columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from firesteel.common import Row, Types
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import TypeMismatchError
from firesteel.graph.operator_specs import DataFrameSinkSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.graph.transformations import ChainingStrategy
from firesteel.metrics import MetricRegistry
from firesteel.protocol.rows import DATAFRAME
from firesteel.task.operator_factory import create_operator
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.runtime_context import SubtaskInfo
from firesteel.task.time.clock import SubtaskClock

POINT = Types.ROW_NAMED(["x"], [Types.INT()])


def written(value_type: TypeInformation, values: list[Any]) -> pa.Table:
    node = StreamNode(
        id=1,
        operator_id="sink",
        name="Sink: DataFrame",
        description="",
        spec=DataFrameSinkSpec(value_type),
        parallelism=1,
        max_parallelism=1,
        slot_sharing_group="default",
        chaining=ChainingStrategy.ALWAYS,
        buffer_timeout=100,
    )
    sent: list[tuple[int, bytes]] = []
    context = OperatorContext(
        node,
        SubtaskInfo("job", 0),
        SubtaskClock(),
        MetricRegistry(),
        lambda kind, payload: sent.append((kind, payload)),
    )
    create_operator(context).process(RecordBatch(values))
    [(kind, payload)] = sent
    assert kind == DATAFRAME
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_all()


def test_fields_are_columns_and_rows_in_them_structs():
    kind = Types.ROW_NAMED(["a", "p"], [Types.LONG(), POINT])
    table = written(kind, [Row(1, Row(5)), Row(2, None)])
    assert table.to_pylist() == [{"a": 1, "p": {"x": 5}}, {"a": 2, "p": None}]


def test_any_other_type_is_one_column():
    assert written(Types.LIST(POINT), [[Row(5)], []]).to_pydict() == {"value": [[{"x": 5}], []]}


@pytest.mark.parametrize(
    ("values", "wrong", "reason"),
    [
        ([Row(1), Row("many"), Row(3)], "<Row('many')>", "field x: expected int, got str"),
        ([Row(1), None], "None", "a record with fields must not be None"),
        ([Row(1), Row(2, 3)], "<Row(2, 3)>", "expected 1 fields, got 2"),
    ],
)
def test_a_record_that_does_not_fit_is_named_with_operator_and_type(values, wrong, reason):
    with pytest.raises(TypeMismatchError, match=reason) as caught:
        written(POINT, values)
    assert caught.value.operator == "Sink: DataFrame"
    assert caught.value.value == wrong
    assert caught.value.type == str(POINT)
