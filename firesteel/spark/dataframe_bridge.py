"""DataFrames as sources and sinks: packs their rows into buffers, and unpacks buffers into rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from firesteel.protocol.rows import DATAFRAME, EXTERNAL, SPARK_SCHEMA, BufferRow, to_record_batch
from firesteel.spark.arrow_map import map_in_arrow
from firesteel.task.operators.dataframe_sink import arrow_schema


class _EncodeRows:
    """Packs each Arrow batch of a DataFrame into one EXTERNAL row, for the slots in turn."""

    def __init__(self, node_id: int, first_slot: int, parallelism: int) -> None:
        self._node_id = node_id
        self._first_slot = first_slot
        self._parallelism = parallelism

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        turn = context.partitionId() if context is not None else 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, batch.schema) as writer:
                writer.write_batch(batch)
            target = self._first_slot + turn % self._parallelism
            turn += 1
            payload = stream.getvalue().to_pybytes()
            yield to_record_batch([BufferRow(target, self._node_id, 0, 0, EXTERNAL, payload)])


def encode_dataframe(
    frame: DataFrame, node_id: int, first_slot: int, parallelism: int
) -> DataFrame:
    """Return a DataFrame of EXTERNAL rows for the subtasks of a DataFrame source."""
    rows = _with_wall_times(frame)
    return map_in_arrow(rows, _EncodeRows(node_id, first_slot, parallelism), SPARK_SCHEMA)


def _with_wall_times(frame: DataFrame) -> DataFrame:
    """Replace timestamps by local times in the time zone of the frame's session.

    A job has no time zone, and the time zone of its own session may differ.
    """
    columns = []
    for column in frame.schema:
        wall_type = _wall_type(column.dataType)
        given = frame[column.name]
        changed = wall_type != column.dataType
        columns.append(given.cast(wall_type).alias(column.name) if changed else given)
    return frame.select(*columns)


def _wall_type(data_type: DataType) -> DataType:
    if isinstance(data_type, TimestampType):
        return TimestampNTZType()
    if isinstance(data_type, ArrayType):
        return ArrayType(_wall_type(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        key_type, value_type = _wall_type(data_type.keyType), _wall_type(data_type.valueType)
        return MapType(key_type, value_type, data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        return StructType(
            [StructField(f.name, _wall_type(f.dataType), f.nullable) for f in data_type]
        )
    return data_type


class _DecodeRows:
    """Unpacks the payloads of DATAFRAME rows."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column("payload").to_pylist():
                with pa.ipc.open_stream(payload) as stream:
                    yield from stream


def decode_dataframe(rows: DataFrame, node_id: int, schema: StructType) -> DataFrame:
    """Return the records that reached a DataFrame sink in this plan."""
    selected = rows.where(f"kind = {DATAFRAME} and edge = {node_id}")
    return map_in_arrow(selected, _DecodeRows(), schema)


def spark_schema(value_type: Any) -> StructType:
    """Return the columns of a DataFrame sink."""
    return from_arrow_schema(arrow_schema(value_type))


def without_frames(rows: DataFrame) -> DataFrame:
    """Return the rows for the driver, without those of DataFrame sinks."""
    return rows.where(f"kind <> {DATAFRAME}")
