"""The plan of a job on Spark: one linear chain of stages for every graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.protocol.messages import SlotAddress, decode
from firesteel.protocol.row_order import RowOrder
from firesteel.protocol.rows import CONTROL, HEADER, SPARK_SCHEMA, rows_of
from firesteel.spark.arrow_map import map_in_arrow
from firesteel.spark.clock import FORMAT, ClockSource
from firesteel.spark.dataframe_bridge import encode_dataframe
from firesteel.spark.row_sorting import sort_rows
from firesteel.spark.slot_task import SlotTask


class LevelFunction:
    """Runs the slots of a level. The first rows tell the slot and the epoch."""

    def __init__(self, level: int, task: SlotTask) -> None:
        self._level = level
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remaining = iter(batches)
        seen: list[pa.RecordBatch] = []
        for batch in remaining:
            seen.append(batch)
            address = self._find_address(batch)
            if address is not None:
                yield from self._task.run(address, chain(seen, remaining), None)
                return

    def _find_address(self, batch: pa.RecordBatch) -> SlotAddress | None:
        """Return the slot and epoch from a header or control row, or None if the batch has neither.

        Every upstream slot sends a header first. Only rows of DataFrames may arrive before it.
        """
        kinds = batch.column("kind").to_pylist()
        if HEADER not in kinds and CONTROL not in kinds:
            return None
        for row in rows_of(batch):
            if row.edge == self._level and row.kind in (HEADER, CONTROL):
                message = decode(row.payload)
                address: SlotAddress = message if row.kind == HEADER else message.address
                return replace(address, level=self._level, slot=row.target)
        return None


def build_plan(
    session: SparkSession,
    levels: Levels,
    task: SlotTask,
    options: dict[str, str],
    frames: dict[int, DataFrame],
    *,
    streaming: bool,
) -> DataFrame:
    """Return clock -> level 0 -> exchange -> level 1 -> ... -> level n.

    Args:
        session: The session of the job.
        levels: The levels of the job and their slots.
        task: The program, and the place of the slots.
        options: The options of the clock.
        frames: The DataFrames of sources, by node.
        streaming: True for a streaming query, False for one batch.
    """
    session.dataSource.register(ClockSource)
    reader = session.readStream if streaming else session.read
    rows = reader.format(FORMAT).options(**options).load()
    for node_id, frame in frames.items():
        node = levels.job_graph.nodes[node_id]
        assert isinstance(node.spec, DataFrameSourceSpec)
        first_slot = levels.slot_offset[node.slot_sharing_group]
        rows = rows.unionByName(encode_dataframe(frame, node_id, first_slot, node.parallelism))
    for level in range(1, len(levels.slots)):
        exchanged = rows.repartitionById(levels.slots[level], "target")
        order = RowOrder.of_level(levels, level) if task.batch else None
        if order is not None:
            exchanged = sort_rows(exchanged, order)
        rows = map_in_arrow(exchanged, LevelFunction(level, task), SPARK_SCHEMA)
    return rows
