"""The linear chain of stages that every job becomes, whatever its graph."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.spark.arrow_map import map_in_arrow
from firesteel.spark.clock import FORMAT, ClockSource
from firesteel.spark.dataframe_bridge import encode_dataframe
from firesteel.spark.level import LevelFunction
from firesteel.spark.slot_task import SlotTask
from firesteel.task.rows import SPARK_SCHEMA


def build_plan(
    session: SparkSession,
    levels: Levels,
    task: SlotTask,
    options: dict[str, str],
    frames: dict[int, DataFrame],
    *,
    streaming: bool,
) -> DataFrame:
    """Clock -> level 0 -> exchange -> level 1 -> ... -> level n. ``frames`` are DataFrame sources."""
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
        rows = map_in_arrow(exchanged, LevelFunction(level, task), SPARK_SCHEMA)
    return rows
