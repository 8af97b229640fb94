"""The DataFrames of an epoch: the input of sources, and the rows that arrive in the driver."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from firesteel.graph.operator_specs import DataFrameSinkSpec, DataFrameSourceSpec
from firesteel.graph.stream_graph import StreamGraph, StreamNode
from firesteel.protocol.execution import EpochPlan, EpochRows
from firesteel.spark.dataframe_bridge import decode_dataframe, spark_schema, without_frames
from firesteel.usercode.failures import called


class EpochFrames:
    """The DataFrame sources and DataFrame sinks of a job."""

    def __init__(self, graph: StreamGraph) -> None:
        self._driver_objects = graph.driver_objects
        #: The DataFrames of sources, by node.
        self.sources: dict[int, DataFrame] = {
            node.id: graph.driver_objects[node.id]
            for node in graph.nodes.values()
            if isinstance(node.spec, DataFrameSourceSpec)
        }
        self._sinks = [
            node for node in graph.nodes.values() if isinstance(node.spec, DataFrameSinkSpec)
        ]

    @property
    def are_used(self) -> bool:
        return bool(self.sources or self._sinks)

    def collect(self, frame: DataFrame, plan: EpochPlan, *, write: bool) -> EpochRows:
        """Collect the rows of an epoch. With ``write``, call the functions of DataFrame sinks."""
        if not self._sinks:
            # Collecting runs all partitions at once. An iterator would run them one by one.
            return EpochRows.sort(frame.collect())
        # Not persist(): if Spark loses cached blocks, it would run the slots again, although their
        # acks have been read. A local checkpoint forgets the plan, so that the epoch fails instead,
        # and the job returns to its last checkpoint.
        frame = frame.localCheckpoint(eager=False)
        try:
            rows = EpochRows.sort(without_frames(frame).collect())
            if write and not rows.failures:
                try:
                    for node in self._sinks:
                        self._write(node, frame, plan.epoch)
                except Exception as error:  # noqa: BLE001 - the functions are the user's
                    rows.error = error
            return rows
        finally:
            _free(frame)

    def _write(self, node: StreamNode, frame: DataFrame, epoch: int) -> None:
        spec: Any = node.spec
        part = decode_dataframe(frame, node.id, spark_schema(spec.value_type))
        called(node.name, self._driver_objects[node.id], part, epoch)


def _free(frame: DataFrame) -> None:
    """Free the blocks of a local checkpoint now. Spark does it after a garbage collection."""
    plan: Any = frame._jdf.queryExecution().logical()  # noqa: SLF001 - PySpark has no public name
    plan.rdd().unpersist(False)
