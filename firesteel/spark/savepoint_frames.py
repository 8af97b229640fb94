"""State of savepoints as DataFrames. Spark's tasks read and write the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, StructField, StructType

from firesteel.checkpoint.metadata import KeyedStateFile
from firesteel.checkpoint.savepoints.keyed_state_import import (
    KEY,
    TARGET,
    VALUE,
    WRITTEN_SCHEMA,
    KeyedStateImport,
    written_files,
)
from firesteel.checkpoint.savepoints.savepoint_reader import SavepointState
from firesteel.errors import JobExecutionError
from firesteel.spark.arrow_map import map_in_arrow
from firesteel.spark.errors import SPARK_ERRORS, reason_of
from firesteel.spark.shipping import ship_firesteel


class _ReadFiles:
    """Reads the parts of a state, given their numbers."""

    def __init__(self, state: SavepointState) -> None:
        self._state = state

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = self._state
        for batch in batches:
            for number in batch.column(0).to_pylist():
                entries = state.entries([state.parts[number]])
                yield from state.arrow_table(entries).to_batches()


def read_frame(session: SparkSession, state: SavepointState) -> DataFrame:
    """Return a keyed state as a DataFrame."""
    if not state.is_typed:
        return session.createDataFrame(state.arrow_table(state.entries()))
    ship_firesteel(session)
    count = len(state.parts)
    numbers = session.range(0, count, numPartitions=max(1, count))
    return map_in_arrow(numbers, _ReadFiles(state), from_arrow_schema(state.schema()))


class _Route:
    def __init__(self, order: KeyedStateImport) -> None:
        self._order = order

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._order.route(batches)


class _Write:
    def __init__(self, order: KeyedStateImport) -> None:
        self._order = order

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._order.write(batches)


def import_frame(
    order: KeyedStateImport, frame: DataFrame
) -> dict[int, tuple[KeyedStateFile, ...]]:
    """Write the rows of a DataFrame as state, and return the files by subtask."""
    ship_firesteel(frame.sparkSession)
    rows = frame.select(KEY, VALUE)
    routed_schema = StructType([*rows.schema.fields, StructField(TARGET, IntegerType())])
    routed = map_in_arrow(rows, _Route(order), routed_schema)
    # Adaptive execution may give several subtasks to one task. Sorting keeps each one together.
    by_subtask = routed.repartitionById(order.parallelism, F.col(TARGET)).sortWithinPartitions(
        TARGET
    )
    written = map_in_arrow(by_subtask, _Write(order), from_arrow_schema(WRITTEN_SCHEMA))
    try:
        return written_files((row["subtask"], bytes(row["file"])) for row in written.collect())
    except SPARK_ERRORS as error:
        raise JobExecutionError(
            f"The state '{order.state}' could not be written: {reason_of(error)}"
        ) from error
